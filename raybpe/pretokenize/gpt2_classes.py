"""Class tables of the GPT-2 scanner, from the Unicode data of the `regex` package.

Taking them from `regex` rather than from `unicodedata` is what makes the scanner give the same
pretokens as the pattern itself, whichever Unicode version either one has.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from raybpe.kernels.gpt2_layout import LETTER, NUMBER, RANGES, TABLE_BYTES, WHITE
from raybpe.pretokenize.code_points import UNICODE_KEY, boundaries
from raybpe.pretokenize.parse import OneOf
from raybpe.pretokenize.table_cache import cached_arrays

_PROPERTIES = ((r"\p{L}", LETTER), (r"\p{N}", NUMBER), (r"\s", WHITE))


@lru_cache(maxsize=1)
def gpt2_tables() -> npt.NDArray[np.uint8]:
    """What `kernels.scan_gpt2` expects at TABLES: uint8 (TABLE_BYTES,), read-only."""
    key = f"gpt2 classes 3, {UNICODE_KEY}"
    tables = cached_arrays(key, lambda: {"tables": _build()})["tables"]
    if tables.dtype != np.uint8 or tables.shape != (TABLE_BYTES,):
        tables = _build()
    tables.setflags(write=False)
    return tables


def _build() -> npt.NDArray[np.uint8]:
    tables = np.zeros(TABLE_BYTES, np.uint8)
    for text, number in _PROPERTIES:
        for start, end in boundaries(OneOf(text)).reshape(-1, 2).tolist():
            tables[start:end] = number
    tables[RANGES:] = _letter_leads(tables)
    return tables


def _letter_leads(classes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The four longest ranges of lead bytes all of whose characters are letters.

    Four (first, count) pairs of bytes; unused ones are zero.
    """
    spans = {lead: ((lead & 0x1F) << 6, 1 << 6) for lead in range(0xC2, 0xE0)}
    spans |= {lead: ((lead & 0xF) << 12, 1 << 12) for lead in range(0xE1, 0xF0)}
    uniform = [
        lead
        for lead, (first, count) in sorted(spans.items())
        if (classes[first : first + count] == LETTER).all()
    ]
    ranges: list[list[int]] = []
    for lead in uniform:
        if ranges and sum(ranges[-1]) == lead:
            ranges[-1][1] += 1
        else:
            ranges.append([lead, 1])
    longest = sorted(ranges, key=lambda pair: -pair[1])[:4]
    flat = np.zeros(8, np.uint8)
    flat[: 2 * len(longest)] = np.array(longest, np.uint8).ravel()
    return flat
