"""Finding safe cuts in raw bytes; `pretokenize.cuts` says what they are and packs the arguments.

Positions are offsets from `data`, an address; so are the results. `specials` is the address of:
int64 number of special tokens, int64 longest length; 256 bytes, 1 where a token begins with that
byte; then (length, offset) of each as int64, the offset counted from `specials`; then their bytes.
"""

from numba import njit

from raybpe.kernels.automaton_tables import CUTS, PAIRS
from raybpe.kernels.cut_layout import FIRST_BYTES, NEED_MORE, NONE, RECORD_BYTES, RECORDS
from raybpe.kernels.intrinsics import load8, load_i64
from raybpe.kernels.symbols import INCOMPLETE, length_at, length_before, symbol_at

_NO, _YES, _UNKNOWN = 0, 1, 2


@njit
def _occurs(data, at, end, special, length):
    """Whether a special token occurs at an offset; unknown if `end` comes first."""
    for index in range(length):
        if at + index >= end:
            return _UNKNOWN
        if load8(data + at + index) != load8(special + index):
            return _NO
    return _YES


@njit
def _begins_special(data, at, end, specials, longer_than):
    """Whether any special token of more than so many bytes begins at an offset."""
    answer = _NO
    if load8(specials + FIRST_BYTES + load8(data + at)) == 0:
        return answer
    for number in range(load_i64(specials)):
        record = specials + RECORDS + RECORD_BYTES * number
        length = load_i64(record)
        if length <= longer_than:
            continue
        occurs = _occurs(data, at, end, specials + load_i64(record + 8), length)
        if occurs == _YES:
            return _YES
        if occurs == _UNKNOWN:
            answer = _UNKNOWN
    return answer


@njit
def _crossed(data, at, end, specials):
    """Whether a special token may lie across an offset, or invalid bytes are that near."""
    longest = load_i64(specials + 8)
    answer = _NO
    where = at
    while where < at + longest - 1 and where < end:
        length = length_at(data + where, data + end)
        if length == INCOMPLETE:
            answer = _UNKNOWN
            break
        if length < 0:
            return _YES
        where += length
    where = at
    while where > at - longest + 1 and where > 0:
        length = length_before(data + where, data)
        if length < 0:
            return _YES
        where -= length
    for first in range(max(at - longest + 1, 0), at):
        begins = _begins_special(data, first, end, specials, at - first)
        if begins == _YES:
            return _YES
        if begins == _UNKNOWN:
            answer = _UNKNOWN
    return answer


@njit
def _is_cut(data, at, end, tables, specials):
    """Whether there is a cut at an offset; unknown if bytes after `end` decide."""
    length = length_at(data + at, data + end)
    answer = _NO
    if load_i64(tables + PAIRS) != 0:
        before = length_before(data + at, data)
        if length == INCOMPLETE and before > 0:
            answer = _UNKNOWN
        elif length > 0 and before > 0:
            x = symbol_at(data + at - before, before, tables)
            y = symbol_at(data + at, length, tables)
            row = tables + load_i64(tables + CUTS) + 32 * x
            answer = load8(row + (y >> 3)) >> (y & 7) & 1
    if answer != _YES:
        begins = _begins_special(data, at, end, specials, 0)
        if begins != _NO:
            answer = begins
    if answer != _NO:
        crossed = _crossed(data, at, end, specials)
        if crossed == _YES:
            return _NO
        if crossed == _UNKNOWN:
            return _UNKNOWN
    return answer


@njit
def find_next_cut(data, position, end, final, tables, specials):
    """First cut at or after `position` > 0; `end` if `final` and there is none before; NEED_MORE
    when bytes after `end` may decide.
    """
    at = position
    while at < end:
        answer = _is_cut(data, at, end, tables, specials)
        if answer == _YES:
            return at
        # The text ends at `end`, so what would go on after it does not occur.
        if answer == _UNKNOWN and not final:
            return NEED_MORE
        at += 1
    return end if final else NEED_MORE


@njit
def find_last_cut(data, start, end, tables, specials):
    """Last cut in (start, end) that no byte after `end` can undo; NONE if there is none."""
    at = end - 1
    while at > start:
        if _is_cut(data, at, end, tables, specials) == _YES:
            return at
        at -= 1
    return NONE
