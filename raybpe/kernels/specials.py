"""Finding special tokens in text: leftmost, and the longest of those that start there.

The compiled form is one int64 array, made by `compile_specials`: a header, a bitmap of the two-byte
beginnings, a record per token (longest first), and the tokens' bytes. With up to four different
beginnings the search compares 64 places at a time; with more it looks every place up in the bitmap.
"""

from numba import njit

from raybpe.kernels.intrinsics import ONE, ZERO, as_u64, ctz, equal64, load8, load16, load_i64

# Words of the compiled form.
from raybpe.kernels.special_table import BEGINNINGS, BITMAP, FIRST, RECORD, RECORDS, SECOND, TOKENS


@njit
def _longest_here(specials, where, room):
    """(index, length) of the longest special token at an address, or (-1, 0)."""
    for place in range(load_i64(specials + 8 * TOKENS)):
        record = specials + 8 * (RECORDS + RECORD * place)
        length = load_i64(record + 8)
        token = specials + load_i64(record)
        if length <= room:
            same = 0
            while same < length and load8(where + same) == load8(token + same):
                same += 1
            if same == length:
                return load_i64(record + 16), length
    return -1, 0


@njit
def next_special(specials, data, at, end):
    """The first special token in data[at:end]: (offset, index, length).

    (end, -1, 0) if there is none. Reads up to 128 bytes past `end`.
    """
    if load_i64(specials + 8 * TOKENS) == 0:
        return end, -1, 0
    beginnings = load_i64(specials + 8 * BEGINNINGS)
    bitmap = specials + 8 * BITMAP
    while at < end:
        candidates = ZERO
        for place in range(beginnings):
            here = equal64(data + at, load_i64(specials + 8 * (FIRST + place)))
            second = load_i64(specials + 8 * (SECOND + place))
            if second >= 0:
                here &= equal64(data + at + 1, second)
            candidates |= here
        if beginnings == 0:
            for step in range(64):
                pair = load16(data + at + step)
                bit = (load8(bitmap + (pair >> 3)) >> (pair & 7)) & 1
                candidates |= as_u64(bit) << as_u64(step)
        while candidates != ZERO:
            where = at + ctz(candidates)
            if where >= end:
                break
            index, length = _longest_here(specials, data + where, end - where)
            if index >= 0:
                return where, index, length
            candidates &= candidates - ONE
        at += 64
    return end, -1, 0
