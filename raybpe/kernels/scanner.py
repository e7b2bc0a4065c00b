"""Which scanner runs a pattern, and its tables."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

_NOTHING = np.zeros(1, np.uint8)


@dataclass(frozen=True)
class Scanner:
    """A scanner and the tables that make it follow one pattern.

    Attributes:
        kind: `gpt2` (its pattern only, the fastest) or `automaton` (any compiled pattern).
        tables: what the scanner expects at TABLES of its state block; kept alive here.
    """

    kind: Literal["gpt2", "automaton"]
    tables: npt.NDArray[Any] = field(default_factory=lambda: _NOTHING, repr=False)
