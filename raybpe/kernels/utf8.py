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
    load32,
    load_i64,
    store64,
)

_U2 = np.uint64(2)
_U3 = np.uint64(3)
_U61 = np.uint64(61)
_U62 = np.uint64(62)
_U63 = np.uint64(63)


@njit
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


@njit
def first_invalid(data, starts, ends, documents):
    """Index of the first document that is not well-formed UTF-8, or -1.

    Takes addresses: of the data, of int64 starts and ends. Reads up to 64 bytes past each end.
    """
    for document in range(documents):
        start = load_i64(starts + 8 * document)
        if _well_formed(data, start, load_i64(ends + 8 * document)) == 0:
            return document
    return -1


@njit
def _character(where, readable):
    """Length of the character at an address, 0 if it is not valid or longer than `readable`."""
    word = load32(where)
    first = word & 0xFF
    second = (word >> 8) & 0xFF
    length = 0
    if first < 0x80:
        length = 1
    elif first < 0xE0:
        if first >= 0xC2 and word & 0xC000 == 0x8000:
            length = 2
    elif first < 0xF0:
        low = 0xA0 if first == 0xE0 else 0x80
        high = 0x9F if first == 0xED else 0xBF
        if low <= second <= high and word & 0xC00000 == 0x800000:
            length = 3
    elif first < 0xF5:
        low = 0x90 if first == 0xF0 else 0x80
        high = 0x8F if first == 0xF4 else 0xBF
        if low <= second <= high and word & 0xC0C00000 == 0x80800000:
            length = 4
    return length if length <= readable else 0


@njit
def split_invalid(data, start, end, run_starts, run_ends, histogram):
    """Find the runs of valid characters in data[start:end] and count the invalid bytes.

    Takes addresses: of the data, of int64 offsets to write (one run per byte at most, and one),
    of int64 (256,) to add to. Returns the number of runs. Reads up to 64 bytes past the end.
    """
    runs = 0
    at = start
    while at < end:
        if at + 64 <= end and high64(data + at) == ZERO:
            at += 64
            continue
        length = _character(data + at, end - at)
        if length == 0:
            if at > start:
                store64(run_starts + 8 * runs, start)
                store64(run_ends + 8 * runs, at)
                runs += 1
            place = histogram + 8 * (load32(data + at) & 0xFF)
            store64(place, load_i64(place) + 1)
            length = 1
            start = at + 1
        at += length
    if at > start:
        store64(run_starts + 8 * runs, start)
        store64(run_ends + 8 * runs, at)
        runs += 1
    return runs
