"""What an executor is, which one a run gets, and the counts that it hands on.

Imports neither Ray nor Numba: `auto` decides without loading what it does not need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.counts.columns import Columns, exact_sum
from raybpe.errors import ClusterError
from raybpe.flow.progress import Progress
from raybpe.flow.steps import Merged, Tally

if TYPE_CHECKING:
    from raybpe.counts.counts import Counts
    from raybpe.flow.run_directory import RunDirectory


@dataclass
class Counted:
    """Summed counts, on their way to merging.

    Attributes:
        tally: what was seen while counting.
        tables: the counts as `Columns`; tables share no pretoken.
        sources: URI and size in bytes of every input, sorted; size -1 for streams.
        resumed_chunks: chunks that an earlier run had counted.
        unicode: version of the Unicode data that the pattern was matched with; None for that of
            this process.
    """

    tally: Tally
    tables: Sequence[Columns]
    sources: Sequence[tuple[str, int]] = ()
    resumed_chunks: int = 0
    unicode: str | None = None

    def columns(self) -> Sequence[Columns]:
        """The tables in this process."""
        return self.tables

    def as_counts(self, config: CountConfig) -> Counts:
        """The same as a `Counts`, to save or look at."""
        import pyarrow as pa

        from raybpe.counts.arrow import to_arrow
        from raybpe.counts.counts import CountedSource, Counts

        table = pa.concat_tables([to_arrow(columns) for columns in self.columns()])
        sources = tuple(CountedSource(uri, size) for uri, size in self.sources)
        return Counts(table, config, sources)

    @classmethod
    def of_counts(cls, counts: Counts) -> Counted:
        """From counts made earlier."""
        from raybpe.counts.arrow import from_arrow

        tables = list(from_arrow(counts.table))
        tally = Tally(pretokens=sum(exact_sum(columns.counts) for columns in tables))
        sources = [(source.uri, source.size) for source in counts.sources]
        unicode = None if counts.config is None else counts.unicode
        return cls(tally, tables, sources, unicode=unicode)


class Executor(Protocol):
    """Counts chunks, adds counts up, and runs the merge loop; never decides anything."""

    name: str
    progress: Progress

    def chunk_bytes(self, options: RunOptions) -> int:
        """Nominal size of a chunk for this executor."""

    def count(self, directory: RunDirectory, config: CountConfig) -> Counted:
        """Count every chunk of the directory's plan that it does not hold yet; sum up."""

    def merge(self, counted: Counted, config: TrainConfig) -> Merged:
        """Run the merge loop to its end."""

    def describe(self) -> dict[str, Any]:
        """Executor, workers and versions, for the manifest."""


@contextmanager
def executor_for(options: RunOptions, progress: Progress) -> Iterator[Executor]:
    """The executor that the options ask for; what it started ends with the block.

    Raises:
        ClusterError: Ray is asked for, and is not installed or cannot be reached.
    """
    kind, reason = choose(options)
    if kind == "ray":
        try:
            from raybpe.flow.cluster import ray_executor
        except ImportError as error:
            raise ClusterError(
                f"--executor ray needs Ray, which cannot be imported ({error}) by "
                f'{sys.executable}: pip install "ray[default]" there, or use --executor local'
            ) from error

        with ray_executor(options, progress, reason) as executor:
            yield executor
    else:
        from raybpe.flow.local import local_executor

        with local_executor(options, progress) as executor:
            yield executor


def choose(options: RunOptions) -> tuple[str, str | None]:
    """`local` or `ray`, and why where `auto` decided for Ray."""
    if options.executor != "auto":
        return options.executor, None
    if options.address:
        return "ray", "--address was given"
    if os.environ.get("RAY_ADDRESS"):
        return "ray", "RAY_ADDRESS is set"
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return "ray", "Ray is running in this process"
    return "local", None
