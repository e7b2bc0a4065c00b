"""subword-nmt's codes: the character-level form of BPE, read and applied.

A line ``#version: 0.2``, then one merge a line: two symbols with one space between, most frequent
first. Symbols are characters, not bytes; the last symbol of a word ends in ``</w>``. Words are what
is between spaces. There are no ids and no byte fallback, so codes are not a `Tokenizer`: a
character that no merge knows is a piece of its own. Ids of `SubwordCodes.vocab` are streamed by
``DecodeStream(codes.vocab, end_of_word=END_OF_WORD)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from pathlib import Path

from raybpe.errors import FormatError
from raybpe.formats.files import read_text

END_OF_WORD = "</w>"
HEADER = "#version: 0.2"


@dataclass(frozen=True)
class SubwordCodes:
    """Merges of characters.

    Attributes:
        merges: pairs of symbols in rank order.
    """

    merges: tuple[tuple[str, str], ...]

    @cached_property
    def _ranks(self) -> dict[tuple[str, str], int]:
        return {pair: rank for rank, pair in enumerate(self.merges)}

    @cached_property
    def vocab(self) -> dict[int, bytes]:
        """Id → bytes of every symbol in the merges, in the order in which they come up."""
        symbols: dict[str, None] = {}
        for left, right in self.merges:
            symbols.update({left: None, right: None})
        symbols.update((left + right, None) for left, right in self.merges)
        return dict(enumerate(symbol.encode() for symbol in symbols))

    def segment(self, text: str) -> list[str]:
        """The pieces of a text; the last piece of each word ends in ``</w>``.

        >>> SubwordCodes((("l", "o"), ("lo", "w</w>"))).segment("low lower")
        ['low</w>', 'lo', 'w', 'e', 'r</w>']
        """
        return [piece for word in text.split(" ") if word for piece in self._word(word)]

    def decode(self, pieces: Iterable[str]) -> str:
        """The text of some pieces, with one space between words."""
        return "".join(pieces).replace(END_OF_WORD, " ").removesuffix(" ")

    def render(self) -> bytes:
        """The file."""
        return "".join([f"{HEADER}\n", *(f"{a} {b}\n" for a, b in self.merges)]).encode()

    def _word(self, word: str) -> list[str]:
        symbols = [*word[:-1], word[-1] + END_OF_WORD]
        none = len(self.merges)
        while len(symbols) > 1:
            best = min(pairwise(symbols), key=lambda pair: self._ranks.get(pair, none))
            if best not in self._ranks:
                break
            merged: list[str] = []
            at = 0
            while at < len(symbols):
                if tuple(symbols[at : at + 2]) == best:
                    merged.append("".join(best))
                    at += 2
                else:
                    merged.append(symbols[at])
                    at += 1
            symbols = merged
        return symbols


def read_codes(path: str | PathLike[str]) -> SubwordCodes:
    """Read a codes file.

    Raises:
        FormatError: unreadable, without the header of version 0.2, or a line that is no merge.
    """
    file = Path(path)
    lines = read_text(file).split("\n")
    if lines[0].rstrip("\r") != HEADER:
        raise FormatError(
            f"{file} does not begin with {HEADER!r}; codes of other versions mark the ends of "
            "words in another way and are not read"
        )
    while lines and not lines[-1].strip("\r"):
        lines.pop()
    merges: dict[tuple[str, str], None] = {}
    for number, line in enumerate(lines[1:], 2):
        left, space, right = line.rstrip("\r").partition(" ")
        if not (left and space and right) or " " in right:
            raise FormatError(
                f"{file}: line {number} is {line!r:.80}, not two symbols with one space between"
            )
        if (left, right) in merges:
            raise FormatError(f"{file}: line {number} repeats the merge {left!r} {right!r}")
        merges[left, right] = None
    return SubwordCodes(tuple(merges))
