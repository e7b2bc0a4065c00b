"""A tokenizer about to be written: what several formats need, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from raybpe.formats.names import to_names

if TYPE_CHECKING:
    from raybpe.tokenizer.tokenizer import Tokenizer


class Source:
    """Lazy views of one tokenizer.

    Attributes:
        tokenizer: itself.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.merge_ids = tokenizer.vocabulary.merge_ids

    @cached_property
    def names(self) -> dict[str, int]:
        """{text: id} without gaps (`names.to_names`)."""
        return to_names(self.tokenizer.vocabulary)

    @cached_property
    def merge_names(self) -> tuple[Sequence[str], Sequence[str]]:
        """Left and right parts of the merges in printable characters."""
        texts = list(self.names)  # every id has a name, in id order
        return self.pick(texts, 0), self.pick(texts, 1)

    def pick(self, by_id: Sequence[str], column: int) -> Sequence[str]:
        """What `by_id` has for the left (0), right (1) or resulting (2) token of each merge."""
        ids = self.merge_ids[:, column].tolist()
        if len(ids) < 2:
            return [by_id[number] for number in ids]
        picked: tuple[str, ...] = itemgetter(*ids)(by_id)
        return picked

    def shown_by_id(self, shown: Sequence[str]) -> Sequence[str]:
        """`shown`, one text per token in id order, spread out so that an id is its index."""
        ids = list(self.tokenizer.vocabulary.tokens)
        if len(ids) == ids[-1] + 1:
            return shown
        spread = np.full(ids[-1] + 1, "", object)
        spread[ids] = shown
        return list(spread)


def lines(*columns: Sequence[str] | str) -> str:
    """Rows of text: columns one after another, a plain text repeated in every row.

    >>> lines(["a", "b"], " ", ["1", "2"], "\\n")
    'a 1\\nb 2\\n'
    """
    count = next(len(column) for column in columns if not isinstance(column, str))
    pieces = [""] * (count * len(columns))
    for at, column in enumerate(columns):
        pieces[at :: len(columns)] = [column] * count if isinstance(column, str) else column
    return "".join(pieces)
