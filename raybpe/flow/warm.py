"""Compile kernels once per machine, not once per process, and say so.

A kernel compiles when it is first called, and its code is kept on disk (`kernels.entry`). That
takes seconds, so whoever is first on a machine takes a lock and compiles; others wait for the lock
instead of compiling the same. Where no file can be locked each process compiles for itself, with
the same results.

Numba compiles one function at a time in a process. So the first run compiles in three:
what counting needs here, what merging and writing need in processes beside it (`compile_ahead`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import raybpe
from raybpe.kernels import entries
from raybpe.kernels.entry import Kernel

if TYPE_CHECKING:
    from raybpe.config import CountConfig, TrainConfig

Tell = Callable[[str], None]

MESSAGE = "compiling kernels for {}: some seconds, only in the first run of an installation"
COUNTING, MERGING, EXPORTING = "counting", "merging", "checking what is written"


def warm_counting(config: CountConfig, tell: Tell | None = None) -> None:
    """Have the kernels that count with this configuration compiled.

    Args:
        tell: called with a sentence before something is compiled.
    """
    _compile(COUNTING, _counting_kernels(config), tell)


def needs_compiling(config: CountConfig) -> bool:
    """Whether no process has compiled the counting kernels on this machine yet."""
    return not all(kernel.compiled for kernel in _counting_kernels(config))


def warm_merging(config: TrainConfig, tell: Tell | None = None) -> None:
    """Have the merge loop compiled."""
    _compile(MERGING, _merging_kernels(config), tell)


def warm_exporting(config: TrainConfig, tell: Tell | None = None) -> None:
    """Have compiled what writing and verifying a tokenizer call."""
    _compile(EXPORTING, _exporting_kernels(config), tell)


def compile_ahead(config: TrainConfig, exporting: bool) -> None:
    """Compile in other processes what comes after counting, if that is not compiled yet.

    Whoever needs it first waits for the lock; if such a process fails, it compiles here as ever.
    """
    _compile_beside(_merging_kernels(config))
    if exporting:
        _compile_beside(_exporting_kernels(config))


def _compile_beside(kernels: list[Kernel]) -> None:
    missing = [kernel for kernel in kernels if not kernel.compiled]
    if not missing:
        return
    quiet = subprocess.DEVNULL
    path = [os.path.abspath(entry) for entry in sys.path if entry]
    process = subprocess.Popen(
        [sys.executable, "-m", "raybpe.flow.warm", *(kernel.path.name for kernel in missing)],
        # `-m` looks in the working directory first, where the user may have a regex.py.
        cwd=Path(raybpe.__file__).parent.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
    )
    threading.Thread(target=process.wait, name="raybpe-compiling", daemon=True).start()


def compile_named(names: Iterable[str]) -> None:
    """Body of another process: compile the kernels whose object files are named."""
    every = {kernel.path.name: kernel for kernel in entries.every_kernel()}
    for name in names:
        _compile(MERGING, [every[name]], None)


def _counting_kernels(config: CountConfig) -> list[Kernel]:
    from raybpe.flow.steps import pretokenizer_of

    kernels = [
        entries.find_next_cut,
        entries.find_last_cut,
        entries.first_invalid,
        entries.table_rows,
    ]
    engine = pretokenizer_of(config).engine
    if engine != "regex":
        kernels.append(entries.count_gpt2 if engine == "scan" else entries.count_automaton)
    return kernels


def _merging_kernels(config: TrainConfig) -> list[Kernel]:
    from raybpe.merges.workspace import symbol_bits

    return [entries.merge[symbol_bits(config.max_merges)]]


def _exporting_kernels(config: TrainConfig) -> list[Kernel]:
    from raybpe.flow.steps import pretokenizer_of

    scanner = pretokenizer_of(config.counting).scanner
    return [entries.recover_merges, entries.encode[scanner.kind if scanner else "listed"]]


def _compile(what: str, kernels: list[Kernel], tell: Tell | None) -> None:
    missing = [kernel for kernel in kernels if not kernel.compiled]
    if missing and tell is not None:
        tell(MESSAGE.format(what))
    for kernel in missing:
        with _lock(kernel.path.with_suffix(".lock")):
            kernel.function  # noqa: B018  # compiles


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # let go by the system if this process dies
        yield
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    compile_named(sys.argv[1:])
