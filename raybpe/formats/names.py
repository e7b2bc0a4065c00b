"""Vocabularies as {text: id}, the way `tokenizer.json` and `vocab.json` hold them.

Ordinary tokens are in GPT-2's printable characters, special tokens as they are. Ids without a token
get a filler, ``<|raybpe_filler_N|>``, since readers take the number of entries for the number of
ids; fillers are left out again when such a file is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from raybpe.config import MAX_VOCAB_SIZE
from raybpe.errors import FormatError
from raybpe.formats.byte_text import to_bytes, to_text
from raybpe.formats.files import kind
from raybpe.tokenizer.vocabulary import Vocabulary

_FILLER_START = "<|raybpe_filler_"
_FILLER = _FILLER_START + "{}|>"
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
    merged = np.zeros(vocabulary.id_limit, bool)
    merged[vocabulary.merge_ids] = True
    for text, number in vocabulary.special_tokens.items():
        if merged[number] and by_id[number] != text:
            raise FormatError(
                f"the special token {text!r} is also part of a merge, where it would be written as "
                f"{by_id[number]!r}; files that map text to ids can hold one of the two"
            )


@dataclass(frozen=True)
class Named:
    """A vocabulary that was read.

    Attributes:
        ids: text in the file → id.
        vocab: id → bytes.
    """

    ids: dict[str, int]
    vocab: dict[int, bytes]


def from_names(names: Mapping[str, Any], special_tokens: dict[str, int], where: str) -> Named:
    """What {text: id} says; the texts of `special_tokens` stand for themselves.

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
    ordinary = dict(names)
    for text, number in special_tokens.items():
        if ordinary.pop(text, number) != number:
            raise FormatError(
                f"{where}: the special token {text!r} has the id {number} in one place and "
                f"{names[text]} in another"
            )
    if _FILLER_START in "\n".join(ordinary):
        for text in [t for t in ordinary if t.startswith(_FILLER_START)]:
            if text == _FILLER.format(ordinary[text]):
                del ordinary[text]
    tokens = to_bytes(list(ordinary), where)
    vocab = dict(zip(ordinary.values(), tokens, strict=True))
    vocab.update((number, text.encode()) for text, number in special_tokens.items())
    return Named(ordinary | special_tokens, vocab)


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
    left: Sequence[str],
    right: Sequence[str],
    named: Named,
    where: str,
    first_line: int | None = None,
) -> npt.NDArray[np.int32]:
    """Rows of ids of left, right and what they make, from the texts of left and right.

    `first_line` is the line of merge 0 in a text file, for messages.
    """
    made = map(add, left, right)
    try:
        rows = [list(map(named.ids.__getitem__, part)) for part in (left, right, made)]
    except KeyError as error:
        missing = error.args[0]
        rank = next(i for i, (a, b) in enumerate(zip(left, right, strict=True))
                    if missing in (a, b, a + b))  # fmt: skip
        place = f"merge {rank}" if first_line is None else f"line {first_line + rank}"
        raise FormatError(
            f"{where}: {place} needs the token {missing!r}, which is not in the vocabulary"
        ) from None
    merges: npt.NDArray[np.int32] = np.array(rows, np.int32).T
    return merges
