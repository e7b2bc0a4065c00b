"""Parts of inputs to ids, as pure functions.

Text is cut at the safe cuts of the pattern, so ids of the pieces, one after the other, are the ids
of the whole. In flat shards the end-of-text id stands between documents: before every document but
the first of the data set. In tables a document is a row, and a text is taken apart at the
end-of-text token that it holds.

Memory: a block of the reader, and its ids; for tables at least one document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from raybpe.block import Block
from raybpe.flow.dataset.cutters import DocumentCutter, TextCutter
from raybpe.inputs import Chunk, Cutter, Part, ReadStats, read_blocks
from raybpe.inputs.pieces import LineCutter
from raybpe.inputs.plan import split_bytes
from raybpe.pretokenize import pretokenizer
from raybpe.tokenizer.tokenizer import Tokenizer

UNIT_BYTES = 4 * 2**20  # what one thread encodes at a time: one block of the reader

ShardFormat = Literal["npy", "bin", "parquet"]


@dataclass(frozen=True)
class EncodeConfig:
    """What decides the shards of given inputs.

    Attributes:
        format: `npy`, `bin` (the same without a header) or `parquet` (a row per document).
        dtype: type of one id, `uint16` or `uint32`, little-endian.
        eot_token: text of the token between documents; None for none.
        eot_id: its id.
    """

    format: ShardFormat
    dtype: Literal["uint16", "uint32"]
    eot_token: str | None
    eot_id: int | None


@dataclass(frozen=True)
class Piece:
    """Some ids of a shard, in order.

    Attributes:
        ids: uint16 or uint32 (n,).
        ends: int64, for tables: where each row ends in `ids`.
        documents: documents that begin in it.
        text_bytes: bytes of text that it encodes.
        nulls, members_not_read: what was passed over since the piece before; see `ReadStats`.
    """

    ids: npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
    ends: npt.NDArray[np.int64] | None
    documents: int
    text_bytes: int
    nulls: int = 0
    members_not_read: int = 0


@dataclass(frozen=True)
class Unit:
    """Consecutive parts that are encoded at a time; `first` begins the data set."""

    parts: tuple[Part, ...]
    first: bool


def units_of(chunk: Chunk, first: bool) -> Iterator[Unit]:
    """Cut a shard's chunk into units of about `UNIT_BYTES`; what cannot be cut stays whole."""
    pending: list[Part] = []
    size = 0
    for part in chunk.parts:
        divisible = part.compression is None and part.format in ("text", "lines", "jsonl")
        pieces = split_bytes(part, UNIT_BYTES) if divisible and part.end > part.start else [part]
        for piece in pieces:
            if pending and size + piece.bytes > UNIT_BYTES:
                yield Unit(tuple(pending), first)
                pending, size, first = [], 0, False
            pending.append(piece)
            size += max(piece.bytes, 0)
    if pending:
        yield Unit(tuple(pending), first)


def encode_unit(unit: Unit, tokenizer: Tokenizer, config: EncodeConfig) -> Iterator[Piece]:
    """The ids of a unit.

    Raises:
        InputError: a part cannot be read.
        TransientError: reading failed in a way that may pass.
    """
    in_rows = config.format == "parquet"
    first = unit.first
    stats = ReadStats()
    for part in unit.parts:
        cutter = _cutter(part, tokenizer, config)
        for block in read_blocks(Chunk(0, (part,)), cutter, stats):
            if in_rows and part.format == "text":
                block = split_documents(block, config.eot_token)
            if len(block.starts) == 0:
                continue
            ids, ends = tokenizer.encode_documents(block)
            size = int((block.ends - block.starts).sum())
            if in_rows:
                yield Piece(_as(ids, config), ends, len(ends), size)
                continue
            documents = len(ends) - block.continued
            if config.eot_id is not None:
                # One that ends a text, where no piece of it ends but the last, begins nothing.
                found = np.flatnonzero(ids == config.eot_id)
                documents += len(found) - int(np.isin(found + 1, ends).sum())
                skip = 1 if block.continued or first else 0
                places = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[skip:]
                if len(places):
                    ids = np.insert(ids, places, config.eot_id)
            first = False
            yield Piece(_as(ids, config), None, documents, size)
    if stats.nulls or stats.members_not_read:
        nothing = _as(np.zeros(0, np.uint16), config)
        rows = np.zeros(0, np.int64) if in_rows else None
        yield Piece(nothing, rows, 0, 0, stats.nulls, stats.members_not_read)


def encode_chunk(
    chunk: Chunk, first: bool, tokenizer: Tokenizer, config: EncodeConfig
) -> Iterator[Piece]:
    """The ids of a shard, unit by unit."""
    for unit in units_of(chunk, first):
        yield from encode_unit(unit, tokenizer, config)


def _as(ids: npt.NDArray[np.generic], config: EncodeConfig) -> npt.NDArray[np.uint16]:
    return ids.astype(np.dtype(config.dtype).newbyteorder("<"), copy=False)


def _cutter(part: Part, tokenizer: Tokenizer, config: EncodeConfig) -> Cutter:
    if config.format == "parquet":
        return LineCutter() if part.documents == "lines" else DocumentCutter(config.eot_token)
    cutter = pretokenizer(tokenizer.pattern, tuple(tokenizer.special_tokens))
    return cutter if config.eot_token is None else TextCutter(cutter, config.eot_token)


def split_documents(block: Block, eot_token: str | None) -> Block:
    """The documents of a text, without the end-of-text tokens between them.

    What follows the last one is a document only if it is not empty.
    """
    end = int(block.ends[-1])
    if eot_token is None:
        return block
    mark = eot_token.encode()
    lengths = np.array(list(map(len, block.data[:end].tobytes().split(mark))), np.int64)
    ends = np.cumsum(lengths + len(mark)) - len(mark)
    starts = ends - lengths
    if lengths[-1] == 0:
        starts, ends = starts[:-1], ends[:-1]
    return Block(block.data, starts, ends, block.source, block.offset)
