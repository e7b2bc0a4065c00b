"""The shape of a table of counts.

A healthy corpus has far fewer distinct pretokens than pretokens, and they are short. Text without
spaces under the pattern `none`, base64, minified code or hexadecimal dumps are not like that: most
pretokens are seen once, are long, and carry most of the bytes.
"""

from __future__ import annotations

import numpy as np

from raybpe.counts.columns import Columns, exact_sum

LONG_BYTES = 256  # no word of any language is as long


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
