"""What all tests share: sample text, corpora that may be there, private caches."""

import os
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")

ROOT = Path(__file__).resolve().parent.parent
SEPARATOR = "<|endoftext|>"


@lru_cache(maxsize=8)
def stdlib_text(size: int) -> bytes:
    """At least `size` bytes of the Python standard library's sources, one document per file."""
    pieces: list[bytes] = []
    total = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        source = path.read_bytes()
        try:
            source.decode("utf-8")
        except UnicodeDecodeError:
            continue
        piece = source + b"\n" + SEPARATOR.encode() + b"\n"
        pieces.append(piece)
        total += len(piece)
        if total >= size:
            break
    return b"".join(pieces)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def sample_text() -> Callable[[int], bytes]:
    """Make real text of about the asked size: `sample_text(100_000)`."""
    return stdlib_text


@pytest.fixture
def sample_file(tmp_path: Path) -> Path:
    """A file of about 300 KB of real text with separators."""
    path = tmp_path / "sample.txt"
    path.write_bytes(stdlib_text(300_000))
    return path


@pytest.fixture(scope="session")
def shared() -> Path:
    """Corpora and fixtures kept beside the repository; the test is skipped without them."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared folder with corpora and fixtures")
    return folder


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Folder of the unpacked large corpora, named by RAYBPE_CORPORA; else the test is skipped."""
    folder = os.environ.get("RAYBPE_CORPORA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("RAYBPE_CORPORA names no folder with english.txt, multilingual.txt, code.txt")
    return Path(folder)


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for compiled pattern tables, for this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder
