"""The local executor: threads in this process, each with a table of its own.

The kernels release the GIL, so threads count side by side. Each pulls one chunk after the other
into its table; at the end tables are added pairwise. Memory: one table of unique pretokens per
thread, at most `SPILL_FRACTION` of the memory that is free; beyond that, and every
`save_seconds`, a thread's table goes to the run directory as a partial and the thread goes on with
an empty one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.cores import cores
from raybpe.counts.columns import Columns
from raybpe.errors import CapacityError, RaybpeError, TransientError
from raybpe.flow import checks, steps
from raybpe.flow.executor import Counted
from raybpe.flow.memory import free_memory, peak_memory
from raybpe.flow.progress import Progress, Stage
from raybpe.flow.run_directory import END_SHARE, STOP_SHARE, RunDirectory
from raybpe.flow.signals import END_SECONDS
from raybpe.flow.steps import Merged, Tally
from raybpe.flow.warm import warm_counting, warm_merging

if TYPE_CHECKING:
    from raybpe.counts.pretoken_table import PretokenTable
    from raybpe.inputs import Chunk

CHUNK_BYTES = 8 * 10**6  # small enough that threads end together; a chunk costs 0.1 ms beside text
SPILL_FRACTION = 0.4
SLICE_SECONDS = 0.25
ATTEMPTS = 3


class LocalExecutor:
    """See the module."""

    name = "local"

    def __init__(self, options: RunOptions, progress: Progress) -> None:
        self.threads = options.workers or cores()
        self.progress = progress
        self.save_seconds = options.save_seconds

    def chunk_bytes(self, options: RunOptions) -> int:
        """At most `CHUNK_BYTES`: threads share one process, so that small chunks cost nothing."""
        return min(options.chunk_bytes, CHUNK_BYTES)

    def count(self, directory: RunDirectory, config: CountConfig) -> Counted:
        """Count what is missing with all threads."""
        plan = directory.plan
        chunks = [chunk for chunk in plan.chunks if chunk.index not in directory.covered]
        warm_counting(config, self.progress.note)
        began = perf_counter()
        with self.progress.stage("count", plan.total_bytes, "bytes") as stage:
            stage.advance(sum(chunk.bytes for chunk in plan.chunks) - sum(c.bytes for c in chunks))
            crew = _Crew(chunks, config, directory, stage, self.save_seconds)
            tables, tally = crew.run(min(self.threads, max(len(chunks), 1)))
        partials, unsaved = directory.partials(), bool(tables)
        for partial in partials:
            tally.add(partial.tally)
        # One after the other: they may be more than fits into memory.
        saved = (part for partial in partials for part in partial.columns())
        parts = _sum(tables, saved, config, directory.partitions, tally)
        late = perf_counter() - began > END_SHARE * self.save_seconds
        if directory.keeps_partials and unsaved and late:  # the merge loop may take long
            directory.save_partial([chunk.index for chunk in plan.chunks], parts, tally)
        tally.peak_memory_bytes = max(tally.peak_memory_bytes, peak_memory())
        return Counted(
            tally,
            parts,
            directory.sources,
            resumed_chunks=len(directory.covered_before),
        )

    def merge(self, counted: Counted, config: TrainConfig) -> Merged:
        """Run the merge loop in this thread."""
        return merge_here(counted.columns(), config, self.progress)

    def describe(self) -> dict[str, Any]:
        """For the manifest."""
        return {"executor": self.name, "workers": self.threads}


@contextmanager
def local_executor(options: RunOptions, progress: Progress) -> Iterator[LocalExecutor]:
    """A local executor."""
    yield LocalExecutor(options, progress)


def merge_here(parts: Sequence[Columns], config: TrainConfig, progress: Progress) -> Merged:
    """The merge loop in this process, in slices, so that progress and Ctrl-C get their turn."""
    warm_merging(config, progress.note)
    with progress.stage("merge", config.max_merges, "merges") as stage:
        trainer, merged = steps.start_merging(parts, config)
        for done in steps.advance(trainer, SLICE_SECONDS):
            stage.reach(done)
        return steps.finish_merging(trainer, merged)


def count_texts(
    texts: Iterable[str | bytes], config: CountConfig, field: str, progress: Progress
) -> Counted:
    """Count texts in memory; the caller's iterator runs in this thread.

    Args:
        field: name of the column, where `texts` has columns.
    """
    from raybpe.counts.pretoken_table import PretokenTable
    from raybpe.inputs import ReadStats
    from raybpe.inputs.memory import iterator_blocks

    checks.tell_of_slow_pattern(config, progress)
    warm_counting(config, progress.note)
    table, stats = PretokenTable(), ReadStats()
    with progress.stage("count", None, "bytes") as stage:
        blocks = iterator_blocks(texts, stats, field)
        tally = steps.count_blocks(blocks, config, table, stage.advance)
    tally.nulls, tally.byte_order_marks = stats.nulls, stats.byte_order_marks
    parts = _sum([table], [], config, 1, tally)
    checks.check_pattern_matches(tally, config, at_end=True)
    return Counted(tally, parts)


class _Stopped(Exception):
    """Another thread failed, or the user interrupted."""


class _Crew:
    """Threads that count chunks until none is left or one fails."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        config: CountConfig,
        directory: RunDirectory,
        stage: Stage,
        save_seconds: float,
    ) -> None:
        self.todo = deque(chunks)
        self.config = config
        self.directory = directory
        self.stage = stage
        self.save_seconds = save_seconds
        self.stop = threading.Event()
        self.failure: BaseException | None = None
        self.attempts: dict[int, int] = {}
        self.results: list[tuple[PretokenTable, Tally, list[Chunk]]] = []
        self.spill_bytes = 0

    def run(self, threads: int) -> tuple[list[PretokenTable], Tally]:
        """Count everything; the tables, and the tally of what is in them."""
        self.spill_bytes = int(free_memory() * SPILL_FRACTION / threads)
        crew = [
            threading.Thread(target=self._work, name=f"raybpe-count-{i}", daemon=True)
            for i in range(threads)
        ]
        began = perf_counter()
        for member in crew:
            member.start()
        try:
            for member in crew:
                while member.is_alive():
                    member.join(0.5)  # with a time-out, so that Ctrl-C gets through
        except BaseException:
            if perf_counter() - began > STOP_SHARE * self.save_seconds:
                self._save_what_is_counted(crew)
            raise
        finally:
            self.stop.set()
            for member in crew:
                member.join()
        if self.failure is not None:
            raise self.failure
        tally = Tally()
        for _, one, _ in self.results:
            tally.add(one)
        return [table for table, _, _ in self.results], tally

    def _save_what_is_counted(self, crew: Sequence[threading.Thread]) -> None:
        """When the run is interrupted; a second interrupt ends this too."""
        if not self.directory.keeps_partials:
            return
        self.todo.clear()  # each thread ends with the chunk that it is at
        until = perf_counter() + END_SECONDS
        for member in crew:
            member.join(max(until - perf_counter(), 0))
        with suppress(RaybpeError):
            for table, tally, chunks in self.results:
                self._save(table, tally, chunks)

    def _save(self, table: PretokenTable, tally: Tally, chunks: Sequence[Chunk]) -> None:
        parts = steps.take_out(table, self.config, self.directory.partitions, tally)
        self.directory.save_partial([chunk.index for chunk in chunks], parts, tally)

    def _work(self) -> None:
        try:
            while (result := self._fill_table()) is not None:
                self.results.append(result)
        except _Stopped:
            pass
        except MemoryError as error:
            text = f"this machine has too little memory to count: {error}"
            self._fail(CapacityError(text.rstrip(": ")))
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
        self.stop.set()

    def _fill_table(self) -> tuple[PretokenTable, Tally, list[Chunk]] | None:
        """Count chunks until none is left, or until it is time to save what was counted."""
        from raybpe.counts.pretoken_table import PretokenTable

        table, tally = PretokenTable(), Tally()
        mine: list[Chunk] = []
        began = perf_counter()
        while True:
            try:
                chunk = self.todo.popleft()
            except IndexError:
                return (table, tally, mine) if mine else None
            mine.append(chunk)
            try:
                tally.add(self._count_chunk(chunk, table))
            except TransientError:
                # The table holds half of this chunk: start over with all that is in it.
                self.attempts[chunk.index] = self.attempts.get(chunk.index, 1) + 1
                if self.attempts[chunk.index] > ATTEMPTS:
                    raise
                self.stage.advance(-sum(one.bytes for one in mine))
                self.todo.extendleft(mine)
                table, tally, mine = PretokenTable(), Tally(), []
                continue
            checks.check_pattern_matches(tally, self.config, at_end=False)
            late = perf_counter() - began > self.save_seconds
            if self.directory.keeps_partials and (late or table.memory_bytes > self.spill_bytes):
                self._save(table, tally, mine)
                table, tally, mine = PretokenTable(), Tally(), []
                began = perf_counter()

    def _count_chunk(self, chunk: Chunk, table: PretokenTable) -> Tally:
        read = 0

        def advance(size: int) -> None:
            nonlocal read
            if self.stop.is_set():
                raise _Stopped
            read += size
            self.stage.advance(size)

        try:
            return steps.count_chunk(chunk, self.config, table, advance)
        except (RaybpeError, MemoryError, _Stopped):
            raise
        except Exception as error:
            raise RaybpeError(f"counting {checks.describe(chunk)} failed: {error!r}") from error
        finally:
            # Text bytes and file bytes differ where files are compressed or have markup; those of
            # a stream are not known beforehand.
            if chunk.bytes:
                self.stage.advance(chunk.bytes - read)


def _sum(
    tables: list[PretokenTable],
    more: Iterable[Columns],
    config: CountConfig,
    partitions: int,
    tally: Tally,
) -> list[Columns]:
    """Add tables pairwise, side by side, then rows that partials hold; by hash partition."""
    from raybpe.counts.pretoken_table import PretokenTable

    tables.sort(key=len, reverse=True)
    while len(tables) > 1:
        half = (len(tables) + 1) // 2
        pairs = list(zip(tables[:half], tables[half:], strict=False))
        with ThreadPoolExecutor(len(pairs)) as pool:
            list(pool.map(lambda pair: pair[0].add(pair[1]), pairs))
        del tables[half:]
    total = tables.pop() if tables else PretokenTable()
    for columns in more:
        total.insert(*columns)
    # Partials were cleared of long pretokens when they were saved.
    return steps.take_out(total, config, partitions, tally)
