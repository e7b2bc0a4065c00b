"""UTF-8 into the symbols of `automaton_tables`, checked and unchecked."""

from numba import njit

from raybpe.kernels.automaton_tables import CLASSES, PAGES
from raybpe.kernels.intrinsics import load8, load16, load_i64

INVALID, INCOMPLETE = -1, -2


@njit
def symbol_of(point, tables):
    """128 + the class of a code point."""
    page = load16(tables + load_i64(tables + PAGES) + ((point >> 6) << 1))
    return load8(tables + load_i64(tables + CLASSES) + (page << 6) + (point & 63))


@njit
def length_at(where, end):
    """Bytes of the UTF-8 character at `where`; INVALID, or INCOMPLETE where `end` cuts it off.

    Overlong forms, surrogates and what is beyond U+10FFFF are invalid, as for Python's decoder. No
    byte at or after `end` is read.
    """
    lead = load8(where)
    if lead < 0x80:
        return 1
    low, high = 0x80, 0xBF  # what the second byte may be
    if 0xC2 <= lead <= 0xDF:
        length = 2
    elif 0xE0 <= lead <= 0xEF:
        length = 3
        if lead == 0xE0:
            low = 0xA0
        elif lead == 0xED:
            high = 0x9F
    elif 0xF0 <= lead <= 0xF4:
        length = 4
        if lead == 0xF0:
            low = 0x90
        elif lead == 0xF4:
            high = 0x8F
    else:
        return INVALID
    for index in range(1, length):
        if where + index >= end:
            return INCOMPLETE
        byte = load8(where + index)
        if byte < low or byte > high:
            return INVALID
        low, high = 0x80, 0xBF
    return length


@njit
def symbol_at(where, length, tables):
    """Symbol of the valid character of `length` bytes at `where`."""
    lead = load8(where)
    if length == 1:
        return lead
    if length == 2:
        return symbol_of((lead & 0x1F) << 6 | load8(where + 1) & 0x3F, tables)
    if length == 3:
        point = (lead & 0xF) << 12 | (load8(where + 1) & 0x3F) << 6
        return symbol_of(point | load8(where + 2) & 0x3F, tables)
    point = (lead & 7) << 18 | (load8(where + 1) & 0x3F) << 12 | (load8(where + 2) & 0x3F) << 6
    return symbol_of(point | load8(where + 3) & 0x3F, tables)


@njit
def length_before(where, begin):
    """Bytes of the valid UTF-8 character that ends at `where`, not reading before `begin`; or
    INVALID.
    """
    for length in range(1, 5):
        if where - length < begin:
            return INVALID
        if load8(where - length) & 0xC0 != 0x80:
            return length if length_at(where - length, where) == length else INVALID
    return INVALID
