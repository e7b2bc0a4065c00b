"""Text columns of Parquet and Arrow IPC files. Only the column asked for is read.

A Parquet file is divided by row groups, an Arrow IPC file by record batches; an IPC stream (what
Hugging Face `datasets` caches) cannot be divided. Rows of a row group are decoded page by page in
batches of about 4 MB, so that one huge row group needs no more memory than a small one: a page,
a dictionary page and a batch (measured: 56 MB of Arrow memory for one row group of 400 MB whose
writer made pages of 14 MB; usual pages are 1 MB). A record batch of an IPC file is mapped when it
is local and not compressed, else held whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from raybpe.block import Block
from raybpe.errors import InputError
from raybpe.filesystems import explain, is_local, open_input, shown
from raybpe.inputs.arrow_columns import array_blocks, check_field, find_column
from raybpe.inputs.documents import ReadStats
from raybpe.inputs.pieces import READ_BYTES
from raybpe.inputs.plan import ALL, Part

LOCAL_BUFFER_BYTES = 2**20
REMOTE_BUFFER_BYTES = 8 * 2**20  # each read is a request that takes tens of milliseconds
MOST_ROWS = 2**17
_MAGIC = b"ARROW1"


@contextmanager
def _explained(uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain(uri, error) from error
    # Of damaged files Arrow takes sizes and names as they are, and Python refuses them.
    except (pa.ArrowException, ValueError, LookupError, OverflowError) as error:
        reason = str(error) or type(error).__name__
        raise InputError(
            f"{shown(uri)} is corrupt or cut off: {reason}; copy or write it again"
        ) from error


def divide_parquet(part: Part, chunk_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Runs of row groups of about `chunk_bytes`: (first, one past the last, bytes in the file).

    Raises:
        InputError: the file is no Parquet file or lacks the column.
    """
    with _explained(part.uri), open_input(part.uri) as file:
        metadata = pq.ParquetFile(file).metadata
        check_field(metadata.schema.to_arrow_schema(), part.field, shown(part.uri))
        sizes = [_compressed(metadata.row_group(i)) for i in range(metadata.num_row_groups)]
    whole = max(1, sum(sizes))
    ends = [sum_so_far * part.bytes // whole for sum_so_far in accumulate(sizes)]
    first, done = 0, 0
    for number, end in enumerate(ends):
        last = number + 1 == len(ends)
        if last or ends[number + 1] - done > chunk_bytes:
            yield first, number + 1, end - done
            first, done = number + 1, end


def _compressed(group: Any) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def divide_arrow(part: Part, chunk_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Runs of record batches of about `chunk_bytes`, as `divide_parquet`; all of a stream."""
    with _explained(part.uri), open_input(part.uri) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            yield 0, ALL, part.bytes
            return
        file.seek(0)
        reader = pa.ipc.open_file(file)
        check_field(reader.schema, part.field, shown(part.uri))
        batches = reader.num_record_batches
    step = max(1, batches * chunk_bytes // max(part.bytes, 1))
    for first in range(0, batches, step):
        last = min(first + step, batches)
        yield first, last, part.bytes * last // batches - part.bytes * first // batches


def table_part(part: Part, stats: ReadStats) -> Iterator[Block]:
    """Documents of a part of a Parquet or Arrow IPC file."""
    with _explained(part.uri), open_input(part.uri, mapped=part.format == "arrow") as file:
        yield from table_blocks(file, part, shown(part.uri), stats)


def table_blocks(file: Any, part: Part, source: str, stats: ReadStats) -> Iterator[Block]:
    """Documents of an open Parquet or Arrow IPC file."""
    with _explained(part.uri):
        if part.format == "parquet":
            batches = _parquet_batches(file, part, source)
        else:
            batches = _arrow_batches(file, part, source)
        for place, batch in batches:
            yield from array_blocks(find_column(batch, part.field, place), place, stats)


def _parquet_batches(file: Any, part: Part, source: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Batches, each with where it is found."""
    size = LOCAL_BUFFER_BYTES if is_local(part.uri) else REMOTE_BUFFER_BYTES
    parquet = pq.ParquetFile(file, buffer_size=size, pre_buffer=False)
    check_field(parquet.schema_arrow, part.field, source)
    last = parquet.num_row_groups if part.end == ALL else part.end
    for group in range(part.start, last):
        metadata = parquet.metadata.row_group(group)
        text_bytes = 1 + sum(
            column.total_uncompressed_size
            for column in map(metadata.column, range(metadata.num_columns))
            if column.path_in_schema == part.field
        )
        rows = max(1, min(MOST_ROWS, READ_BYTES * metadata.num_rows // text_bytes))
        row = 0
        for batch in parquet.iter_batches(
            batch_size=rows, row_groups=[group], columns=[part.field], use_threads=False
        ):
            end = row + batch.num_rows
            yield f"{source}, row group {group:,}, rows {row:,} to {end:,}", batch
            row = end


def _arrow_batches(file: Any, part: Part, source: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Record batches, each with where it is found."""
    is_file = file.read(len(_MAGIC)) == _MAGIC
    file.seek(0)
    opener = pa.ipc.open_file if is_file else pa.ipc.open_stream
    schema = opener(file).schema
    check_field(schema, part.field, source)
    top = part.field if part.field in schema.names else part.field.split(".")[0]
    options = pa.ipc.IpcReadOptions(
        included_fields=[schema.get_field_index(top)], use_threads=False
    )
    file.seek(0)
    reader = opener(file, options=options)
    if is_file:
        last = reader.num_record_batches if part.end == ALL else part.end
        for number in range(part.start, last):
            yield f"{source}, record batch {number:,}", reader.get_batch(number)
    else:
        for number, batch in enumerate(reader):
            yield f"{source}, record batch {number:,}", batch
