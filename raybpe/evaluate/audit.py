"""What is in a tokenizer, and what is wrong with it.

`audit` looks at the vocabulary alone, without text: tokens that the merges can never build,
bytes that have several ids, gaps in the ids, special texts inside ordinary tokens, sizes, and
which script each token is written in. Takes a second or two for 100,000 tokens.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import regex

from raybpe.tokenizer.tokenizer import Tokenizer

SCRIPTS = (
    "Latin", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Arabic", "Hebrew",
    "Devanagari", "Bengali", "Tamil", "Telugu", "Gujarati", "Gurmukhi", "Kannada", "Malayalam",
    "Thai", "Lao", "Khmer", "Myanmar", "Georgian", "Armenian", "Ethiopic", "Sinhala", "Tibetan",
)  # fmt: skip
_SCRIPT = regex.compile("|".join(rf"(?P<{name}>\p{{Script={name}}})" for name in SCRIPTS))
_LETTER = regex.compile(r"\p{L}")
_DIGIT = regex.compile(r"\p{N}")


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        ids: number of ids.
        merges: number of merges.
        special_tokens: text → id.
        missing_ids: ids below the highest that no token has.
        duplicates: bytes → their ids, where there are several.
        unreachable: ids of ordinary tokens that merging their own bytes does not give back.
        special_inside: ids of ordinary tokens that contain the text of a special token.
        lengths: token length in bytes → number of tokens, special tokens left out.
        scripts: script or kind → number of tokens, most first.
        longest: ids of the longest ordinary tokens, longest first.
    """

    ids: int
    merges: int
    special_tokens: dict[str, int]
    missing_ids: list[int] = field(default_factory=list)
    duplicates: dict[bytes, list[int]] = field(default_factory=dict)
    unreachable: list[int] = field(default_factory=list)
    special_inside: list[int] = field(default_factory=list)
    lengths: dict[int, int] = field(default_factory=dict)
    scripts: dict[str, int] = field(default_factory=dict)
    longest: list[int] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing was found that a careful tokenizer does not have."""
        return not (self.missing_ids or self.duplicates or self.unreachable or self.special_inside)


def audit(tokenizer: Tokenizer, longest: int = 20) -> Audit:
    """Look a tokenizer over; `longest` is how many of the longest tokens to name."""
    vocab = tokenizer.vocab
    special_ids = set(tokenizer.special_tokens.values())
    ordinary = {number: token for number, token in vocab.items() if number not in special_ids}
    homes: dict[bytes, list[int]] = defaultdict(list)
    for number, token in vocab.items():
        homes[token].append(number)
    specials = [text.encode() for text in tokenizer.special_tokens]
    return Audit(
        ids=len(vocab),
        merges=len(tokenizer.merges),
        special_tokens=tokenizer.special_tokens,
        missing_ids=[number for number in range(max(vocab) + 1) if number not in vocab],
        duplicates={token: ids for token, ids in homes.items() if len(ids) > 1},
        unreachable=_unreachable(tokenizer, ordinary),
        special_inside=[
            number for number, token in ordinary.items() if any(text in token for text in specials)
        ],
        lengths=dict(sorted(Counter(map(len, ordinary.values())).items())),
        scripts=dict(Counter(map(kind_of, ordinary.values())).most_common()),
        longest=sorted(ordinary, key=lambda number: (-len(ordinary[number]), number))[:longest],
    )


def kind_of(token: bytes) -> str:
    """The script of a token's first letter; else digits, space, symbols, or part of a character.

    >>> kind_of(b" the"), kind_of(b"\\xe4\\xb8"), kind_of(b"  "), kind_of(b"12")
    ('Latin', 'part of a character', 'space', 'digits')
    """
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return "part of a character"
    if not text.strip():
        return "space"
    if letter := _LETTER.search(text):
        script = _SCRIPT.match(letter.group())
        return script.lastgroup if script else "other scripts"
    return "digits" if _DIGIT.search(text) else "symbols"


def merge_bytes(token: bytes, ranks: dict[tuple[bytes, bytes], int]) -> list[bytes]:
    """The parts that the merges, lowest rank first, make of these bytes taken as one pretoken."""
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 1:
        pairs = pairwise(parts)
        rank, place = min((ranks.get(pair, len(ranks)), at) for at, pair in enumerate(pairs))
        if rank == len(ranks):
            break
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts


def _unreachable(tokenizer: Tokenizer, ordinary: dict[int, bytes]) -> list[int]:
    # A tokenizer that looks pretokens up whole before it merges can reach all of them.
    if tokenizer.ignore_merges:
        return []
    ranks = {pair: rank for rank, pair in enumerate(tokenizer.merges)}
    return [number for number, token in ordinary.items() if len(merge_bytes(token, ranks)) > 1]
