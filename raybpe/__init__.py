"""Byte-pair-encoding tokenizers at any scale: exact, fast, on one machine or on Ray.

Count pretokens in parallel, sum the counts in a tree, run the merge loop once on the summed
counts: exactly what a slow, obvious, single-process trainer would have got.

Public names load on first use, so that importing raybpe costs next to nothing and imports
neither Ray nor Numba nor Arrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from raybpe import errors
from raybpe.errors import RaybpeError

if TYPE_CHECKING:
    from raybpe.api import (
        count,
        count_from_iterator,
        train,
        train_bpe,
        train_from_counts,
        train_from_iterator,
    )
    from raybpe.counts.counts import Counts
    from raybpe.tokenizer.tokenizer import Tokenizer

__version__ = "0.1.0"

__all__ = [
    "Counts",
    "RaybpeError",
    "Tokenizer",
    "__version__",
    "count",
    "count_from_iterator",
    "errors",
    "train",
    "train_bpe",
    "train_from_counts",
    "train_from_iterator",
]

_HOMES = {
    "Counts": "raybpe.counts.counts",
    "Tokenizer": "raybpe.tokenizer.tokenizer",
    "count": "raybpe.api",
    "count_from_iterator": "raybpe.api",
    "train": "raybpe.api",
    "train_bpe": "raybpe.api",
    "train_from_counts": "raybpe.api",
    "train_from_iterator": "raybpe.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'raybpe' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
