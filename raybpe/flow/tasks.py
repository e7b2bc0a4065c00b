"""The remote functions: each runs one step of `steps` in a worker and says what it took.

Every task is a pure function of its arguments, so Ray may run it again after a lost node, and
`reduction` may after a restart. Small figures come first in the results and travel inline to the
driver; tables stay in the object store where they were made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from raybpe.config import CountConfig
from raybpe.counts.arrow import from_arrow, to_arrow
from raybpe.counts.columns import Columns
from raybpe.errors import RaybpeError
from raybpe.flow import checks, steps
from raybpe.flow.memory import peak_memory
from raybpe.flow.steps import Tally
from raybpe.flow.warm import warm_counting

if TYPE_CHECKING:
    import pyarrow as pa

    from raybpe.inputs import Chunk


def count_chunks(chunks: Sequence[Chunk], config: CountConfig, partitions: int) -> tuple[Any, ...]:
    """(tally, bytes of the tables), and one table per hash partition, of all chunks together."""
    from raybpe.counts.pretoken_table import PretokenTable

    warm_counting(config)
    table, tally = PretokenTable(), Tally()
    for chunk in chunks:
        try:
            tally.add(steps.count_chunk(chunk, config, table))
        except (RaybpeError, MemoryError):
            raise
        except Exception as error:
            raise RaybpeError(f"counting {checks.describe(chunk)} failed: {error!r}") from error
    parts = steps.take_out(table, config, partitions, tally)
    tally.peak_memory_bytes = peak_memory()
    tables = [to_arrow(part) for part in parts]
    return ((tally, sum(part.nbytes for part in parts)), *tables)


def add_counts(partition: int, uris: Sequence[str], *tables: pa.Table) -> tuple[Any, pa.Table]:
    """(peak memory, bytes of the table), and the sum of one hash partition.

    Args:
        uris: partials in the run directory to add besides `tables`.
    """
    from raybpe.flow.partials import read_partial

    def rows() -> Iterator[Columns]:
        for table in tables:
            yield from from_arrow(table)
        for uri in uris:
            yield from read_partial(uri, partition)

    total = steps.add_counts(rows())
    return (peak_memory(), total.nbytes), to_arrow(total)


def save_partial(
    uri: str, identity: str, chunks: Sequence[int], tally: Tally, *tables: pa.Table
) -> None:
    """Write one sum, all hash partitions of it, to the run directory."""
    from raybpe.flow.partials import write_partial

    write_partial(uri, identity, chunks, tables, tally)
