"""From pieces of a text form to blocks of documents.

    text    a piece is a document: cuts inside a text change no count
    lines   each line is a document, without its line end (a line feed, or a carriage return and
            a line feed); a lone carriage return is text, an empty line is an empty document, and
            what follows the last line feed is a line only if it is not empty
    jsonl   each line is a JSON object whose string `field` is the document; a dotted name looks
            into objects (`data.text`) when no field has the whole name; null is no document and
            is counted; lines of white space are passed over

A byte order mark at the start of text is text, as in every other trainer; it is counted so that
the run can say so. In JSON lines it stands outside any document and is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from raybpe.block import PADDING_BYTES, Block
from raybpe.errors import InputError
from raybpe.inputs.pieces import READ_BYTES

JSON_HEAD_BYTES = 2**20  # the first record of a .json file is looked for in this much
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass
class ReadStats:
    """What reading met, summed over parts.

    Attributes:
        nulls: rows or records whose text is null.
        byte_order_marks: texts that begin with U+FEFF, which stays in the text.
        members_not_read: members of tar files that are hidden, binary, or no files.
    """

    nulls: int = 0
    byte_order_marks: int = 0
    members_not_read: int = 0


def holds_records(head: bytes, field: str) -> bool:
    """Whether the first line of a `.json` file is a record of JSON lines with this field."""
    line = head.removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")[0]
    try:
        look_up(orjson.loads(line), field, "", None)
    except (orjson.JSONDecodeError, InputError):
        return False
    return True


def mark_seen(piece: Block) -> bool:
    """Whether a piece from the start of a text begins with a byte order mark."""
    return piece.data[: min(3, int(piece.ends[0]))].tobytes() == BYTE_ORDER_MARK


def split_lines(piece: Block) -> Block:
    """The lines of a piece that begins at a line start, as documents in the same buffer."""
    end = int(piece.ends[0])
    data = piece.data
    feeds = np.flatnonzero(data[:end] == 10).astype(np.int64, copy=False)
    starts = np.empty(len(feeds) + 1, np.int64)
    starts[0] = 0
    np.add(feeds, 1, out=starts[1:])
    ends = np.append(feeds, end)
    if starts[-1] == end:  # nothing after the last line feed
        starts, ends = starts[:-1], ends[:-1]
    before = data[np.maximum(feeds - 1, 0)]
    ends[: len(feeds)] -= (before == 13) & (feeds > starts[: len(feeds)])
    return Block(data, starts, ends, piece.source, piece.offset)


def pack(documents: list[bytes], source: str, offset: int | None = None) -> Block:
    """Documents copied one after the other into a block."""
    data = np.frombuffer(b"".join([*documents, bytes(PADDING_BYTES)]), np.uint8)
    ends = np.cumsum(np.fromiter(map(len, documents), np.int64, len(documents)))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1]
    return Block(data, starts, ends, source, offset)


class JsonLines:
    """Takes the text out of JSON lines."""

    def __init__(self, field: str, stats: ReadStats) -> None:
        self._field = field
        self._stats = stats

    def documents(self, pieces: Iterable[Block]) -> Iterator[Block]:
        """Blocks of the documents in pieces of whole lines."""
        for piece in pieces:
            found: list[bytes] = []
            position = piece.offset
            for number, line in enumerate(_records(piece)):
                marked = number == 0 and piece.offset == 0 and line[:3] == BYTE_ORDER_MARK
                text = self._text(line[3:] if marked else line, piece.source, position)
                if text is not None:
                    found.append(text)
                if position is not None:
                    position += len(line) + 1
            if found:
                yield pack(found, _span(piece))

    def _text(self, line: bytes | memoryview, source: str, position: int | None) -> bytes | None:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            line = bytes(line)
            if not line.strip():
                return None
            record = _parse_slowly(line, str(error), _place(source, position))
        value = look_up(record, self._field, source, position)
        if value is None:
            self._stats.nulls += 1
            return None
        if not isinstance(value, str):
            raise InputError(
                f"{_place(source, position)}: the field {self._field!r} holds a "
                f"{type(value).__name__}, not a string; name the text with --field"
            )
        return _encode(value)


def _records(piece: Block) -> Iterator[bytes | memoryview]:
    """The lines of a piece; long ones are not copied."""
    data = piece.data[: int(piece.ends[0])]
    if len(data) <= READ_BYTES:
        yield from data.tobytes().split(b"\n")
        return
    start = 0
    for low in range(0, len(data), READ_BYTES):
        for feed in (np.flatnonzero(data[low : low + READ_BYTES] == 10) + low).tolist():
            yield data[start:feed].data
            start = feed + 1
    yield data[start:].data


def documents_of(
    pieces: Iterator[Block], form: str, field: str, stats: ReadStats
) -> Iterator[Block]:
    """Make documents of the pieces of one text form."""
    if form == "jsonl":
        yield from JsonLines(field, stats).documents(pieces)
        return
    within = False  # whether the piece before ended inside a line
    for piece in pieces:
        if piece.offset == 0 and mark_seen(piece):
            stats.byte_order_marks += 1
        if form == "lines":
            ended = piece.data[int(piece.ends[0]) - 1] == 10
            yield replace(split_lines(piece), continued=within)
            within = not ended
        else:
            yield piece


def look_up(record: Any, field: str, source: str, position: int | None) -> Any:
    """The value of a field, or of a dotted path of fields."""
    if isinstance(record, dict):
        if field in record:
            return record[field]
        value: Any = record
        for part in field.split("."):
            if not isinstance(value, dict) or part not in value:
                break
            value = value[part]
        else:
            return value
        known = ", ".join(sorted(map(repr, record))[:12]) or "none"
        raise InputError(
            f"{_place(source, position)}: no field {field!r} in this record (its fields: {known}); "
            "name the text with --field"
        )
    raise InputError(
        f"{_place(source, position)}: each line must be a JSON object, this one is a "
        f"{type(record).__name__}"
    )


def _span(piece: Block) -> str:
    if piece.offset is None:
        return piece.source
    return f"{piece.source} (bytes {piece.offset:,} to {piece.offset + int(piece.ends[0]):,})"


def _place(source: str, position: int | None) -> str:
    return source if position is None else f"{source}, line at byte {position:,}"


def _parse_slowly(line: bytes, reason: str, place: str) -> Any:
    """Parse what the fast parser refuses: bytes that are not UTF-8, lone surrogates, big numbers.

    Such bytes come out of the string as they went in, so that the policy for invalid UTF-8
    decides about them like about any other text.
    """
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        raise InputError(
            f"{place}: not a JSON record ({reason}); each line of a .jsonl file must be one JSON "
            "object"
        ) from None


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A lone surrogate written as an escape becomes three bytes that are not valid UTF-8.
        return text.encode("utf-8", "surrogatepass")
