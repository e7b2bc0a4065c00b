"""Documents that are already in this process: strings, bytes, columns of tables and data sets.

    strings or bytes             any iterable of them; a string becomes its UTF-8 bytes
    Arrow                        Table, RecordBatch, RecordBatchReader, ChunkedArray, Array
    pandas, Polars               DataFrame (its column `field`) or Series
    Hugging Face datasets        Dataset or IterableDataset, in memory, mapped or streamed
    Ray Data                     Dataset; blocks are pulled into this process one by one
    anything else in Arrow       what has `__arrow_c_stream__`, such as a DuckDB relation

A null is no document and is counted. None of these libraries is imported here: an object is known
by what it offers. Nothing is held but the batch being read: about 4 MB of strings, or one batch
of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from raybpe.block import Block
from raybpe.errors import InputError
from raybpe.given import items
from raybpe.inputs.arrow_columns import array_blocks, check_name, find_column
from raybpe.inputs.documents import ReadStats, pack
from raybpe.inputs.pieces import READ_BYTES

SOURCE = "<memory>"
BATCH_ROWS = 2**14  # of a data set, whose rows may be whole books


def iterator_blocks(
    texts: Iterable[str | bytes] | Any, stats: ReadStats | None = None, field: str = "text"
) -> Iterator[Block]:
    """Blocks of documents in memory; a block is valid until the next one is taken.

    Args:
        texts: strings, bytes, or one of the objects that the module lists.
        stats: where to add what was met.
        field: name of the column, where there are columns.

    Raises:
        InputError: an item is neither text nor bytes, or there is no such column.
    """
    stats = ReadStats() if stats is None else stats
    blocks = _column_blocks(texts, field, stats)
    yield from _packed(texts, stats) if blocks is None else blocks


def _packed(texts: Iterable[Any], stats: ReadStats) -> Iterator[Block]:
    batch: list[bytes] = []
    size = 0
    for number, text in enumerate(items("texts", texts, "an iterable of texts, or a data set")):
        if isinstance(text, str):
            # A lone surrogate becomes bytes that are not UTF-8: the policy decides about them.
            document = text.encode("utf-8", "surrogatepass")
        elif isinstance(text, (bytes, bytearray, memoryview)):
            document = bytes(text)
        elif text is None:
            stats.nulls += 1
            continue
        else:
            raise InputError(
                f"item {number:,} of the iterator is a {type(text).__name__}; give str or bytes, "
                "for example (row['text'] for row in rows)"
            )
        batch.append(document)
        size += len(document)
        if size >= READ_BYTES:
            yield pack(batch, SOURCE)
            batch, size = [], 0
    if batch:
        yield pack(batch, SOURCE)


def _column_blocks(data: Any, field: str, stats: ReadStats) -> Iterator[Block] | None:
    """Blocks of something with columns; None if this is a plain iterable."""
    library = type(data).__module__.partition(".")[0]
    if isinstance(data, Mapping):
        raise InputError(
            f"a {type(data).__name__} is not a list of texts; give one of its values "
            f"({', '.join(map(repr, list(data)[:5]))}), or its counts to train_from_counts"
        )
    if isinstance(data, pa.Array):
        return array_blocks(data, SOURCE, stats)
    if isinstance(data, pa.ChunkedArray):
        return _arrays(iter(data.chunks), stats)
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return _tables([data], field, stats)
    if library == "datasets" and hasattr(data, "with_format"):
        return _tables(_select(data, field).with_format("arrow").iter(BATCH_ROWS), field, stats)
    if library == "ray" and hasattr(data, "iter_batches"):
        return _tables(data.iter_batches(batch_size=None, batch_format="pyarrow"), field, stats)
    if library == "pandas":
        return _arrays(_pandas_slices(data, field), stats)
    if library == "polars" and hasattr(data, "collect"):
        raise InputError("a Polars LazyFrame has not been computed; give lazy_frame.collect()")
    if hasattr(data, "__arrow_c_stream__"):
        if hasattr(data, "columns") or isinstance(data, pa.RecordBatchReader):
            return _tables(pa.RecordBatchReader.from_stream(data), field, stats)
        return _arrays(iter(pa.chunked_array(data).chunks), stats)
    return None


def _select(data: Any, field: str) -> Any:
    """Leave other columns of a data set unread, where it says which it has."""
    top = field if field in (data.column_names or ()) else field.split(".")[0]
    return data.select_columns([top]) if top in (data.column_names or ()) else data


def _tables(tables: Iterable[Any], field: str, stats: ReadStats) -> Iterator[Block]:
    for table in tables:
        column = find_column(table, field, SOURCE)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        yield from _arrays(iter(chunks), stats)


def _arrays(arrays: Iterator[pa.Array], stats: ReadStats) -> Iterator[Block]:
    for array in arrays:
        yield from array_blocks(array, SOURCE, stats)


def _pandas_slices(data: Any, field: str) -> Iterator[pa.Array]:
    if hasattr(data, "columns"):
        if field not in data.columns:
            raise InputError(
                f"the DataFrame has no column {field!r}; its columns are "
                f"{', '.join(map(str, data.columns))}. Name the text with field="
            )
        check_name(list(data.columns), field, SOURCE)
        data = data[field]
    for start in range(0, len(data), BATCH_ROWS):
        try:
            array = pa.array(data.iloc[start : start + BATCH_ROWS], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(
                f"rows {start:,} to {start + BATCH_ROWS:,} of the column hold something else than "
                f"text: {error}"
            ) from error
        yield from array.chunks if isinstance(array, pa.ChunkedArray) else [array]
