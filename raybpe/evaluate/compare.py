"""In what two tokenizers differ: tokens, ids, merges, special tokens, pattern."""

from __future__ import annotations

from dataclasses import dataclass

from raybpe.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Comparison:
    """How two tokenizers, left and right, stand to each other.

    Attributes:
        same: they give the same ids for every text.
        same_pattern: their patterns are the same text.
        shared: distinct byte strings that both have as tokens.
        only_left, only_right: ids of tokens whose bytes the other lacks.
        other_ids: (left id, right id) of tokens with the same bytes and other ids.
        merges: number of merges of each.
        first_difference: rank of the first merge that differs; None when one list begins with
            the other.
        special_tokens: text → (left id, right id), None where absent, for those that differ.
    """

    same: bool
    same_pattern: bool
    shared: int
    only_left: list[int]
    only_right: list[int]
    other_ids: list[tuple[int, int]]
    merges: tuple[int, int]
    first_difference: int | None
    special_tokens: dict[str, tuple[int | None, int | None]]


def compare(left: Tokenizer, right: Tokenizer) -> Comparison:
    """Compare two tokenizers by content, whatever files they came from."""
    left_ids = {token: number for number, token in reversed(left.vocab.items())}
    right_ids = {token: number for number, token in reversed(right.vocab.items())}
    shared = left_ids.keys() & right_ids.keys()
    pairs = enumerate(zip(left.merges, right.merges, strict=False))
    specials = {**left.special_tokens, **right.special_tokens}
    placed = {
        text: (left.special_tokens.get(text), right.special_tokens.get(text)) for text in specials
    }
    return Comparison(
        same=left == right,
        same_pattern=left.pattern.regex == right.pattern.regex,
        shared=len(shared),
        only_left=sorted(left_ids[token] for token in left_ids.keys() - shared),
        only_right=sorted(right_ids[token] for token in right_ids.keys() - shared),
        other_ids=sorted(
            (left_ids[token], right_ids[token])
            for token in shared
            if left_ids[token] != right_ids[token]
        ),
        merges=(len(left.merges), len(right.merges)),
        first_difference=next((rank for rank, (a, b) in pairs if a != b), None),
        special_tokens={text: ids for text, ids in placed.items() if ids[0] != ids[1]},
    )
