"""Which tokens encoding can give: those whose own bytes the merges turn into them.

A token that no merge makes, or whose bytes other merges claim first, is dead weight in a vocabulary
and a sign that its merges and tokens do not belong together.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from raybpe.errors import FormatError
from raybpe.formats.ranks import recover_merges

if TYPE_CHECKING:
    from raybpe.tokenizer.vocabulary import Vocabulary


def unreachable_tokens(vocabulary: Vocabulary) -> list[int]:
    """Ids of the ordinary tokens of several bytes that their own bytes do not give, in id order."""
    special_ids = set(vocabulary.special_tokens.values())
    candidates = [
        number
        for number, token in vocabulary.tokens.items()
        if len(token) > 1 and number not in special_ids
    ]
    if _is_plain(vocabulary):
        made = set(vocabulary.merge_ids[:, 2].tolist())
        return [number for number in candidates if number not in made]
    ranks = {
        (left, right): (rank, result)
        for rank, (left, right, result) in enumerate(vocabulary.merge_ids.tolist())
    }
    byte_ids = vocabulary.byte_ids.tolist()
    return [
        number
        for number in candidates
        if _merge([byte_ids[byte] for byte in vocabulary.tokens[number]], ranks) != [number]
    ]


def _is_plain(vocabulary: Vocabulary) -> bool:
    """Whether each merge is the only way to make its token, so that all results are reached."""
    rows = vocabulary.merge_ids
    if len(np.unique(rows[:, 2])) != len(rows):
        return False
    order = [*vocabulary.byte_ids.tolist(), *rows[:, 2].tolist()]
    if len(set(order)) != len(order):
        return False
    try:
        left, right = recover_merges([vocabulary.tokens[number] for number in order])
    except FormatError:
        return False
    ids = np.array(order)
    return bool(
        np.array_equal(ids[left[256:]], rows[:, 0]) and np.array_equal(ids[right[256:]], rows[:, 1])
    )


def _merge(symbols: list[int], ranks: dict[tuple[int, int], tuple[int, int]]) -> list[int]:
    """The textbook merge: lowest rank first, leftmost first. O(n log n)."""
    count = len(symbols)
    after = list(range(1, count + 1))
    before = list(range(-1, count - 1))
    heap: list[tuple[int, int, int, int, int]] = []

    def offer(at: int) -> None:
        if at >= 0 and after[at] < count:
            pair = symbols[at], symbols[after[at]]
            if pair in ranks:
                rank, result = ranks[pair]
                heapq.heappush(heap, (rank, at, *pair, result))

    for at in range(count):
        offer(at)
    while heap:
        _, at, left, right, result = heapq.heappop(heap)
        other = after[at]
        if symbols[at] != left or other >= count or symbols[other] != right:
            continue
        symbols[at], symbols[other] = result, -1
        after[at] = after[other]
        if after[at] < count:
            before[after[at]] = at
        offer(before[at])
        offer(at)
    return [symbol for symbol in symbols if symbol >= 0]
