"""The shape of a table of counts, and a warning when pretokens explode.

A healthy corpus has far fewer distinct pretokens than pretokens, and they are short. Text without
spaces under the pattern `none`, base64, minified code or hexadecimal dumps are not like that: most
pretokens are seen once, are long, and carry most of the bytes. Merging then needs memory and time
for text that teaches the tokenizer nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from raybpe.counts.columns import Columns, exact_sum

LONG_BYTES = 256  # no word of any language is as long
HUGE_BYTES = 100_000  # one such pretoken is longer than any line that people write
MANY_DISTINCT = 1_000_000  # below this, nothing that could be wrong costs anything
DISTINCT_SHARE = 0.3  # prose, code and mixed languages stay under 0.05 from 100 MB on
LONG_SHARE = 0.5


def statistics(columns: Columns) -> dict[str, int | float | str]:
    """Totals and shape.

    Returns:
        distinct_pretokens: rows.
        pretokens: occurrences in all.
        text_bytes: bytes of all occurrences.
        distinct_bytes: bytes of the distinct pretokens.
        mean_length: bytes of a pretoken as it occurs in text.
        longest_pretoken: bytes of the longest one.
        seen_once: distinct pretokens with count 1, and seen_once_share of all distinct.
        long_pretokens: distinct ones over `LONG_BYTES`, and their bytes, long_bytes.
    """
    lengths = np.diff(columns.offsets)
    total = exact_sum(columns.counts)
    # The product may pass 64 bits, so multiply in halves as well.
    high, low = columns.counts >> 32, columns.counts & 0xFFFFFFFF
    text = _dot(high, lengths) * 2**32 + _dot(low, lengths)
    once = int((columns.counts == 1).sum())
    long = lengths > LONG_BYTES
    rows = len(columns.counts)
    return {
        "distinct_pretokens": rows,
        "pretokens": total,
        "text_bytes": text,
        "distinct_bytes": int(columns.offsets[-1]),
        "mean_length": round(text / total, 3) if total else 0.0,
        "longest_pretoken": int(lengths.max()) if rows else 0,
        "seen_once": once,
        "seen_once_share": round(once / rows, 4) if rows else 0.0,
        "long_pretokens": int(long.sum()),
        "long_bytes": int(lengths[long].sum()),
    }


def _dot(halves: np.ndarray, lengths: np.ndarray) -> int:
    """Exact sum of products of numbers under 2**32 and lengths."""
    return int((halves * (lengths >> 16)).sum()) * 2**16 + int((halves * (lengths & 0xFFFF)).sum())


def length_histogram(columns: Columns) -> dict[int, int]:
    """Distinct pretokens by length: {1: n, 2: n, 4: n (3 and 4 bytes), 8: n, …}."""
    lengths = np.diff(columns.offsets)
    lengths = lengths[lengths > 0]
    if not len(lengths):
        return {}
    powers = np.ceil(np.log2(lengths)).astype(np.int64)
    numbers = np.bincount(powers)
    return {2**power: int(number) for power, number in enumerate(numbers) if number}


def explosion_warning(stats: Mapping[str, int | float | str]) -> str | None:
    """What to tell the user when pretokens are not words, or None.

    Args:
        stats: what `statistics` gives.
    """
    distinct, total = int(stats["distinct_pretokens"]), int(stats["pretokens"])
    longest = int(stats["longest_pretoken"])
    cure = (
        "use a --pattern that splits such text (the pattern `none` splits nothing), or leave "
        f"pretokens over {LONG_BYTES} bytes out with --max-pretoken-length {LONG_BYTES}; "
        "what is left out is reported"
    )
    if distinct > MANY_DISTINCT and distinct > DISTINCT_SHARE * total:
        return (
            f"{distinct:,} of {total:,} pretokens are distinct, so this does not look like words: "
            f"memory and merging grow with distinct pretokens. Look for base64, identifiers or "
            f"text without spaces; {cure}"
        )
    if longest > HUGE_BYTES or (
        int(stats["long_pretokens"])
        and int(stats["long_bytes"]) > LONG_SHARE * int(stats["distinct_bytes"])
    ):
        return (
            f"the longest pretoken has {longest:,} bytes, and {int(stats['long_pretokens']):,} of "
            f"over {LONG_BYTES} bytes hold {int(stats['long_bytes']):,} of the "
            f"{int(stats['distinct_bytes']):,} bytes of distinct pretokens, which is how encoded "
            f"data or text without spaces looks; {cure}"
        )
    return None
