"""Vocabularies as {text: id}, the way `tokenizer.json` and `vocab.json` hold them.

Ordinary tokens are in GPT-2's printable characters, special tokens as they are. Ids without a token
get a filler, ``<|raybpe_filler_N|>``, since readers take the number of entries for the number of
ids; fillers are left out again when such a file is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raybpe.config import MAX_VOCAB_SIZE
from raybpe.errors import FormatError
from raybpe.formats.byte_text import to_bytes, to_text
from raybpe.formats.files import kind
from raybpe.tokenizer.vocabulary import Vocabulary

_FILLER = "<|raybpe_filler_{}|>"
MAX_FILLERS = 100_000  # more ids than this without a token are a mistake, not a vocabulary


def to_names(vocabulary: Vocabulary) -> dict[str, int]:
    """{text: id} in id order, without gaps.

    Raises:
        FormatError: two ids would have the same text.
    """
    tokens = vocabulary.tokens
    by_id = dict(zip(tokens, to_text(list(tokens.values())), strict=True))
    _check_merged_specials(vocabulary, by_id)
    by_id.update((number, text) for text, number in vocabulary.special_tokens.items())
    gaps = vocabulary.id_limit - len(tokens)
    if gaps > MAX_FILLERS:
        raise FormatError(
            f"the vocabulary has {gaps:,} ids without a token; files that list every id can hold "
            f"{MAX_FILLERS:,} such"
        )
    if gaps:
        by_id = {n: by_id.get(n, _FILLER.format(n)) for n in range(vocabulary.id_limit)}
    names = {text: number for number, text in by_id.items()}
    if len(names) != len(by_id):
        text, number = next((t, n) for n, t in by_id.items() if names[t] != n)
        raise FormatError(
            f"ids {number} and {names[text]} would both be written as {text!r}, so files that map "
            "text to ids cannot hold this vocabulary"
        )
    return names


def _check_merged_specials(vocabulary: Vocabulary, by_id: Mapping[int, str]) -> None:
    """A special token that is also part of a merge needs one name for both."""
    merged = {int(number) for number in np.unique(vocabulary.merge_ids)}
    for text, number in vocabulary.special_tokens.items():
        if number in merged and by_id[number] != text:
            raise FormatError(
                f"the special token {text!r} is also part of a merge, where it would be written as "
                f"{by_id[number]!r}; files that map text to ids can hold one of the two"
            )


def from_names(
    names: Mapping[str, Any], special_tokens: Mapping[str, int], where: str
) -> dict[str, tuple[int, bytes]]:
    """{text: (id, bytes)}; the texts of `special_tokens` stand for themselves.

    Raises:
        FormatError: ids are no ids, or one is there twice; `where` names the file.
    """
    check_ids(names, where)
    if len(set(names.values())) != len(names):
        seen: dict[int, str] = {}
        for text, number in names.items():
            if number in seen:
                raise FormatError(
                    f"{where}: the tokens {seen[number]!r} and {text!r} have the same id {number}"
                )
            seen[number] = text
    ordinary = [text for text in names if text not in special_tokens]
    found = {
        text: (names[text], token)
        for text, token in zip(ordinary, to_bytes(ordinary, where), strict=True)
    }
    for text in [t for t in ordinary if t.startswith("<|raybpe_filler_")]:
        if text == _FILLER.format(names[text]):
            del found[text]
    for text, number in special_tokens.items():
        if names.get(text, number) != number:
            raise FormatError(
                f"{where}: the special token {text!r} has the id {number} in one place and "
                f"{names[text]} in another"
            )
        found[text] = (number, text.encode())
    return found


def check_ids(names: Mapping[str, Any], where: str) -> None:
    """Refuse values that are not ids."""
    values = names.values()
    if set(map(type, values)) <= {int} and (
        not names or (min(values) >= 0 and max(values) < MAX_VOCAB_SIZE)
    ):
        return
    for text, number in names.items():
        if type(number) is not int:
            raise FormatError(f"{where}: the id of token {text!r} is {kind(number)}")
        if not 0 <= number < MAX_VOCAB_SIZE:
            raise FormatError(
                f"{where}: the id of token {text!r} is {number}; ids are from 0 to "
                f"{MAX_VOCAB_SIZE - 1}"
            )


def merges_of(
    pairs: list[tuple[str, str]] | list[list[str]],
    found: Mapping[str, tuple[int, bytes]],
    where: str,
    first_line: int | None = None,
) -> list[tuple[bytes, bytes]]:
    """Merges in bytes. `first_line` is the line of merge 0 in a text file, for messages."""
    tokens = {text: token for text, (_, token) in found.items()}
    try:
        return [(tokens[left], tokens[right]) for left, right in pairs]
    except KeyError as error:
        rank = next(i for i, pair in enumerate(pairs) if error.args[0] in pair)
        place = f"merge {rank}" if first_line is None else f"line {first_line + rank}"
        raise FormatError(
            f"{where}: {place} uses the token {error.args[0]!r}, which is not in the vocabulary"
        ) from None
