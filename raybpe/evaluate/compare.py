"""In what two tokenizers differ, by content and not by file: for `raybpe compare`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raybpe.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Comparison:
    """The left tokenizer against the right one. Lists of ids are in id order.

    Attributes:
        same: every text has the same ids: equal vocabulary, merges, special tokens and pattern.
        same_pattern: equal pattern text.
        same_ignore_merges: whether both take whole tokens before merging, or neither does.
        shared: number of tokens (bytes) that are in both.
        only_left: ids of the tokens that only the left one has.
        only_right: ids, of the right one, of the tokens that only it has.
        other_ids: (left id, right id) of the tokens in both that have other ids; in swaps, two
            tokens have each other's.
        swaps: those pairs of ids (a, b), a < b, whose tokens have changed places.
        merges: number of merges of each.
        first_difference: rank of the first merge that differs, or None when one list begins with
            the other.
        special_tokens: text → (left id, right id), for those that differ; None where it is missing.
    """

    same: bool
    same_pattern: bool
    same_ignore_merges: bool
    shared: int
    only_left: list[int]
    only_right: list[int]
    other_ids: list[tuple[int, int]]
    swaps: list[tuple[int, int]]
    merges: tuple[int, int]
    first_difference: int | None
    special_tokens: dict[str, tuple[int | None, int | None]]


def compare(left: Tokenizer, right: Tokenizer) -> Comparison:
    """Compare two tokenizers."""
    ours, theirs = _by_bytes(left), _by_bytes(right)
    shared = ours.keys() & theirs.keys()
    other_ids = sorted((ours[t], theirs[t]) for t in shared if ours[t] != theirs[t])
    moved = set(other_ids)
    swaps = [(a, b) for a, b in other_ids if a < b and (b, a) in moved]
    specials = {
        text: (left.special_tokens.get(text), right.special_tokens.get(text))
        for text in {**left.special_tokens, **right.special_tokens}
        if left.special_tokens.get(text) != right.special_tokens.get(text)
    }
    first = next(
        (i for i, (a, b) in enumerate(zip(left.merges, right.merges, strict=False)) if a != b), None
    )
    same_pattern = left.pattern.regex == right.pattern.regex
    same_ignore_merges = left.ignore_merges == right.ignore_merges
    return Comparison(
        same=left.vocabulary == right.vocabulary and same_pattern and same_ignore_merges,
        same_pattern=same_pattern,
        same_ignore_merges=same_ignore_merges,
        shared=len(shared),
        only_left=sorted(number for token, number in ours.items() if token not in shared),
        only_right=sorted(number for token, number in theirs.items() if token not in shared),
        other_ids=other_ids,
        swaps=swaps,
        merges=(len(left.merges), len(right.merges)),
        first_difference=first,
        special_tokens=specials,
    )


def _by_bytes(tokenizer: Tokenizer) -> dict[bytes, int]:
    """The lowest id of each token's bytes."""
    return {token: number for number, token in reversed(tokenizer.vocab.items())}
