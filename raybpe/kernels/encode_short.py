"""Merging the waiting pretokens, several side by side.

In each step every pretoken merges its pair of lowest rank, the leftmost of equal ones. One step is
a chain of loads that wait for each other, so a pretoken alone leaves the processor idle for most of
the time; the chains of several overlap. And next to nothing in a step depends on a condition that
the processor would have to guess: at an end stands a symbol that merges with nothing.

A lane is LANE bytes of SCRATCH for one pretoken of 1 to SHORT bytes, offsets below: `live` has a
bit for each place where a symbol begins, the place of its first byte; three int32 arrays by place
hold the symbol; rank << 8 | place of the pair that begins there, or _NO_RANK; what that pair makes.
Place -1 and place SHORT stand for the ends. Each step leaves two new pairs to be looked up.
"""

import numpy as np

from raybpe.kernels.encode_pairs import find_in_line, pair_line
from raybpe.kernels.encode_state import (
    BYTE_IDS,
    BYTE_PAIRS,
    FILTER,
    FILTER_MASK,
    LANE,
    LANES,
    NONE,
    PAIR_SHIFT,
    PAIRS,
    SCRATCH,
    SHORT,
    WAITING_BYTES,
    WAITING_IDS,
    WIDTH,
)
from raybpe.kernels.intrinsics import (
    ALL,
    ONE,
    ZERO,
    as_i64,
    as_u64,
    clz,
    ctz,
    least16,
    load8,
    load16,
    load32,
    load64,
    load_i64,
    prefetch,
    store16,
    store32,
    store64,
)
from raybpe.kernels.jit import njit

_LIVE = 0  # uint64
_RECORD = 8  # address of the pretoken's record
_ROWS = 16  # places of all three arrays that are used, in bytes: a multiple of 64
_AFTER = 24  # a new pair: int32 place, left, right, offset of its line in the pair table
_BEFORE = 40
_SYMBOLS = 64
_RANKS = 384
_RESULTS = 704
_NO_RANK = 0xFFFF_FFFF
_END = 0xFFFF_FFFF
_BLOCK = 16  # places that `least16` sees at once
_U32 = np.uint64(32)
_U64 = np.uint64(64)
_LAST_PLACE = np.uint64(1 << 63)

assert _RESULTS + 4 * SHORT + 4 <= LANE
assert SHORT == 63


@njit
def merge_waiting(state, first, count):
    """Merge the pretokens of `count` records from address `first` on; fills in their ids."""
    scratch = load_i64(state + 8 * SCRATCH)
    lanes = scratch + LANE * LANES  # addresses of the lanes in use
    end = first + WAITING_BYTES * count
    used = min(count, LANES)
    for index in range(used):
        store64(lanes + 8 * index, scratch + LANE * index)
        _begin(state, scratch + LANE * index, first + WAITING_BYTES * index)
    first += WAITING_BYTES * used
    while used > 0:
        index = 0
        while index < used:
            lane = load_i64(lanes + 8 * index)
            best = _best(lane)
            if best != _NO_RANK:
                _merge(state, lane, best)
                index += 1
                continue
            _write_ids(state, lane)
            if first < end:  # the lane is free for the next one
                _begin(state, lane, first)
                first += WAITING_BYTES
            else:
                used -= 1
                store64(lanes + 8 * index, load_i64(lanes + 8 * used))
        pairs = load_i64(state + 8 * PAIRS)
        shift = load64(state + 8 * PAIR_SHIFT)
        for index in range(used):
            lane = load_i64(lanes + 8 * index)
            _answer(lane, lane + _AFTER, pairs, shift)
            _answer(lane, lane + _BEFORE, pairs, shift)


@njit
def _begin(state, lane, record):
    """Put the pretoken of a record into a lane."""
    byte_ids = load_i64(state + 8 * BYTE_IDS)
    byte_pairs = load_i64(state + 8 * BYTE_PAIRS)
    text = load_i64(record + 16)
    length = load_i64(record + 24)
    last = length - 1
    store64(lane + _LIVE, ALL >> (_U64 - as_u64(length)))
    store64(lane + _RECORD, record)
    store64(lane + _ROWS, (4 * length + 63) & ~63)
    for block in range(_RANKS, _RANKS + 4 * length, 4 * _BLOCK):
        for place in range(_BLOCK):
            store32(lane + block + 4 * place, _NO_RANK)
    for place in range(last):
        store32(lane + _SYMBOLS + 4 * place, load32(byte_ids + 4 * load8(text + place)))
        value = load64(byte_pairs + 8 * load16(text + place))
        store32(lane + _RANKS + 4 * place, _ranked(value, place))
        store32(lane + _RESULTS + 4 * place, as_i64(value))
    store32(lane + _SYMBOLS + 4 * last, load32(byte_ids + 4 * load8(text + last)))
    store32(lane + _SYMBOLS - 4, _END)
    store32(lane + _SYMBOLS + 4 * SHORT, _END)


@njit
def _ranked(value, place):
    """rank << 8 | place of a pair's value, or _NO_RANK."""
    return as_i64(value >> _U32) << 8 | place if value != NONE else _NO_RANK


@njit
def _best(lane):
    """The least rank << 8 | place of a lane, or _NO_RANK."""
    best = least16(lane + _RANKS)
    for block in range(_RANKS + 64, _RANKS + load_i64(lane + _ROWS), 64):
        best = min(best, least16(lane + block))
    return best


@njit
def _merge(state, lane, best):
    """Merge the pair of a lane that has rank << 8 | place `best`, and ask for the new ones."""
    shift = load64(state + 8 * PAIR_SHIFT)
    filter_bits = load_i64(state + 8 * FILTER)
    filter_mask = load64(state + 8 * FILTER_MASK)
    pairs = load_i64(state + 8 * PAIRS)
    at = best & 0xFF
    result = load32(lane + _RESULTS + 4 * at)
    live = load64(lane + _LIVE)
    after = live & (ALL << as_u64(at) << ONE)
    right = after & (ZERO - after)
    after ^= right
    before = 63 - clz(live & ~(ALL << as_u64(at)))
    store64(lane + _LIVE, live ^ right)
    store32(lane + _SYMBOLS + 4 * at, result)
    store32(lane + _RANKS + 4 * ctz(right), _NO_RANK)
    symbol = load32(lane + _SYMBOLS + 4 * ctz(after | _LAST_PLACE))
    line = pair_line(result, symbol, shift, filter_bits, filter_mask)
    _ask(lane + _AFTER, at, result, symbol, pairs, line)
    symbol = load32(lane + _SYMBOLS + 4 * before)
    line = pair_line(symbol, result, shift, filter_bits, filter_mask)
    _ask(lane + _BEFORE, before, symbol, result, pairs, line)


@njit
def _ask(question, place, left, right, pairs, line):
    """Note the new pair at a place, and have its line of the pair table brought near."""
    prefetch(pairs + line)
    store32(question, place)
    store32(question + 4, left)
    store32(question + 8, right)
    store32(question + 12, line)


@njit
def _answer(lane, question, pairs, shift):
    """Look up the pair that was asked for and note its rank and what it makes."""
    place = as_i64(as_u64(load32(question)) << _U32) >> 32  # may be -1
    line = load32(question + 12)
    value = find_in_line(load32(question + 4), load32(question + 8), pairs, shift, line)
    store32(lane + _RANKS + 4 * place, _ranked(value, place))
    store32(lane + _RESULTS + 4 * place, as_i64(value))


@njit
def _write_ids(state, lane):
    """Write the ids of a merged lane, and how many, into its record."""
    record = load_i64(lane + _RECORD)
    out = record + WAITING_IDS
    width = load_i64(state + 8 * WIDTH)
    live = load64(lane + _LIVE)
    count = 0
    while live != ZERO:
        symbol = load32(lane + _SYMBOLS + 4 * ctz(live))
        live &= live - ONE
        if width == 1:
            store16(out + 2 * count, symbol)
        else:
            store32(out + 4 * count, symbol)
        count += 1
    store64(record + 40, count)
