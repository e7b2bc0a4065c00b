"""Tar shards: each member is read by its own suffix, as if it lay in a folder.

A shard is read once from start to end, so it cannot be divided, and members may be compressed
themselves. Left out and counted, as in folders: hidden and binary members, links and devices.
Tables inside a shard are held in memory as a whole, because they are not read from start to end;
everything else streams.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from raybpe.block import Block
from raybpe.inputs.documents import JSON_HEAD_BYTES, ReadStats, documents_of, holds_records
from raybpe.inputs.forms import BINARY_SUFFIXES, SNIFF_BYTES, form_of, suffix
from raybpe.inputs.pieces import Cutter, cut_stream, cutter_of
from raybpe.inputs.plan import ALL, Part
from raybpe.inputs.streams import Stream, open_member
from raybpe.inputs.tables import table_blocks
from raybpe.inputs.tapes import Tape, members


def tar_blocks(stream: Stream, part: Part, cutter: Cutter, stats: ReadStats) -> Iterator[Block]:
    """Documents of the members of an open tar file.

    Raises:
        InputError: the archive is cut off or corrupt, or a member cannot be read.
    """
    tape = Tape(stream)
    try:
        for member, file in members(tape):
            if member.isdir():
                continue
            if file is None or _left_out(member.name):
                stats.members_not_read += 1
                continue
            name = f"{stream.name}: {member.name}"
            yield from _member_blocks(file, name, member.name, part, cutter, stats)
    except tarfile.TarError as error:
        raise tape.damage(error) from error


def _left_out(name: str) -> bool:
    hidden = any(piece.startswith(".") for piece in name.removeprefix("./").split("/"))
    return hidden or suffix(name) in BINARY_SUFFIXES


def _member_blocks(
    file: Any, name: str, path: str, part: Part, cutter: Cutter, stats: ReadStats
) -> Iterator[Block]:
    form = form_of(path, part.documents)
    stream = open_member(file, form.compression, name)
    if not form.known and b"\0" in stream.peek(SNIFF_BYTES):
        stats.members_not_read += 1
    elif form.format == "tar":
        yield from tar_blocks(stream, part, cutter, stats)
    elif form.format in ("parquet", "arrow"):
        table = Part(name, form.format, None, 0, ALL, ALL, 0, part.field, part.documents)
        yield from table_blocks(pa.BufferReader(stream.read()), table, name, stats)
    else:
        # One more than there is, so that the end is seen with the last byte.
        size = None if form.compression else file.raw.size + 1
        yield from stream_blocks(stream, form.format, part, cutter, stats, size)


def stream_blocks(
    stream: Stream,
    kind: str,
    part: Part,
    cutter: Cutter,
    stats: ReadStats,
    expected: int | None = None,
) -> Iterator[Block]:
    """Documents of an open stream of text, lines or JSON lines, `expected` bytes if known."""
    if kind == "json":
        records = holds_records(stream.peek(JSON_HEAD_BYTES), part.field)
        kind = "jsonl" if records else part.documents
    pieces = cut_stream(stream.read_into, cutter_of(kind, cutter), stream.name, 0, expected)
    yield from documents_of(pieces, kind, part.field, stats)
