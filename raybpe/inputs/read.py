"""Read the documents of a chunk as blocks of a few megabytes.

Every form goes through one of three ways: byte ranges and streams are cut into pieces (`pieces`)
and made into documents (`documents`); columns of tables are taken as they are (`tables`); tar
shards hand each member to the first way (`archives`).

Memory of one reader: 4 MB of text, plus what its form needs (decompression windows, one page of
a Parquet column), or twice the longest document or uncuttable stretch if that is more.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import cast

from raybpe.block import Block
from raybpe.errors import ChangedInputError
from raybpe.filesystems import RangeFile, shown
from raybpe.inputs.documents import ReadStats, documents_of
from raybpe.inputs.pieces import Cutter, cut_stream, cutter_of, file_range
from raybpe.inputs.plan import DIVISIBLE, STDIN, Chunk, Part


def read_blocks(chunk: Chunk, cutter: Cutter, stats: ReadStats | None = None) -> Iterator[Block]:
    """Documents of a chunk; a block is valid until the next one is taken.

    Args:
        chunk: what to read.
        cutter: finds safe cuts in text; a `Pretokenizer`.
        stats: where to add what was met.

    Raises:
        InputError: something cannot be read, with file and offset.
        ChangedInputError: a file's size is not what the plan saw.
        TransientError: a store failed again and again.
    """
    stats = ReadStats() if stats is None else stats
    for part in chunk.parts:
        yield from _read_part(part, cutter, stats)


def _read_part(part: Part, cutter: Cutter, stats: ReadStats) -> Iterator[Block]:
    if part.uri == STDIN:
        stdin = cast(io.BufferedReader, sys.stdin.buffer)
        pieces = cut_stream(stdin.readinto, cutter_of(part.format, cutter), "standard input")
        yield from documents_of(pieces, part.format, part.field, stats)
        return
    with open_part(part) as file:
        if part.format in ("parquet", "arrow"):
            from raybpe.inputs.tables import table_part

            yield from table_part(part, stats)
        elif part.compression is None and part.format in DIVISIBLE:
            chosen = cutter_of(part.format, cutter)
            pieces = file_range(file, part.start, part.end, chosen, shown(part.uri))
            yield from documents_of(pieces, part.format, part.field, stats)
        else:
            from raybpe.inputs.archives import stream_blocks, tar_blocks
            from raybpe.inputs.streams import open_stream

            with open_stream(file, part.compression) as stream:
                if part.format == "tar":
                    yield from tar_blocks(stream, part, cutter, stats)
                else:
                    yield from stream_blocks(stream, part.format, part, cutter, stats)


def open_part(part: Part) -> RangeFile:
    """Open a part's file and check that it is as long as it was.

    Raises:
        ChangedInputError: it is not.
    """
    file = RangeFile(part.uri)
    if file.size != part.source_size:
        file.close()
        raise ChangedInputError(
            f"{shown(part.uri)} has {file.size:,} bytes but had {part.source_size:,} when the run "
            "was planned; start again when nothing writes to it"
        )
    return file
