"""Compiled kernels are kept, and made anew when any source that they contain changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import raybpe
from raybpe.kernels import entries, entry

SCRIPT = """
import sys
import numpy as np
from raybpe.kernels.entries import first_invalid
from raybpe.kernels.entry import address
text, start, end = np.full(200, 65, np.uint8), np.zeros(1, np.int64), np.full(1, 70)
print(first_invalid(address(text), address(start), address(end), 1), end=" ")
print("compiled" if "numba" in sys.modules else "linked", end=" ")
print(first_invalid.path.parent)
"""


@pytest.fixture
def package(tmp_path) -> Path:
    """A copy of the package that a test may change."""
    source = Path(raybpe.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, tmp_path / "raybpe", ignore=ignore)
    return tmp_path


def run(package: Path, **settings: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(package), **settings}
    environment = {k: v for k, v in environment.items() if v}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=package,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.split()


def test_a_change_in_an_imported_file_compiles_anew(package):
    beside = str(package / "raybpe" / "kernels" / "__pycache__")
    plain = {"NUMBA_CACHE_DIR": ""}
    assert run(package, **plain) == ["-1", "compiled", beside]
    assert run(package, **plain) == ["-1", "linked", beside]
    intrinsics = package / "raybpe" / "kernels" / "intrinsics.py"
    source = intrinsics.read_text()
    changed = source.replace(
        'icmp_signed("<", data, _splat(0))', 'icmp_signed(">=", data, _splat(0))'
    )
    assert changed != source
    intrinsics.write_text(changed)
    assert run(package, **plain)[:2] == ["-1", "compiled"]
    assert run(package, **plain)[1] == "linked"


def test_the_folder_that_numba_is_told_to_use(package, tmp_path):
    folder = tmp_path / "elsewhere"
    assert run(package, NUMBA_CACHE_DIR=str(folder))[1] == "compiled"
    answer = run(package, NUMBA_CACHE_DIR=str(folder))
    assert answer[1] == "linked"
    assert Path(answer[2]).parent == folder


def test_no_folder_at_all_still_runs(package):
    (package / "raybpe" / "kernels" / "__pycache__").write_text("in the way")
    (package / "file").write_text("in the way")
    answer = run(package, NUMBA_CACHE_DIR="", XDG_CACHE_HOME=str(package / "file"))
    assert answer[:2] == ["-1", "compiled"]
    assert not Path(answer[2]).exists()


@pytest.mark.skipif(os.name != "posix", reason="needs owners and modes")
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o775, 0o757])
def test_folders_that_others_can_write_to_are_not_used(tmp_path, monkeypatch, mode):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    find = entry.cache_folder.__wrapped__
    made = Path(find())
    assert made.parent == tmp_path
    assert made.stat().st_mode & 0o777 == 0o700
    made.chmod(mode)
    assert (Path(find()) == made) == (mode & 0o022 == 0)
    owner = made.stat().st_uid
    made.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert entry._is_private(made) == (owner == 0)


def test_a_damaged_file_is_compiled_anew(package):
    folder = package / "objects"
    assert run(package, NUMBA_CACHE_DIR=str(folder))[1] == "compiled"
    (file,) = folder.rglob("*.o")
    whole = file.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole[:5000] + b"?" + whole[5001:]):
        file.write_bytes(damaged)
        assert run(package, NUMBA_CACHE_DIR=str(folder))[:2] == ["-1", "compiled"]
        assert file.read_bytes()[32:] == whole[32:]
    assert run(package, NUMBA_CACHE_DIR=str(folder))[1] == "linked"


def test_every_kernel_has_a_file_of_its_own():
    kernels = list(entries.every_kernel())
    assert len(kernels) > 15
    assert len({kernel.path for kernel in kernels}) == len(kernels)


def test_the_stamp_covers_what_is_imported_indirectly(monkeypatch, tmp_path):
    (tmp_path / "a.py").write_text("from raybpe.kernels.b import x\n")
    (tmp_path / "b.py").write_text("from raybpe.kernels import (\n    c,\n    d as e,\n)\n")
    for name in ("c", "d", "f", "compile"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.setattr(entry, "_SOURCES", tmp_path)

    def stamp() -> str:
        entry.source_stamp.cache_clear()
        entry._source.cache_clear()
        return entry.source_stamp("a")

    try:
        seen = {stamp()}
        for name in "abcd":
            path = tmp_path / f"{name}.py"
            path.write_text(path.read_text() + "# changed\n")
            assert stamp() not in seen
            seen.add(stamp())
        (tmp_path / "f.py").write_text("# not imported\n")
        assert stamp() in seen
    finally:
        entry.source_stamp.cache_clear()
        entry._source.cache_clear()
