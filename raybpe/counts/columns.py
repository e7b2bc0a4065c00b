"""Counts as three plain arrays, and the same rows as an Arrow table. No copies either way.

Row i is ``data[offsets[i]:offsets[i + 1]]``, seen ``counts[i]`` times. Arrow's form is the schema
``pretoken: large_binary, count: int64``; 64-bit offsets, because the pretokens of a large corpus
pass 2 GiB. Row order means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SCHEMA = pa.schema([("pretoken", pa.large_binary()), ("count", pa.int64())])


class Columns(NamedTuple):
    """Counts as plain arrays.

    Attributes:
        data: uint8, the pretokens' bytes one after the other.
        offsets: int64 (n + 1,), from 0 to ``len(data)``.
        counts: int64 (n,).
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.data.nbytes + self.offsets.nbytes + self.counts.nbytes


def to_arrow(columns: Columns) -> pa.Table:
    """The same rows as an Arrow table; shares the memory."""
    data, offsets, counts = columns
    pretokens = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    numbers = pa.Array.from_buffers(pa.int64(), len(counts), [None, pa.py_buffer(counts)])
    return pa.Table.from_arrays([pretokens, numbers], schema=SCHEMA)


def from_arrow(table: pa.Table) -> Iterator[Columns]:
    """The rows of an Arrow table in `SCHEMA`, one `Columns` per record batch that has any."""
    for batch in table.to_batches():
        if batch.num_rows == 0:
            continue
        pretokens, counts = batch.columns
        first, rows = pretokens.offset, len(pretokens)
        _, offset_buffer, data_buffer = pretokens.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64)[first : first + rows + 1]
        data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
        if offsets[0]:
            offsets = offsets - offsets[0]
        yield Columns(data, offsets, counts.to_numpy())


def concatenate(parts: Sequence[Columns]) -> Columns:
    """All rows of several tables; they are not added up."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part.data) for part in parts)])
    offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Columns(
        np.concatenate([np.zeros(0, np.uint8), *(part.data for part in parts)]),
        np.concatenate([*offsets, ends[-1:]]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *(part.counts for part in parts)]),
    )


def take(columns: Columns, rows: npt.NDArray[np.int64]) -> Columns:
    """The rows with these numbers, in this order."""
    starts = columns.offsets[:-1][rows]
    lengths = columns.offsets[1:][rows] - starts
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    # Byte j of the result comes from where its row starts, plus how far j is into the row.
    source = np.arange(offsets[-1])
    source += np.repeat(starts - offsets[:-1], lengths)
    return Columns(columns.data[source], offsets, columns.counts[rows])


def exact_sum(counts: npt.NDArray[np.int64]) -> int:
    """Sum that cannot wrap: the halves of up to 2**31 non-negative numbers fit 64 bits."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
