"""The keywords of `train` for the functions that take them as a whole, and the error for others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

from raybpe.config import ByteOrder, InvalidUtf8, SpecialsAt, TieBreak
from raybpe.errors import ArgumentTypeError


class TrainKeywords(TypedDict, total=False):
    """All keywords of `train`, so that one set of them serves every function that trains."""

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
    chunk_size: str | int
    fan_in: int
    output: str | os.PathLike[str] | None
    resume: bool
    verify: bool
    progress: str
    documents: str
    field: str


def refuse_others(function: str, keywords: Mapping[str, object]) -> None:
    """Refuse a keyword that `train` lacks, as Python refuses one that a signature lacks.

    Raises:
        ArgumentTypeError: there is one.
    """
    taken = TrainKeywords.__optional_keys__
    for name in keywords:
        if name not in taken:
            raise ArgumentTypeError(
                f"{function} has no keyword {name!r}; it takes {', '.join(sorted(taken))}"
            )
