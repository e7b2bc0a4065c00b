"""Shard files: written in a stream, read back in pieces.

    shard-00000.npy       one-dimensional array of ids
    shard-00000.bin       the same without a header (the nanoGPT convention): ids one after the
                          other, so that shards can be joined with `cat`
    shard-00000.parquet   a row per document: `ids`, a list of uint16 or uint32

Ids are little-endian. Memory: one piece in flat files; one row group in tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from raybpe import storage
from raybpe.errors import InputError
from raybpe.flow.dataset.steps import EncodeConfig, Piece

HEADER_BYTES = 128  # of .npy files; padded, so that the length can be filled in at the end
READ_IDS = 1 << 20
ROW_GROUP_IDS = 1 << 22


@dataclass(frozen=True)
class Shard:
    """A finished shard: file name, what is in it, and what of its inputs is not."""

    file: str
    documents: int
    tokens: int
    text_bytes: int
    nulls: int = 0
    members_not_read: int = 0


def shard_name(index: int, config: EncodeConfig) -> str:
    """File name of a shard."""
    return f"shard-{index:05d}.{config.format}"


def write_shard(folder: str, name: str, config: EncodeConfig, pieces: Iterable[Piece]) -> Shard:
    """Write a shard as a whole.

    Args:
        pieces: what is in it, from the beginning; taken once.

    Raises:
        OutputError: the shard cannot be written.
    """
    done: list[Shard] = []
    storage.write_stream(
        storage.join(folder, name), lambda sink: done.append(_fill(sink, name, config, pieces))
    )
    return done[0]


def _fill(sink: Any, name: str, config: EncodeConfig, pieces: Iterable[Piece]) -> Shard:
    documents = tokens = text_bytes = nulls = members_not_read = 0
    table = _TableWriter(sink, config) if config.format == "parquet" else None
    if config.format == "npy":
        sink.write(npy_header(config.dtype, 0))
    for piece in pieces:
        documents += piece.documents
        tokens += len(piece.ids)
        text_bytes += piece.text_bytes
        nulls += piece.nulls
        members_not_read += piece.members_not_read
        if table is not None:
            table.add(piece)
        else:
            sink.write(np.ascontiguousarray(piece.ids).view(np.uint8).data)
    if table is not None:
        table.close()
    if config.format == "npy":
        sink.seek(0)
        sink.write(npy_header(config.dtype, tokens))
        sink.seek(0, 2)
    return Shard(name, documents, tokens, text_bytes, nulls, members_not_read)


def npy_header(dtype: str, length: int) -> bytes:
    """Header of a one-dimensional .npy file, always `HEADER_BYTES` long (format version 1.0)."""
    kind = np.dtype(dtype).newbyteorder("<").str
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({length},), }}"
    space = HEADER_BYTES - 10 - len(text) - 1
    body = (text + " " * space + "\n").encode("latin-1")
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


class _TableWriter:
    """Rows of ids in row groups of about `ROW_GROUP_IDS`."""

    def __init__(self, sink: Any, config: EncodeConfig) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.type = pa.uint16() if config.dtype == "uint16" else pa.uint32()
        self.schema = pa.schema([("ids", pa.large_list(self.type))])
        self.writer = pq.ParquetWriter(sink, self.schema, compression="zstd")
        self.pending: list[Any] = []
        self.held = 0

    def add(self, piece: Piece) -> None:
        import pyarrow as pa

        assert piece.ends is not None
        offsets = np.concatenate([np.zeros(1, np.int64), piece.ends])
        rows = pa.LargeListArray.from_arrays(
            pa.array(offsets, pa.int64()), pa.array(piece.ids, self.type)
        )
        self.pending.append(pa.table([rows], schema=self.schema))
        self.held += len(piece.ids)
        if self.held >= ROW_GROUP_IDS:
            self.flush()

    def flush(self) -> None:
        import pyarrow as pa

        if self.pending:
            table = pa.concat_tables(self.pending).combine_chunks()
            self.writer.write_table(table, row_group_size=max(1, len(table)))
        self.pending, self.held = [], 0

    def close(self) -> None:
        self.flush()
        self.writer.close()


def read_ids(path: Path, dtype: str) -> Iterator[npt.NDArray[Any]]:
    """The ids in a shard: pieces of a flat file, or rows of a table.

    Args:
        dtype: of a `.bin` file, which does not say.

    Raises:
        InputError: the file is missing or is no shard.
    """
    try:
        if path.suffix == ".npy":
            ids = np.load(path, mmap_mode="r", allow_pickle=False)
            if ids.ndim != 1 or ids.dtype.kind not in "ui":
                raise InputError(f"{path} holds no one-dimensional array of ids")
        elif path.suffix == ".bin":
            if path.stat().st_size % np.dtype(dtype).itemsize:
                raise InputError(f"{path} ends within an id of {dtype}; it was cut off")
            ids = np.fromfile(path, dtype) if path.stat().st_size == 0 else np.memmap(
                path, dtype, mode="r")  # fmt: skip
        else:
            yield from _rows(path)
            return
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot read {path} as a shard of ids: {error}") from error
    for start in range(0, len(ids), READ_IDS):
        yield ids[start : start + READ_IDS]


def _rows(path: Path) -> Iterator[npt.NDArray[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        kind = schema.field(0).type if schema.names == ["ids"] else pa.null()
        lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if not lists or not pa.types.is_integer(kind.value_type):
            raise InputError(
                f"{path} has no single column `ids` of lists of integers, so it is no shard of a "
                "data set"
            )
        for batch in file.iter_batches(batch_size=1024):
            column = batch.column(0)
            offsets = np.asarray(column.offsets)
            if column.null_count or column.values.null_count:
                raise InputError(f"{path} has rows without ids, so it is no shard of a data set")
            values = np.asarray(column.values)
            for start, end in pairwise(offsets):
                yield values[start:end]
    except pa.ArrowException as error:
        raise InputError(f"cannot read {path} as a shard of ids: {error}") from error
