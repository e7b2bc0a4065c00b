"""Finding text that is not UTF-8, 64 bytes at a time.

Well-formed is what Unicode's table 3-7 and Python's decoder say: no overlong forms, no surrogates,
nothing above U+10FFFF, no character cut short.
"""

import numpy as np
from numba import njit

from raybpe.kernels.intrinsics import (
    ALL,
    ONE,
    ZERO,
    as_u64,
    at_least64,
    equal64,
    high64,
    load_i64,
)

_U2 = np.uint64(2)
_U3 = np.uint64(3)
_U61 = np.uint64(61)
_U62 = np.uint64(62)
_U63 = np.uint64(63)


@njit(cache=True)
def _well_formed(data, at, end):
    """1 if data[at:end] is well-formed, else 0."""
    expected = ZERO  # bits of the next block that must be continuation bytes
    after_e0 = after_ed = after_f0 = after_f4 = ZERO  # its bit 0 comes after such a byte
    while at < end:
        where = data + at
        at += 64
        if expected == ZERO and high64(where) == ZERO:
            continue
        from_80, from_90, from_a0 = at_least64(where, 0x80, 0x90, 0xA0)
        from_c0, from_c2, from_e0 = at_least64(where, 0xC0, 0xC2, 0xE0)
        from_f0, from_f5, _ = at_least64(where, 0xF0, 0xF5, 0xF5)
        e0, ed = equal64(where, 0xE0), equal64(where, 0xED)
        f0, f4 = equal64(where, 0xF0), equal64(where, 0xF4)
        valid = ALL
        if at > end:
            valid = ALL >> as_u64(at - end)
            from_c0 &= valid
            from_e0 &= valid
            from_f0 &= valid
        expected |= from_c0 << ONE | from_e0 << _U2 | from_f0 << _U3
        wrong = expected ^ (from_80 & ~from_c0 & valid)
        wrong |= ((from_c0 & ~from_c2) | from_f5) & valid
        wrong |= (e0 << ONE | after_e0) & ~from_a0 & valid
        wrong |= (ed << ONE | after_ed) & from_a0 & valid
        wrong |= (f0 << ONE | after_f0) & ~from_90 & valid
        wrong |= (f4 << ONE | after_f4) & from_90 & valid
        if wrong != ZERO:
            return 0
        expected = from_c0 >> _U63 | from_e0 >> _U62 | from_f0 >> _U61
        after_e0, after_ed = e0 >> _U63, ed >> _U63
        after_f0, after_f4 = f0 >> _U63, f4 >> _U63
    return 1 if expected == ZERO else 0


@njit(cache=True, nogil=True)
def first_invalid(data, starts, ends, documents):
    """Index of the first document that is not well-formed UTF-8, or -1.

    Takes addresses: of the data, of int64 starts and ends. Reads up to 64 bytes past each end.
    """
    for document in range(documents):
        start = load_i64(starts + 8 * document)
        if _well_formed(data, start, load_i64(ends + 8 * document)) == 0:
            return document
    return -1
