"""The run directory: what a run needs to go on after it was killed.

While a run is unfinished its output holds a folder `.raybpe/` (beside a counts file, a folder
`.counts.arrow.raybpe/`) with

* ``run.json`` (`run_record`): what is counted and how. Written before any work. While there are
  partials, a later run with anything else is refused, and told the difference.
* ``partial-<hash>.arrow``: summed counts of some chunks (`partials`).

Every file appears whole or not at all (`storage`). Which chunks are done is exactly what the
partials say; where two overlap, the one that covers more is taken. The folder goes when the run is
done, or fails before it saved anything.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING

from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.counts.columns import Columns
from raybpe.errors import RaybpeError
from raybpe.filesystems import (
    is_local,
    local_path,
    split_query,
)
from raybpe.flow.checks import check_output_is_no_source
from raybpe.flow.partials import Partial, is_partial, read_header, write_partial
from raybpe.flow.run_record import RUN_FILE, read_record, record, refuse_other_run
from raybpe.flow.steps import Tally

if TYPE_CHECKING:
    from raybpe.flow.executor import Executor
    from raybpe.flow.progress import Progress
    from raybpe.inputs import Plan

FOLDER = ".raybpe"
STOP_SHARE = 0.1  # of `save_seconds`: counting that is saved when the run is interrupted
END_SHARE = 0.5  # of `save_seconds`: counting that is saved at its end, before the merge loop
BYTES_PER_PARTITION = 16 * 10**9  # of input: some 10 million unique pretokens in each
MAX_PARTITIONS = 64


class RunDirectory:
    """The plan of a run, and what of it is done.

    Attributes:
        plan: what is to be counted.
        sources: URI and size of every input.
        keeps_partials: whether there is a place for finished work.
        partitions: hash partitions into which counts are split, so that no task holds all.
        covered: chunks that partials cover.
        covered_before: those that an earlier run had finished.
    """

    def __init__(self, root: str | None, plan: Plan, identity: str) -> None:
        self.root = root
        self.plan = plan
        self.identity = identity
        self.sources = [(source.uri, source.size) for source in plan.sources]
        self.partitions = min(-(-plan.total_bytes // BYTES_PER_PARTITION), MAX_PARTITIONS) or 1
        self._partials: list[Partial] = []
        self.covered: set[int] = set()
        self.covered_before: frozenset[int] = frozenset()
        self._made_output: str | None = None
        self._lock = Lock()

    @property
    def keeps_partials(self) -> bool:
        """Whether finished work can be saved."""
        return self.root is not None

    @classmethod
    def open(
        cls,
        inputs: Sequence[str],
        config: TrainConfig | None,
        counting: CountConfig,
        options: RunOptions,
        executor: Executor,
    ) -> RunDirectory:
        """Plan the inputs, and take up what an earlier run of the same command left.

        Raises:
            UsageError: the output holds an unfinished run with other settings or inputs, or an
                input is what an earlier run wrote there.
            OutputError: the output cannot be written.
        """
        from raybpe import storage
        from raybpe.inputs import plan_inputs

        root = options.output
        if root is not None:
            root = _beside(root) if config is None else storage.join(root, FOLDER)
        if root is not None and is_local(root):
            root = os.path.abspath(local_path(root))  # workers have another working directory
        earlier = None
        if root is not None and _holds_work(root):
            if options.resume:
                earlier = read_record(root)
            else:
                storage.delete(root)
        chunk_bytes = executor.chunk_bytes(options)
        if earlier is not None:
            chunk_bytes = earlier["chunk_bytes"]  # changes no result, only which chunks are done
        plan = plan_inputs(
            inputs, chunk_bytes=chunk_bytes, documents=options.documents, field=options.field
        )
        check_output_is_no_source(plan, options)
        for note in plan.notes:
            executor.progress.note(note)
        settings = config.as_dict() if config is not None else {"counting": asdict(counting)}
        run = record(settings, plan, options, chunk_bytes)
        identity = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:32]
        made = None
        if root is not None and is_local(root) and not os.path.exists(os.path.dirname(root)):
            made = os.path.dirname(root)
        if plan.reads_stdin:
            root = None  # what has been read from a pipe is gone
        directory = cls(root, plan, identity)
        directory._made_output = made
        if root is not None:
            if earlier is None:
                text = json.dumps(run, indent=1)
                storage.write(storage.join(root, RUN_FILE), text.encode())
            else:
                refuse_other_run(earlier, run, str(options.output))
                directory._take_up(root, executor)
        return directory

    def _take_up(self, root: str, executor: Executor) -> None:
        from raybpe import storage

        found, others = [], 0
        for name in storage.names(root):
            if is_partial(name):
                partial, identity = read_header(storage.join(root, name))
                if identity == self.identity:
                    found.append(partial)
                else:
                    others += 1
        for partial in sorted(found, key=lambda one: (-len(one.chunks), one.uri)):
            if not partial.chunks & self.covered:
                self._partials.append(partial)
                self.covered |= partial.chunks
        self.covered_before = frozenset(self.covered)
        if others:
            executor.progress.note(
                f"{others:,} partial counts were made by another plan of the inputs, for example "
                "another version's, and are not used"
            )
        if self.covered:
            executor.progress.note(
                f"resuming: {len(self.covered):,} of {len(self.plan.chunks):,} chunks are counted"
            )

    def partials(self) -> list[Partial]:
        """Saved work; no two cover the same chunk."""
        return list(self._partials)

    def partial_uri(self, chunks: Sequence[int]) -> str:
        """Where the counts of these chunks go."""
        from raybpe import storage

        assert self.root is not None
        name = hashlib.sha256(",".join(map(str, sorted(chunks))).encode()).hexdigest()[:20]
        return storage.join(self.root, f"partial-{name}.arrow")

    def save_partial(self, chunks: Sequence[int], parts: Sequence[Columns], tally: Tally) -> None:
        """Save counts by hash partition; when this returns, a kill does not lose them."""
        from raybpe.counts.arrow import to_arrow

        uri = self.partial_uri(chunks)
        write_partial(uri, self.identity, chunks, [to_arrow(part) for part in parts], tally)
        self.note_saved(Partial(uri, frozenset(chunks), tally, sum(part.nbytes for part in parts)))

    def note_saved(self, partial: Partial) -> None:
        """Take a partial that a thread or task has written into account; threads may all call."""
        with self._lock:
            if any(partial.chunks < one.chunks for one in self._partials):
                return  # it comes late: a sum that it is part of is saved already
            self._partials = [one for one in self._partials if not one.chunks & partial.chunks]
            self._partials.append(partial)
            self.covered |= partial.chunks

    @contextmanager
    def used(self, progress: Progress) -> Iterator[None]:
        """The length of a run; at its end nothing stays but finished work of one that failed."""
        try:
            yield
        except BaseException:
            with suppress(RaybpeError, OSError):
                if self.covered:
                    progress.note(
                        f"{len(self.covered):,} of {len(self.plan.chunks):,} chunks are counted "
                        "and saved; the same command goes on from there"
                    )
                if self.root is not None and not _holds_work(self.root):
                    self._remove()
                if self._made_output is not None:
                    os.rmdir(self._made_output)  # which fails if something is in it
            raise
        self._remove()

    def _remove(self) -> None:
        if self.root is not None:
            from raybpe import storage

            storage.delete(self.root)


def _beside(file: str) -> str | None:
    if is_local(file) and os.path.exists(file) and not os.path.isfile(file):
        return None  # a device or a pipe
    path, query = split_query(file)
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}{FOLDER}{query}"


def _holds_work(root: str) -> bool:
    from raybpe import storage

    return any(map(is_partial, storage.names(root)))
