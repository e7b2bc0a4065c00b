"""Compile kernels once per machine, not once per process, and say so.

Numba compiles a kernel when it is first called and keeps the result on disk. That takes seconds,
so whoever is first on a machine takes a lock, runs each kernel on a few bytes, and leaves a
marker; others wait for the lock instead of compiling the same. Where no file can be locked each
process compiles for itself, with the same results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raybpe.block import Block
from raybpe.config import CountConfig, TrainConfig

MESSAGE = "compiling kernels for this machine; only the first run does, it takes some seconds"
# Kernel modules, with all that they import, that a step calls.
MODULES = {
    "scan": ("count_gpt2", "table_rows", "cuts", "utf8"),
    "automaton": ("count_automaton", "table_rows", "cuts", "utf8"),
    "regex": ("table_rows", "cuts", "utf8"),
    "merge": ("merge", "merge_build"),
}
TEXT = b"It's 1 example, \xc3\xa9t\xc3\xa9 2024!\n\n  " * 8


def warm_counting(config: CountConfig, tell: Callable[[str], None] | None = None) -> None:
    """Have the kernels that count with this configuration compiled.

    Args:
        tell: called with a sentence before something is compiled.
    """
    from raybpe.flow.steps import pretokenizer_of

    pretokenizer = pretokenizer_of(config)
    _once(pretokenizer.engine, lambda: _count(pretokenizer), tell)


def needs_compiling(config: CountConfig) -> bool:
    """Whether no process has compiled the counting kernels on this machine yet."""
    from raybpe.flow.steps import pretokenizer_of

    return not _marker(pretokenizer_of(config).engine).exists()


def warm_merging(config: TrainConfig, tell: Callable[[str], None] | None = None) -> None:
    """Have the merge loop compiled."""
    _once("merge", lambda: _merge(config), tell)


def _count(pretokenizer: Any) -> None:
    from raybpe.counts.pretoken_table import PretokenTable

    block = Block.of(TEXT)
    pretokenizer.last_cut(block.data, 0, len(TEXT))
    pretokenizer.next_cut(block.data, 1, len(TEXT), True)
    table, other = PretokenTable(), PretokenTable()
    pretokenizer.count(table, block)
    other.add(table)
    other.insert(*table.export()[0])


def _merge(config: TrainConfig) -> None:
    from dataclasses import replace

    from raybpe.counts.columns import Columns
    from raybpe.counts.pretoken_table import PretokenTable
    from raybpe.flow.steps import pretokenizer_of, start_merging

    table = PretokenTable()
    pretokenizer_of(config.counting).count(table, Block.of(TEXT))
    specials = len(config.counting.special_tokens)
    small = replace(config, vocab_size=266 + specials, min_pretoken_count=1, min_frequency=1)
    trainer, _ = start_merging([Columns(*table.export()[0])], small)
    trainer.advance()


def _marker(what: str) -> Path:
    from importlib.metadata import version

    from raybpe.kernels.compile_cache import cache_folder, source_stamp

    stamps = "-".join(source_stamp(module)[:12] for module in MODULES[what])
    return Path(cache_folder(), f"compiled-{what}-{version('numba')}-{stamps}")


def _once(what: str, compile_all: Callable[[], None], tell: Callable[[str], None] | None) -> None:
    marker = _marker(what)
    if marker.exists():
        return
    if tell is not None:
        tell(MESSAGE)
    with _lock(marker.with_name("compiling.lock")):
        if not marker.exists():
            compile_all()
            marker.touch()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # let go by the system if this process dies
        yield
    finally:
        os.close(descriptor)
