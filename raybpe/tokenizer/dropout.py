"""BPE-dropout: the same text in other tokens each time, to train models that see more than one way.

As in the paper (Provilkov et al. 2020): before each merge, every pair that could be merged is left
out of this step with probability `dropout`, each place by itself; of those that remain the one of
lowest rank merges, the leftmost of equal ones; where none remains the pretoken is done. So 0 gives
the ids of plain encoding, 1 gives single bytes. Special tokens and bytes that are not UTF-8 are
what they always are. A whole pretoken is no token by itself (`ignore_merges` does not apply).

Plain Python, some hundred kB of text per second; a pretoken of n bytes takes O(n log n) steps over
1 - `dropout`.
"""

from __future__ import annotations

from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import regex

from raybpe.block import PADDING_BYTES, Block
from raybpe.pretokenize.utf8 import clean_block
from raybpe.tokenizer.listed import listed_pieces
from raybpe.tokenizer.vocabulary import Vocabulary

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern

_DEAD = -1  # where a symbol was that is now part of the one before


class DropoutEncoder:
    """Encodes with dropout; see the module's docstring."""

    def __init__(self, vocabulary: Vocabulary, pattern: Pattern) -> None:
        self.vocabulary = vocabulary
        self.matcher = regex.compile(pattern.regex)

    @cached_property
    def _merges(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(left id, right id) → (rank, id of the result)."""
        rows = self.vocabulary.merge_ids.tolist()
        return {(left, right): (rank, made) for rank, (left, right, made) in enumerate(rows)}

    def encode(
        self, text: str | bytes, specials: tuple[str, ...], dropout: float, seed: int | None
    ) -> list[int]:
        """Ids of a text.

        Args:
            text: str, or bytes that need not be UTF-8.
            specials: the special tokens that count as such.
            dropout: from 0 to 1.
            seed: the same gives the same ids; None: others in each call.
        """
        random = Random(seed)
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        padded = np.frombuffer(data + bytes(PADDING_BYTES), np.uint8)
        block = Block(padded, np.zeros(1, np.int64), np.array([len(data)]))
        byte_ids = self.vocabulary.byte_ids.tolist()
        ids: list[int] = []
        at = 0
        for piece in listed_pieces(clean_block(block, "keep")[0], specials, self.matcher):
            ids += [byte_ids[byte] for byte in data[at : piece.start]]
            for start, end in pairwise(piece.bounds):
                symbols = [byte_ids[byte] for byte in data[start:end]]
                ids += self._merge(symbols, dropout, random)
            at = piece.end
            if piece.special is not None:
                ids.append(self.vocabulary.special_tokens[piece.special])
                at += len(piece.special.encode())
        return ids + [byte_ids[byte] for byte in data[at:]]

    def _merge(self, symbols: list[int], dropout: float, random: Random) -> list[int]:
        """Merge the symbols of a pretoken; each stays where its first byte is."""
        size = len(symbols)
        before = list(range(-1, size - 1))
        after = list(range(1, size + 1))
        merges = self._merges
        heap = [
            (*merges[pair], at, pair) for at, pair in enumerate(pairwise(symbols)) if pair in merges
        ]
        heapify(heap)
        skipped = []  # candidates that were left out of the step at hand
        while heap:
            candidate = heappop(heap)
            _, made, at, pair = candidate
            right = after[at]
            # Symbols only grow, so a pair that is gone never comes back to the same place.
            if right == size or (symbols[at], symbols[right]) != pair:
                continue
            if random.random() < dropout:
                skipped.append(candidate)
                continue
            symbols[at], symbols[right] = made, _DEAD
            after[at] = after[right]
            if after[at] < size:
                before[after[at]] = at
            for left in (before[at], at):
                if left >= 0 and after[left] < size:
                    pair = symbols[left], symbols[after[left]]
                    if pair in merges:
                        heappush(heap, (*merges[pair], left, pair))
            for candidate in skipped:
                heappush(heap, candidate)
            skipped.clear()
        return [symbol for symbol in symbols if symbol != _DEAD]
