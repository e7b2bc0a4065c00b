"""Counts as an Arrow table: the same rows as `Columns`, no copies either way.

The schema is ``pretoken: large_binary, count: int64``; 64-bit offsets, because the pretokens of a
large corpus pass 2 GiB. Apart from `columns` because a local training needs no Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from raybpe.counts.columns import Columns

SCHEMA = pa.schema([("pretoken", pa.large_binary()), ("count", pa.int64())])


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
