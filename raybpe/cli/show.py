"""Results as text for standard output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raybpe.counts.counts import Counts
    from raybpe.flow import TrainResult


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
    """A few lines on what was learned, from what, and how long it took."""
    tokenizer, totals, run = result.tokenizer, result.manifest["totals"], result.manifest["run"]
    rows = [
        (
            "tokens",
            f"{tokenizer.vocab_size:,} = 256 bytes + {len(tokenizer.special_tokens):,} special + "
            f"{len(tokenizer.merges):,} merges",
        ),
        (
            "pretokens",
            f"{totals['pretokens']:,}, {totals['unique_pretokens']:,} of them distinct",
        ),
    ]
    if totals.get("text_bytes"):
        rows.append(("text", f"{totals['text_bytes']:,} bytes"))
    rare = totals["rare_pretokens_left_out"]
    noted = {
        "invalid bytes": totals["invalid_bytes"],
        "null records": totals["nulls"],
        "tar members not read": totals["members_not_read"],
        "byte order marks": totals["byte_order_marks"],
        "pretokens left out as too long": totals["long_pretokens_left_out"],
        "pretokens left out as too rare": rare["occurrences"],
    }
    rows += [(name, f"{number:,}") for name, number in noted.items() if number]
    seconds = ", ".join(f"{stage} {time:.2f} s" for stage, time in run["seconds"].items())
    rows.append(("time", f"{seconds} ({run['executor']})"))
    peaks = run["peak_memory_bytes"].items()
    largest = ", ".join(f"{stage} {peak / 1e6:,.0f} MB" for stage, peak in peaks)
    rows.append(("memory", f"{largest} in the largest process"))
    return f"{output}\n{table([(f'  {name}', value) for name, value in rows])}"


def counts_summary(counts: Counts) -> str:
    """One line on what was counted."""
    return f"{counts.total:,} pretokens, {len(counts):,} of them distinct"
