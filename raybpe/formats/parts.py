"""What a tokenizer file says, before a `Tokenizer` is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern
    from raybpe.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Parts:
    """The arguments of a `Tokenizer`, as one file gives them.

    Attributes:
        vocab: id → bytes of every token that the file lists.
        merges: int32 (merges, 3): ids of left, right and what they make, in rank order.
        special_tokens: text → id.
        pattern: a name, a regex or a `Pattern`; None where the format does not hold one.
        ignore_merges: whether a pretoken that is a token is taken whole.
    """

    vocab: dict[int, bytes]
    merges: npt.NDArray[np.int32]
    special_tokens: dict[str, int] = field(default_factory=dict)
    pattern: str | Pattern | None = None
    ignore_merges: bool = False

    def differs_from(self, tokenizer: Tokenizer) -> str | None:
        """What is not as in `tokenizer`, or None. A pattern is compared by its text."""
        if self.vocab != tokenizer.vocab:
            return "the vocabulary"
        if not np.array_equal(self.merges, tokenizer.vocabulary.merge_ids):
            return "the merges"
        if self.special_tokens != tokenizer.special_tokens:
            return "the special tokens"
        return None
