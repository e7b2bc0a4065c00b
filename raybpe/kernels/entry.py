"""The one door from Python into compiled code: `Kernel`.

A kernel is written in Numba, in a module of this package, and takes and returns integers: values
and addresses. Its first call ever on a machine compiles it, which takes seconds, and keeps the
object code in a file; every later process links that file in milliseconds and never imports Numba.
So modules outside this package import kernels from `entries` and constants from the `*_layout` and
`*_state` modules, none of which import Numba.

The file's name holds a hash of everything that the code depends on: the sources of the module and
of all modules of this package that it imports, the versions of Numba and llvmlite, the processor.
It begins with a SHA-256 of the rest: the symbol's name, a line feed, an ELF, Mach-O or COFF
object. A damaged file is compiled anew. Files are in the first of these folders that we can write
to and no other user but root can, since what they hold is run: $NUMBA_CACHE_DIR, `__pycache__`
beside the sources, the user's cache folder, or one that lasts as long as the process.

A call releases the GIL. Kernels never raise: they return codes.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import importlib
import os
import platform
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SOURCES = Path(__file__).parent
_IMPORT = re.compile(
    r"^from raybpe\.kernels(?:\.(\w+) import|\s+import\s+(\([^)]*\)|[^\n]*))", re.MULTILINE
)
_NAME = re.compile(r"\w+")
_DIGEST_BYTES = 32
_LOCK = threading.RLock()  # one thread compiles or links at a time

# What Numba's wrappers call when a kernel raises or allocates, which none does.
_NEVER_CALLED = (
    "NRT_Allocate",
    "NRT_Free",
    "NRT_decref",
    "NRT_incref",
    "numba_do_raise",
    "numba_gil_ensure",
    "numba_gil_release",
    "numba_runtime_build_excinfo_struct",
    "numba_unpickle",
)


def address(array: npt.NDArray[np.generic]) -> int:
    """Address of the first element, for passing to a kernel; the caller keeps `array` alive."""
    return int(array.ctypes.data)


class Kernel:
    """A compiled function of integers that returns an int64.

    Attributes:
        module: where its source is, in this package.
        name: the function there.
        arguments: Numba's names of its argument types, `int64` or narrower integers.
    """

    def __init__(self, module: str, name: str, *arguments: str) -> None:
        self.module = module
        self.name = name
        self.arguments = arguments

    def __call__(self, *arguments: int) -> int:
        """Run it, without the GIL."""
        return self.function(*arguments)

    @cached_property
    def function(self) -> Callable[..., int]:
        """The same without a Python frame of its own; compiles or links at first use."""
        with _LOCK:
            code = _read(self.path) or self._compile()
            return _link(*code, arguments=self.arguments)

    @property
    def path(self) -> Path:
        """The file of its object code."""
        words = [self.module, self.name, *self.arguments, _platform(), source_stamp(self.module)]
        stamp = hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]
        return Path(cache_folder(), f"{self.module}-{self.name}-{stamp}.o")

    @property
    def compiled(self) -> bool:
        """Whether a process has compiled it on this machine."""
        return self.path.exists()

    def _compile(self) -> tuple[str, bytes]:
        from raybpe.kernels.compile import object_code

        module = importlib.import_module(f"raybpe.kernels.{self.module}")
        symbol, code = object_code(getattr(module, self.name), self.arguments)
        _write(self.path, symbol, code)
        return symbol, code


@cache
def source_stamp(module: str) -> str:
    """Hash of the sources of a kernel module and all that it imports from this package."""
    needed = {module: _source(module), "compile": _source("compile")}
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


@lru_cache(maxsize=1)
def cache_folder() -> str:
    """The folder of compiled kernels; it exists and can be written."""
    install = hashlib.sha256(str(_SOURCES).encode()).hexdigest()[:16]
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    candidates = [_SOURCES / "__pycache__", Path(user) / "raybpe" / f"kernels-{install}"]
    asked = os.environ.get("NUMBA_CACHE_DIR")
    if asked:
        candidates.insert(0, Path(asked) / f"raybpe-{install}")
    for candidate in candidates:
        beside = candidate.name == "__pycache__"  # holds Python's files as well
        try:
            candidate.mkdir(mode=0o777 if beside else 0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=candidate).close()
            if not _is_private(candidate):
                continue
        except OSError:
            continue
        return str(candidate)
    temporary = tempfile.mkdtemp(prefix="raybpe-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def _is_private(folder: Path) -> bool:
    """Whether no other user but root can put files into a folder; Windows is not asked."""
    if not hasattr(os, "getuid"):
        return True
    about = folder.stat()
    return about.st_uid in (0, os.getuid()) and not about.st_mode & 0o022


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


@cache
def _platform() -> str:
    """What machine code and Numba's way to it depend on."""
    import llvmlite.binding as llvm

    return "\0".join(
        [
            version("numba"),
            version("llvmlite"),
            platform.python_version(),
            llvm.get_process_triple(),
            llvm.get_host_cpu_name(),
            llvm.get_host_cpu_features().flatten(),
        ]
    )


def _read(path: Path) -> tuple[str, bytes] | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    symbol, _, code = body.partition(b"\n")
    return symbol.decode(), code


def _write(path: Path, symbol: str, code: bytes) -> None:
    """Whole or not at all; a full disk costs a compilation in each process and nothing else."""
    body = symbol.encode() + b"\n" + code
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(hashlib.sha256(body).digest() + body)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _engine() -> Any:
    """Where object code gets linked; it lives until the process ends."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    nothing = ctypes.cast(ctypes.pythonapi.Py_FatalError, ctypes.c_void_p).value
    for name in _NEVER_CALLED:
        if not llvm.address_of_symbol(name):
            llvm.add_symbol(name, nothing)
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def _link(symbol: str, code: bytes, arguments: tuple[str, ...]) -> Callable[..., int]:
    import llvmlite.binding as llvm

    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    types = [getattr(ctypes, f"c_{name}") for name in arguments]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *types)
    return prototype(engine.get_function_address(symbol))
