"""Where compiled kernels are kept between runs, and when they are stale.

Numba keeps a compiled function as long as its own source file is unchanged, although it contains
code from every file that it calls into. After an upgrade that would mix old code with new, which
here means wrong counts or stray memory access. So the stamp of a kernel is the hash of its source
file and of all files of this package that it imports, directly or not.

They are kept in the first of these folders that can be written: $NUMBA_CACHE_DIR, `__pycache__`
beside the sources, the user's cache folder, or one that lasts as long as the process.
"""

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from functools import cache, lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import config
from numba.core import caching

_SOURCES = Path(__file__).parent
_IMPORT = re.compile(
    r"^from raybpe\.kernels(?:\.(\w+) import|\s+import\s+(\([^)]*\)|[^\n]*))", re.MULTILINE
)
_NAME = re.compile(r"\w+")


class KernelCacheLocator(caching._CacheLocator):
    """Tells Numba the folder and the stamp of every function in this package."""

    def __init__(self, function: FunctionType, path: str) -> None:
        self._module = Path(path).stem
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        """The folder."""
        return cache_folder()

    def get_source_stamp(self) -> str:
        """Changes when a source that the function may depend on does."""
        return source_stamp(self._module)

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return str(self._line)

    @classmethod
    def from_function(cls, function: FunctionType, path: str) -> "KernelCacheLocator | None":
        """A locator for functions of this package, None for all others."""
        return cls(function, path) if Path(path).parent == _SOURCES else None


@cache
def source_stamp(module: str) -> str:
    """Hash of the sources of a kernel module and all that it imports from this package."""
    needed = {module: _source(module)}
    todo = [module]
    while todo:
        for name in _imported(needed[todo.pop()]):
            if name not in needed and (_SOURCES / f"{name}.py").exists():
                needed[name] = _source(name)
                todo.append(name)
    digest = hashlib.sha256()
    for name in sorted(needed):
        digest.update(f"{name}\0{needed[name]}\0".encode())
    return digest.hexdigest()


@cache
def _source(module: str) -> str:
    return (_SOURCES / f"{module}.py").read_text(encoding="utf-8")


def _imported(source: str) -> set[str]:
    """Names that may be modules of this package in the imports of a source."""
    return {
        name
        for module, names in _IMPORT.findall(source)
        for name in ([module] if module else _NAME.findall(names))
    }


@lru_cache(maxsize=1)
def cache_folder() -> str:
    """The folder of compiled kernels; it exists and can be written."""
    install = hashlib.sha256(str(_SOURCES).encode()).hexdigest()[:16]
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    candidates = [_SOURCES / "__pycache__", Path(user) / "raybpe" / f"kernels-{install}"]
    asked = getattr(config, "CACHE_DIR", "")
    if asked:
        candidates.insert(0, Path(asked) / f"raybpe-{install}")
    for candidate in candidates:
        try:
            candidate.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=candidate).close()
        except OSError:
            continue
        return str(candidate)
    temporary = tempfile.mkdtemp(prefix="raybpe-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def install() -> None:
    """Make Numba ask KernelCacheLocator first."""
    implementation: Any = getattr(caching, "CacheImpl", None) or vars(caching)["_CacheImpl"]
    if KernelCacheLocator not in implementation._locator_classes:
        implementation._locator_classes.insert(0, KernelCacheLocator)
