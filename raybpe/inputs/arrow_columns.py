"""Text columns of Arrow arrays as blocks, without copying where the buffers allow it.

Strings and bytes of every layout are taken: `string`, `large_string`, `binary`, `large_binary`
as they are; views, dictionaries and fixed-size binary are brought into the plain layout first.
A null is no document and is counted. The documents of a block lie where Arrow holds them; a
block is copied only when fewer than `PADDING_BYTES` readable bytes follow it, which is the case
for the last one of an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from raybpe.block import PADDING_BYTES, Block
from raybpe.errors import InputError
from raybpe.inputs.documents import ReadStats
from raybpe.inputs.pieces import READ_BYTES

_WIDTHS: dict[pa.DataType, Any] = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}


def find_column(data: Any, field: str, source: str) -> Any:
    """The column of a table or record batch with this name, or with this dotted path.

    Raises:
        InputError: there is none, or several; its message names the columns.
    """
    parts = field.split(".")
    check_name(data.schema.names, field, source)
    check_name(data.schema.names, parts[0], source)
    if field in data.schema.names:
        return data.column(field)
    if parts[0] in data.schema.names:
        column = data.column(parts[0])
        for part in parts[1:]:
            column = _child(column, part)
            if column is None:
                break
        else:
            return column
    raise InputError(
        f"{source} has no column {field!r}; its columns are "
        f"{', '.join(data.schema.names) or 'none'}. Name the text with --field"
    )


def check_name(names: Sequence[str], field: str, source: str) -> None:
    """Refuse a name that several columns have."""
    if (number := names.count(field)) > 1:
        raise InputError(
            f"{source} has {number} columns {field!r}, so which holds the text is not known; "
            "rename or drop the others"
        )


def _child(column: Any, name: str) -> Any:
    if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
        return None
    import pyarrow.compute as pc

    return pc.struct_field(column, name)  # null where the parent is null


def check_field(schema: pa.Schema, field: str, source: str) -> None:
    """Refuse a schema without such a text column before anything is read."""
    column = find_column(schema.empty_table(), field, source)
    _plain(pa.array([], column.type), source)


def array_blocks(array: pa.Array, source: str, stats: ReadStats) -> Iterator[Block]:
    """Blocks of about 4 MB of the non-null values of one array.

    Raises:
        InputError: it does not hold text or bytes, or is corrupt.
    """
    _validate(array, source, full=False)  # sizes of buffers; looks at no value
    array = _plain(array, source)
    stats.nulls += array.null_count
    rows = len(array)
    if array.null_count == rows:
        return
    offsets, data = _text(array, source)
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    if array.null_count:
        kept = array.is_valid().to_numpy(zero_copy_only=False)
        starts, ends = starts[kept], ends[kept]
    # Rows whose text begins in the same stretch of READ_BYTES go into one block.
    stretch = (starts - starts[0]) // READ_BYTES
    edges = np.flatnonzero(np.diff(stretch)) + 1
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(starts)], strict=True):
        yield _slice(data, starts[first:last], ends[first:last], source)


def _text(array: pa.Array, source: str) -> tuple[Any, Any]:
    """Where the values of an array of the plain layout begin and end, and their bytes.

    Raises:
        InputError: they lie outside the bytes or overlap, which Arrow does not look at.
    """
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer or b"", _WIDTHS[array.type])
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    ordered = bool((offsets[1:] >= offsets[:-1]).all())
    if len(offsets) and not (ordered and offsets[0] >= 0 and offsets[-1] <= len(data)):
        raise _corrupt(source, "texts of its column lie outside its bytes")
    return offsets, data


def _corrupt(source: str, reason: object) -> InputError:
    return InputError(f"{source} is corrupt: {reason}; copy it again")


def _slice(data: Any, starts: Any, ends: Any, source: str) -> Block:
    low, high = int(starts[0]), int(ends[-1])
    if high + PADDING_BYTES <= len(data):
        text = data[low : high + PADDING_BYTES]
    else:
        text = np.zeros(high - low + PADDING_BYTES, np.uint8)
        text[: high - low] = data[low:high]
    return Block(text, starts - low, ends - low, source, None)


def _plain(array: pa.Array, source: str) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if kind in _WIDTHS:
        return array
    if pa.types.is_dictionary(kind):
        plain = _large(kind.value_type, source)
        values = _cast(array.dictionary, plain, source)  # Arrow cannot look up views
        return pa.DictionaryArray.from_arrays(array.indices, values).cast(plain)
    return _cast(array, _large(kind, source), source)


def _cast(array: pa.Array, kind: pa.DataType, source: str) -> pa.Array:
    """Bring an array into the plain layout, once it is known to keep within its bytes."""
    types = pa.types
    if array.type in _WIDTHS:
        _text(array, source)
    elif types.is_string_view(array.type) or types.is_binary_view(array.type):
        # As bytes, because what is not UTF-8 is no fault here.
        _validate(array.view(pa.binary_view()), source, full=True)
    return array.cast(kind)


def _validate(array: pa.Array, source: str, *, full: bool) -> None:
    try:
        array.validate(full=full)
    except pa.ArrowException as error:
        raise _corrupt(source, error) from error


def _large(kind: pa.DataType, source: str) -> pa.DataType:
    """The plain layout with 64-bit offsets of a type of text."""
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.large_string()
    if types.is_null(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pa.large_binary()
    if types.is_binary(kind) or types.is_large_binary(kind):
        return pa.large_binary()
    raise InputError(
        f"{source}: the column holds {kind}, not text; name a column of strings or bytes with "
        "--field"
    )
