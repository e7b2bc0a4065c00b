"""The keywords of those functions that take some of `train`'s, and the error for any others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

from raybpe.config import ByteOrder, InvalidUtf8, SpecialsAt, TieBreak
from raybpe.errors import ArgumentTypeError

# Of `train`: how files are read, counted in chunks, and gone on with.
_OF_FILES = ("documents", "field", "chunk_size", "fan_in", "resume")


class CountsKeywords(TypedDict, total=False):
    """The keywords of `train_from_counts`: those of `train` that are not about reading text."""

    pattern: str
    special_tokens: Sequence[str] | None
    invalid_utf8: InvalidUtf8
    max_pretoken_length: int | None
    compat: str
    tie_break: TieBreak | None
    byte_order: ByteOrder | None
    special_tokens_at: SpecialsAt | None
    min_frequency: int | None
    max_token_length: int | None
    min_pretoken_count: int
    strict: bool
    executor: str
    address: str | None
    workers: int | None
    output: str | os.PathLike[str] | None
    verify: bool
    progress: str


class TextsKeywords(CountsKeywords, total=False):
    """The keywords of `train_from_iterator`."""

    field: str


def refuse_others(function: str, keywords: Mapping[str, object], taken: frozenset[str]) -> None:
    """Refuse a keyword that would do nothing, as Python refuses one that a signature lacks.

    Args:
        taken: the keywords that the function takes.

    Raises:
        ArgumentTypeError: another one is given.
    """
    for name in keywords:
        if name in taken:
            continue
        if name in _OF_FILES:
            raise ArgumentTypeError(
                f"{function} takes no {name}, which is about reading files and would do nothing; "
                "leave it out"
            )
        raise ArgumentTypeError(
            f"{function} has no keyword {name!r}; it takes {', '.join(sorted(taken))}"
        )
