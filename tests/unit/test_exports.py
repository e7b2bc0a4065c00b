"""What is public, and that importing it is cheap."""

import subprocess
import sys
from pathlib import Path

import pytest

import raybpe
from raybpe import errors

HEAVY = ("ray", "numba", "llvmlite", "pyarrow", "numpy", "regex", "rich")
LOADED = f"import sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"


def loaded_by(statement: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{LOADED}"], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1].split()


def test_every_public_name_is_there() -> None:
    assert sorted(raybpe.__all__) == dir(raybpe)
    for name in raybpe.__all__:
        assert getattr(raybpe, name) is not None


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="trian"):
        raybpe.trian  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    assert loaded_by("import raybpe") == []
    assert loaded_by("import raybpe.cli.app") in ([], ["rich"])


def test_training_functions_do_not_load_ray() -> None:
    assert "ray" not in loaded_by("import raybpe; raybpe.train, raybpe.Tokenizer, raybpe.Counts")


def test_versions_agree(root: Path) -> None:
    project = (root / "pyproject.toml").read_text()
    assert f'\nversion = "{raybpe.__version__}"\n' in project
    assert f"## {raybpe.__version__}" in (root / "CHANGELOG.md").read_text()


def test_the_error_tree_is_drawn() -> None:
    assert errors.__doc__ is not None
    for name, value in vars(errors).items():
        if isinstance(value, type):
            assert issubclass(value, errors.RaybpeError)
            assert name in errors.__doc__
