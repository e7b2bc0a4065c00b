"""What is in a tokenizer, and what is wrong with it: for `raybpe inspect`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from raybpe.evaluate.reachable import unreachable_tokens
from raybpe.evaluate.scripts import count_scripts
from raybpe.formats.downstream import llama_cpp_name

if TYPE_CHECKING:
    from raybpe.tokenizer.tokenizer import Tokenizer

MAX_LISTED_GAPS = 100_000  # a list of all gaps of a vocabulary with huge ids helps nobody


@dataclass(frozen=True)
class Audit:
    """Findings. Lists of ids are in id order unless said otherwise.

    Attributes:
        ids: number of ids.
        merges: number of merges.
        special_tokens: text → id.
        fingerprint: equal exactly when two tokenizers give the same ids.
        lengths: length in bytes → number of ordinary tokens.
        longest: ids of the longest ordinary tokens, the longest first.
        unreachable: ordinary tokens that their own bytes do not give. None of them can come out of
            `encode`, unless `ignore_merges` is set and the pattern cuts exactly them.
        duplicates: bytes that several ids stand for → those ids.
        missing_ids: ids below the highest without a token, the first MAX_LISTED_GAPS.
        special_inside: ordinary tokens in which the text of a special token is.
        scripts: writing system → number of ordinary tokens.
        llama_cpp: llama.cpp's name of the pattern; None when it has none.
    """

    ids: int
    merges: int
    special_tokens: dict[str, int]
    fingerprint: str
    lengths: dict[int, int]
    longest: list[int]
    unreachable: list[int]
    duplicates: dict[bytes, list[int]]
    missing_ids: list[int]
    special_inside: list[int]
    scripts: dict[str, int]
    llama_cpp: str | None


def audit(tokenizer: Tokenizer, longest: int = 20) -> Audit:
    """Look at every token. `longest`: how many of the longest to name."""
    vocabulary = tokenizer.vocabulary
    tokens = vocabulary.tokens
    special_ids = set(vocabulary.special_tokens.values())
    ordinary = {n: token for n, token in tokens.items() if n not in special_ids}
    by_length = sorted(ordinary, key=lambda number: (-len(ordinary[number]), number))
    return Audit(
        ids=len(tokens),
        merges=len(vocabulary.merges),
        special_tokens=vocabulary.special_tokens,
        fingerprint=tokenizer.fingerprint(),
        lengths=dict(sorted(Counter(map(len, ordinary.values())).items())),
        longest=by_length[: max(0, longest)],
        unreachable=unreachable_tokens(vocabulary),
        duplicates=_duplicates(ordinary),
        missing_ids=_missing(tokens, vocabulary.id_limit),
        special_inside=_special_inside(ordinary, vocabulary.special_tokens),
        scripts=count_scripts(ordinary.values()),
        llama_cpp=llama_cpp_name(tokenizer.pattern),
    )


def _duplicates(ordinary: dict[int, bytes]) -> dict[bytes, list[int]]:
    if len(set(ordinary.values())) == len(ordinary):
        return {}
    ids: dict[bytes, list[int]] = {}
    for number, token in ordinary.items():
        ids.setdefault(token, []).append(number)
    return {token: numbers for token, numbers in ids.items() if len(numbers) > 1}


def _missing(tokens: dict[int, bytes], limit: int) -> list[int]:
    if len(tokens) == limit:
        return []
    missing: list[int] = []
    expected = 0
    for number in tokens:  # in id order
        room = MAX_LISTED_GAPS - len(missing)
        missing.extend(range(expected, min(number, expected + room)))
        expected = number + 1
    return missing


def _special_inside(ordinary: dict[int, bytes], special_tokens: dict[str, int]) -> list[int]:
    if not special_tokens:
        return []
    texts = sorted(map(str.encode, special_tokens), key=len, reverse=True)
    inside = regex.compile(b"|".join(map(regex.escape, texts)))
    return [number for number, token in ordinary.items() if inside.search(token)]
