"""The textbook encoder, in plain Python over the `regex` package."""

from __future__ import annotations

import re
from collections.abc import Collection

import regex

from raybpe.tokenizer.vocabulary import Vocabulary


class PlainEncoder:
    """Encodes with `regex` and dictionaries."""

    def __init__(self, vocabulary: Vocabulary, pattern: str, ignore_merges: bool) -> None:
        self.vocabulary = vocabulary
        self.pattern = regex.compile(pattern)
        self.ignore_merges = ignore_merges
        self.ranks = {
            (left, right): (rank, result)
            for rank, (left, right, result) in enumerate(vocabulary.merge_ids.tolist())
        }

    def encode(self, data: bytes, specials: Collection[str]) -> list[int]:
        """Ids of `data`."""
        ids: list[int] = []
        by_length = sorted((text.encode() for text in specials), key=len, reverse=True)
        if not by_length:
            pieces = [data]
        else:
            pieces = re.split(b"(" + b"|".join(map(re.escape, by_length)) + b")", data)
        for index, piece in enumerate(pieces):
            if index % 2:
                ids.append(self.vocabulary.special_tokens[piece.decode()])
            else:
                self._piece(piece.decode("utf-8", "surrogateescape"), ids)
        return ids

    def _piece(self, text: str, ids: list[int]) -> None:
        for part in re.split("([\udc80-\udcff])", text):
            position = 0
            for match in self.pattern.finditer(part):
                if match.start() > position:
                    self._pretoken(part[position : match.start()], ids)
                if match.end() > match.start():
                    self._pretoken(match.group(), ids)
                position = match.end()
            if position < len(part):
                self._pretoken(part[position:], ids)

    def _pretoken(self, text: str, ids: list[int]) -> None:
        data = text.encode("utf-8", "surrogateescape")
        if self.ignore_merges and data in self.vocabulary.ordinary:
            ids.append(self.vocabulary.ordinary[data])
            return
        symbols = [int(self.vocabulary.byte_ids[byte]) for byte in data]
        while len(symbols) > 1:
            best = min(
                (self.ranks.get(pair, (1 << 62, -1)) + (at,))
                for at, pair in enumerate(zip(symbols, symbols[1:], strict=False))
            )
            if best[1] < 0:
                break
            symbols[best[2] : best[2] + 2] = [best[1]]
        ids.extend(symbols)
