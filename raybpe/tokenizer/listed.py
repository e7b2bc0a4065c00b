"""Pretokens that only the `regex` package can find, listed for `kernels.scan_listed`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import regex

from raybpe.block import Block
from raybpe.kernels.scan_state import GAP


@dataclass(frozen=True)
class ListedPiece:
    """A text of its own: what lies between special tokens in a document.

    Attributes:
        start: offset of its first byte.
        end: one past its last byte.
        bounds: where its pretokens begin, and `end`.
        special: the special token that comes next, if one does.
    """

    start: int
    end: int
    bounds: list[int]
    special: str | None

    @property
    def entries(self) -> npt.NDArray[np.int64]:
        """The pretokens as `scan_listed` takes them."""
        entries = np.array([0, len(self.bounds), *self.bounds])
        entries[-1] |= np.uint64(GAP).astype(np.int64)
        return entries


def listed_pieces(
    block: Block, specials: Sequence[str], pattern: regex.Pattern[str]
) -> Iterator[ListedPiece]:
    """The pieces of a block of valid UTF-8. Stretches without a match are pretokens too."""
    by_length = sorted((text.encode() for text in specials), key=len, reverse=True)
    splitter = re.compile(b"|".join(map(re.escape, by_length))) if by_length else None
    for start, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True):
        text = block.data[start:end].tobytes()
        at = 0
        for match in splitter.finditer(text) if splitter else ():
            piece = text[at : match.start()]
            bounds = _bounds(piece, start + at, pattern)
            yield ListedPiece(start + at, start + match.start(), bounds, match.group().decode())
            at = match.end()
        yield ListedPiece(start + at, end, _bounds(text[at:], start + at, pattern), None)


def _bounds(piece: bytes, start: int, pattern: regex.Pattern[str]) -> list[int]:
    """Bounds of the pretokens of a piece that lies at offset `start`."""
    text = piece.decode()
    bounds = {0, len(text)}
    for match in pattern.finditer(text):
        if match.end() > match.start():
            bounds.update(match.span())
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    offsets = np.zeros(len(text) + 1, np.int64)
    np.cumsum(
        1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF),
        out=offsets[1:],
    )
    places: list[int] = (offsets[sorted(bounds)] + start).tolist()
    return places
