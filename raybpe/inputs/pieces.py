"""Bytes of a file or stream, cut where a cutter allows, in one reused buffer.

A cutter knows places at which text may be taken apart: `Pretokenizer` for text (safe cuts) and
`LineCutter` for lines and JSON lines. Ownership: the range [start, end) of a file stands for the
bytes from the first cut at or after `start` to the first cut at or after `end`; both neighbours
find the same place, because a cut depends only on the bytes around it. A record belongs to the
range in which it starts.

Memory: one buffer of `READ_BYTES`, doubled while it holds no cut. So it is bounded by twice the
longest stretch without a cut, and such a stretch must be in memory anyway to be one pretoken or
one record. A line is cut like text when it is longer than the buffer, so it need not be in memory
as a whole. Looking for the first cut of a range slides a window, never grows, and ends with the
range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Protocol

import numpy as np
import numpy.typing as npt

from raybpe.block import PADDING_BYTES, Block
from raybpe.filesystems import RangeFile, is_local
from raybpe.inputs.read_ahead import ReadAhead

READ_BYTES = 4 * 2**20  # stays in a shared cache between reading and scanning
WINDOW_BYTES = 2**16  # how much is read to find the first cut of a range

Bytes = npt.NDArray[np.uint8]


class Cutter(Protocol):
    """Finds places at which text may be taken apart; see `Pretokenizer`."""

    @property
    def special_tokens(self) -> Sequence[str]:
        """Texts that no cut divides; they bound how far around a cut must be looked."""

    def next_cut(self, data: Bytes, position: int, end: int, final: bool) -> int | None:
        """First cut at or after `position`, given data[:end]; None to ask for more data."""

    def last_cut(self, data: Bytes, start: int, end: int) -> int | None:
        """Last cut in (start, end], given data[:end]; None if there is none."""


class LineCutter:
    """Cuts after each line feed, so that what lies between two cuts is whole lines.

    Args:
        within: cuts lines that are longer than a buffer; never between a carriage return and
            what may be its line feed. None to keep them whole.
    """

    special_tokens: tuple[str, ...] = ()

    def __init__(self, within: Cutter | None = None) -> None:
        self._within = within

    def next_cut(self, data: Bytes, position: int, end: int, final: bool) -> int | None:
        """First line start at or after `position`."""
        if position == 0:
            return 0
        found = data[position - 1 : end].tobytes().find(b"\n")
        if found >= 0:
            return position + found
        return end if final else None

    def last_cut(self, data: Bytes, start: int, end: int) -> int | None:
        """Place after the last line feed, or within a line that fills a buffer."""
        width, high = 4096, end
        while high > start:
            low = max(start, high - width)
            found = data[low:high].tobytes().rfind(b"\n")
            if found >= 0:
                return low + found + 1
            high, width = low, width * 4
        if self._within is None or end - start < READ_BYTES:
            return None
        cut = self._within.last_cut(data, start, end)
        while cut is not None and data[cut - 1] == 13:
            cut = self._within.last_cut(data, start, cut - 1)
        return cut


def cutter_of(form: str, text: Cutter) -> Cutter:
    """What cuts a form of text: `text` itself, or line ends; a JSON record is never cut."""
    if form == "text":
        return text
    return LineCutter(text if form == "lines" else None)


def _context(cutter: Cutter) -> int:
    """Bytes to each side of a place that can decide whether it is a cut."""
    return 16 + max((len(token.encode()) for token in cutter.special_tokens), default=0)


def first_cut(file: RangeFile, position: int, cutter: Cutter, limit: int | None = None) -> int:
    """First cut of the file at or after a position; the file's size if there is none.

    Args:
        limit: a cut at or after this may be passed over, so that many ranges of one long line do
            not each look for its end.

    Raises:
        ChangedInputError: the file has become shorter.
    """
    if position <= 0:
        return 0
    context = _context(cutter)
    width = WINDOW_BYTES + 2 * context
    window = np.zeros(width + PADDING_BYTES, np.uint8)
    limit = file.size if limit is None else min(limit, file.size)
    while position < limit:
        base = max(0, position - context)
        length = file.fill(window.data[:width], base)
        final = base + length >= file.size
        if length < width and not final:
            raise file.ended_early(base + length)
        cut = cutter.next_cut(window, position - base, length, final)
        if cut is not None:
            return base + cut
        if final:
            break
        # What is less than `context` before the window's end may still turn out to be a cut.
        position = max(position + 1, base + length - context)
    return file.size


def file_range(
    file: RangeFile, start: int, end: int, cutter: Cutter, source: str
) -> Iterator[Block]:
    """Pieces of the bytes that the range [start, end) of a file owns."""
    position = first_cut(file, start, cutter, end)
    stop = first_cut(file, end, cutter) if position < end else position

    expected = stop - position
    if is_local(file.uri):
        # The page cache answers at once.
        yield from cut_stream(
            _reader(file, position, stop), cutter, source, position, expected, position > 0
        )
        return
    with closing(ReadAhead(file, position, stop)) as ahead:
        yield from cut_stream(ahead.readinto, cutter, source, position, expected, position > 0)


def _reader(file: RangeFile, position: int, stop: int) -> Callable[[memoryview], int]:
    def read(view: memoryview) -> int:
        nonlocal position
        if position == stop:
            return 0
        length = file.read_into(view[: stop - position], position)
        if length == 0:
            raise file.ended_early(position)
        position += length
        return length

    return read


def cut_stream(
    read: Callable[[memoryview], int],
    cutter: Cutter,
    source: str,
    offset: int | None = 0,
    expected: int | None = None,
    continued: bool = False,
) -> Iterator[Block]:
    """Pieces of a stream, each one document between two cuts; nothing for an empty stream.

    A piece is valid until the next one is taken: its buffer is used again.

    Args:
        read: fills a view and returns the bytes read; 0 at the end.
        cutter: where to cut.
        source: name for messages.
        offset: offset in the source of the first byte; None where there are no offsets.
        expected: how many bytes there are, if known, so that a small file has a small buffer.
        continued: whether the stream begins inside a text.
    """
    size = READ_BYTES if expected is None else min(READ_BYTES, max(expected, 1))
    buffer = np.zeros(size + PADDING_BYTES, np.uint8)
    held = 0
    finished = False
    while not finished:
        view = buffer.data
        capacity = len(buffer) - PADDING_BYTES
        while held < capacity:
            length = read(view[held:capacity])
            if length == 0:
                finished = True
                break
            held += length
        cut = held if finished else cutter.last_cut(buffer, 0, held)
        if cut:
            yield _piece(buffer, cut, source, offset, continued)
            continued = True
            held -= cut
            offset = None if offset is None else offset + cut
            if capacity > READ_BYTES and held < READ_BYTES // 2:
                buffer, old = np.zeros(READ_BYTES + PADDING_BYTES, np.uint8), buffer
                buffer[:held] = old[cut : cut + held]
            else:
                buffer[:held] = buffer[cut : cut + held]
        elif not finished:
            grown = np.zeros(2 * capacity + PADDING_BYTES, np.uint8)
            grown[:held] = buffer[:held]
            buffer = grown


def _piece(buffer: Bytes, end: int, source: str, offset: int | None, continued: bool) -> Block:
    starts, ends = np.zeros(1, np.int64), np.full(1, end, np.int64)
    return Block(buffer, starts, ends, source, offset, continued)
