"""Who may import whom; the arrows of the house point one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "raybpe"
MODULES = sorted(ROOT.rglob("*.py"))

# Packages that a package's modules must not import, at any depth of the file.
FORBIDDEN = {
    "kernels": ("pretokenize", "counts", "merges", "tokenizer", "formats", "inputs", "flow",
                "cli", "evaluate", "api", "storage"),
    "pretokenize": ("counts.counts", "merges", "tokenizer", "formats", "inputs", "flow", "cli",
                    "evaluate", "api"),
    "counts": ("merges", "tokenizer", "formats", "inputs", "flow", "cli", "evaluate", "api"),
    "merges": ("tokenizer", "formats", "inputs", "flow", "cli", "evaluate", "api"),
    "tokenizer": ("merges.trainer", "inputs", "flow", "cli", "evaluate", "api"),
    "formats": ("inputs", "flow", "cli", "evaluate", "api"),
    "inputs": ("merges", "tokenizer", "formats", "flow", "cli", "evaluate", "api"),
    "evaluate": ("flow", "cli", "api"),
    "flow": ("cli", "api"),
}  # fmt: skip
ONLY_IN = {"ray": "flow", "numba": "kernels", "llvmlite": "kernels"}
NOT_IN_KERNELS = ("pyarrow", "fsspec", "regex", "rich", "typer")


def imports(path: Path) -> list[str]:
    """Full names of all modules that a file imports, wherever it does."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_layers(path: Path) -> None:
    for name in imports(path):
        for library, home in ONLY_IN.items():
            assert not within(name, library) or room(path) == home, f"{name} belongs in {home}/"
        for forbidden in FORBIDDEN.get(room(path), ()):
            assert not within(name, f"raybpe.{forbidden}"), f"{room(path)} imports {name}"
        if room(path) == "kernels":
            assert not any(within(name, library) for library in NOT_IN_KERNELS), name


def test_reference_shares_no_code() -> None:
    assert not any(within(name, "raybpe") for name in imports(ROOT / "reference.py"))


def test_the_story_stays_short() -> None:
    lines = (ROOT / "flow" / "train.py").read_text().splitlines()
    assert len(lines) < 150


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_numba_is_only_imported_to_compile() -> None:
    modules = ", ".join(
        ".".join(("raybpe", *path.relative_to(ROOT).with_suffix("").parts))
        for path in MODULES
        if room(path) in ("pretokenize", "counts", "merges", "tokenizer", "formats", "inputs")
        and path.stem != "__init__"
    )
    script = f"import sys, {modules}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
