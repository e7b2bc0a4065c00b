"""Compile kernels once per machine, not once per process, and say so.

Numba compiles a kernel when it is first called and keeps the result on disk. That takes seconds,
so whoever is first on a machine takes a lock, runs each kernel on a few bytes, and leaves a
marker; others wait for the lock instead of compiling the same. Where no file can be locked each
process compiles for itself, with the same results.

Numba compiles one function at a time in a process. So the first run on a machine compiles in two:
what counting needs here, what merging and writing need in a process beside it (`compile_ahead`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raybpe.block import Block
from raybpe.config import CountConfig, TrainConfig

if TYPE_CHECKING:
    from raybpe.flow.steps import Merged
    from raybpe.merges.trainer import MergeTrainer

MESSAGE = "compiling kernels for {}: some seconds, only in the first run on a machine"
# Kernel modules, with all that they import, that a step calls.
MODULES = {
    "scan": ("count_gpt2", "table_rows", "cuts", "utf8"),
    "automaton": ("count_automaton", "table_rows", "cuts", "utf8"),
    "regex": ("table_rows", "cuts", "utf8"),
    "merge": ("merge", "merge_build"),
    "export": ("encode", "encode_gpt2", "encode_automaton", "encode_listed", "ranks"),
}
COUNTING = "counting"
PURPOSES = {"merge": "merging", "export": "checking what is written"}
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


def warm_exporting(config: TrainConfig, tell: Callable[[str], None] | None = None) -> None:
    """Have compiled what writing and verifying a tokenizer call."""
    _once("export", lambda: _export(config), tell)


def compile_ahead(config: TrainConfig, exporting: bool) -> None:
    """Compile in another process what comes after counting, if that is not compiled yet.

    Whoever needs it first waits for the lock; if that process fails, it compiles here as ever.
    """
    if _marker("merge").exists() and (not exporting or _marker("export").exists()):
        return
    given = {"pattern": config.counting.pattern, "name": config.counting.pattern_name}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-c", "from raybpe.flow.warm import main; main()", json.dumps(given)],
        env=environment,
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
    )
    threading.Thread(target=process.wait, name="raybpe-compiling", daemon=True).start()


def main() -> None:
    """Body of the other process."""
    given = json.loads(sys.argv[1])
    config = TrainConfig(300, CountConfig(given["pattern"], given["name"]))
    warm_merging(config)
    warm_exporting(config)


def _export(config: TrainConfig) -> None:
    from raybpe.flow.steps import build_tokenizer, finish_merging
    from raybpe.formats import write_tokenizer

    tokenizer = build_tokenizer(finish_merging(*_merge(config)), config)
    with tempfile.TemporaryDirectory(prefix="raybpe-") as folder:
        write_tokenizer(tokenizer, os.path.join(folder, "tokenizer"), sample=[TEXT.decode()])


def _count(pretokenizer: Any) -> None:
    from raybpe.counts.pretoken_table import PretokenTable

    block = Block.of(TEXT)
    pretokenizer.last_cut(block.data, 0, len(TEXT))
    pretokenizer.next_cut(block.data, 1, len(TEXT), True)
    table, other = PretokenTable(), PretokenTable()
    pretokenizer.count(table, block)
    other.add(table)
    other.insert(*table.export()[0])


def _merge(config: TrainConfig) -> tuple[MergeTrainer, Merged]:
    from dataclasses import replace

    from raybpe.counts.columns import Columns
    from raybpe.counts.pretoken_table import PretokenTable
    from raybpe.flow.steps import pretokenizer_of, start_merging

    table = PretokenTable()
    pretokenizer_of(config.counting).count(table, Block.of(TEXT))
    specials = len(config.counting.special_tokens)
    small = replace(config, vocab_size=266 + specials, min_pretoken_count=1, min_frequency=1)
    trainer, merged = start_merging([Columns(*table.export()[0])], small)
    trainer.advance()
    return trainer, merged


def _marker(what: str) -> Path:
    from importlib.metadata import version

    from raybpe.kernels.compile_cache import cache_folder, source_stamp

    stamps = "-".join(source_stamp(module)[:12] for module in MODULES[what])
    return Path(cache_folder(), f"compiled-{what}-{version('numba')}-{stamps}")


def _once(what: str, compile_all: Callable[[], object], tell: Callable[[str], None] | None) -> None:
    marker = _marker(what)
    if marker.exists():
        return
    if tell is not None:
        tell(MESSAGE.format(PURPOSES.get(what, COUNTING)))
    with _lock(marker.with_name(f"compiling-{what}.lock")):
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
