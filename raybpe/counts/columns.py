"""Counts as three plain arrays.

Row i is ``data[offsets[i]:offsets[i + 1]]``, seen ``counts[i]`` times. Row order means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt


class Columns(NamedTuple):
    """Counts as plain arrays.

    Attributes:
        data: uint8, the pretokens' bytes one after the other.
        offsets: int64 (n + 1,), from 0 to ``len(data)``.
        counts: int64 (n,).
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.data.nbytes + self.offsets.nbytes + self.counts.nbytes


def checksum(parts: Iterable[Columns]) -> int:
    """CRC-32 of the arrays of all parts, one after the other: offsets, bytes, counts."""
    value = 0
    for part in parts:
        for array in (part.offsets, part.data, part.counts):
            value = crc32(np.ascontiguousarray(array).data, value)
    return value


def concatenate(parts: Sequence[Columns]) -> Columns:
    """All rows of several tables; they are not added up."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part.data) for part in parts)])
    offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Columns(
        np.concatenate([np.zeros(0, np.uint8), *(part.data for part in parts)]),
        np.concatenate([*offsets, ends[-1:]]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *(part.counts for part in parts)]),
    )


def take(columns: Columns, rows: npt.NDArray[np.int64]) -> Columns:
    """The rows with these numbers, in this order."""
    starts = columns.offsets[:-1][rows]
    lengths = columns.offsets[1:][rows] - starts
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    # Byte j of the result comes from where its row starts, plus how far j is into the row.
    source = np.arange(offsets[-1])
    source += np.repeat(starts - offsets[:-1], lengths)
    return Columns(columns.data[source], offsets, columns.counts[rows])


def exact_sum(counts: npt.NDArray[np.int64]) -> int:
    """Sum that cannot wrap: the halves of up to 2**31 non-negative numbers fit 64 bits."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
