"""Tables that take a while to compute, kept on disk between runs.

One ``.npz`` file (no pickle) per key in ``$XDG_CACHE_HOME/raybpe``, or ``~/.cache/raybpe``. The
cache is only ever a shortcut: a file that is missing, corrupt or of another key, and a folder that
cannot be written, just mean that the tables are computed.
"""

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

_KEY = "__key__"


def cache_folder() -> Path:
    """Where the tables are kept; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "raybpe"


def cached_arrays(key: str, build: Callable[[], Arrays]) -> Arrays:
    """The arrays that `build` returns, read from disk when an earlier call has put them there.

    Args:
        key: names everything that the arrays depend on, such as a pattern and the version of the
            Unicode data; any text.
        build: computes them; called at most once.
    """
    path = cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    found = _read(path, key)
    if found is None:
        found = build()
        with contextlib.suppress(OSError):  # a read-only home is no reason to fail
            _write(path, key, found)
    return found


def _read(path: Path, key: str) -> Arrays | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError):
        return None
    stored = arrays.pop(_KEY, None)
    return arrays if stored is not None and stored.tobytes() == key.encode() else None


def _write(path: Path, key: str, arrays: Arrays) -> None:
    """Write under another name, then rename: a reader sees all of the file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=path.stem, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            named: dict[str, Any] = {_KEY: np.frombuffer(key.encode(), np.uint8), **arrays}
            np.savez(file, **named)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
