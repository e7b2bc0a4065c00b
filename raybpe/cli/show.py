"""Results as text for standard output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raybpe.counts.counts import Counts
    from raybpe.flow import TrainResult


def readable(token: bytes) -> str:
    """A quoted text, or quoted bytes where they are not UTF-8.

    >>> readable(b" the"), readable(b"\\xe2\\x80")
    ("' the'", "b'\\\\xe2\\\\x80'")
    """
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(token)


def table(rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows in columns; `right` names the columns that end flush."""
    rows = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def training_summary(result: TrainResult, output: str) -> str:
    """One line on what was written."""
    tokenizer = result.tokenizer
    return (
        f"{output}: {tokenizer.vocab_size:,} tokens = 256 bytes + "
        f"{len(tokenizer.special_tokens):,} special + {len(tokenizer.merges):,} merges"
    )


def counts_summary(counts: Counts) -> str:
    """One line on what was counted."""
    return f"{counts.total:,} pretokens, {len(counts):,} of them distinct"
