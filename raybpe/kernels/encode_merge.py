"""Merging one pretoken: the pair of lowest rank, the leftmost of equal ones, until none is left.

`merge_short` looks at all pairs in each step: they are few, and all in registers or the nearest
cache. `merge_long` keeps a heap, O(n log n), in LONG_SCRATCH bytes per byte.
"""

import numpy as np

from raybpe.kernels.encode_state import (
    BYTE_IDS,
    BYTE_PAIRS,
    FILTER,
    FILTER_MASK,
    LENGTHS,
    NONE,
    PAIR_SHIFT,
    PAIRS,
    SCRATCH,
    SHORT,
)
from raybpe.kernels.intrinsics import (
    ALL,
    ONE,
    ZERO,
    as_i64,
    as_u64,
    clz,
    ctz,
    load8,
    load16,
    load32,
    load64,
    load_i64,
    mum,
    store16,
    store32,
    store64,
)
from raybpe.kernels.jit import njit
from raybpe.kernels.scan_state import DATA, DOCUMENTS

_MIX1 = np.uint64(0x9E3779B97F4A7C15)
_MIX2 = np.uint64(0xD6E8FEB86659FD93)
_LOW32 = np.uint64(0xFFFF_FFFF)
_U3 = np.uint64(3)
_U6 = np.uint64(6)
_U32 = np.uint64(32)
_U63 = np.uint64(63)
_U64 = np.uint64(64)
_ROOT = np.int64(0)  # typed, or functions that it is passed to are compiled once more
_NO_RANK = 0xFFFF_FFFF
_DEAD = 0xFFFF_FFFF


@njit
def _pair_hash(key):
    """Hash of left << 32 | right: its top bits choose the slot, its low bits the filter's bit."""
    return mum(key ^ _MIX1, _MIX2)


@njit
def find_pair(left, right, pairs, shift, filter_bits, filter_mask):
    """rank << 32 | result of a pair of ids; NONE if it does not merge."""
    key = as_u64(left << 32 | right)
    mixed = _pair_hash(key)
    bit = mixed & filter_mask
    if (load64(filter_bits + as_i64((bit >> _U6) << _U3)) >> (bit & _U63)) & ONE == ZERO:
        return NONE
    last = (16 << (64 - as_i64(shift))) - 1
    at = as_i64(mixed >> shift) << 4
    while True:
        found = load64(pairs + at)
        if found == key:
            return load64(pairs + at + 8)
        if found == NONE:
            return NONE
        at = (at + 16) & last


@njit
def merge_short(state, text, length, out, width):
    """Write the ids of the pretoken of 1 to SHORT bytes at address `text`; how many.

    A symbol stays where its first byte is. For the pair that begins at each place, `ranks` holds
    rank << 8 | place, or _NO_RANK, so the least is the pair to merge, and `results` what it makes.
    `live` has a bit for each place where a symbol begins.
    """
    byte_ids = load_i64(state + 8 * BYTE_IDS)
    byte_pairs = load_i64(state + 8 * BYTE_PAIRS)
    pairs = load_i64(state + 8 * PAIRS)
    shift = load64(state + 8 * PAIR_SHIFT)
    filter_bits = load_i64(state + 8 * FILTER)
    filter_mask = load64(state + 8 * FILTER_MASK)
    symbols = load_i64(state + 8 * SCRATCH)
    ranks = symbols + 4 * SHORT
    results = ranks + 4 * SHORT
    last = length - 1
    for i in range(last):
        store32(symbols + 4 * i, load32(byte_ids + 4 * load8(text + i)))
        value = load64(byte_pairs + 8 * load16(text + i))
        store32(ranks + 4 * i, _ranked(value, i))
        store32(results + 4 * i, as_i64(value))
    store32(symbols + 4 * last, load32(byte_ids + 4 * load8(text + last)))
    live = ALL >> (_U64 - as_u64(length))
    while True:
        best = _NO_RANK
        for i in range(last):
            best = min(best, load32(ranks + 4 * i))
        if best == _NO_RANK:
            break
        at = best & 0xFF
        result = load32(results + 4 * at)
        after = live & (ALL << as_u64(at) << ONE)
        right = after & (ZERO - after)
        live ^= right
        after ^= right
        before = live & ~(ALL << as_u64(at))
        store32(symbols + 4 * at, result)
        store32(ranks + 4 * ctz(right), _NO_RANK)
        store32(ranks + 4 * at, _NO_RANK)
        if after != ZERO:
            symbol = load32(symbols + 4 * ctz(after))
            value = find_pair(result, symbol, pairs, shift, filter_bits, filter_mask)
            store32(ranks + 4 * at, _ranked(value, at))
            store32(results + 4 * at, as_i64(value))
        if before != ZERO:
            place = 63 - clz(before)
            symbol = load32(symbols + 4 * place)
            value = find_pair(symbol, result, pairs, shift, filter_bits, filter_mask)
            store32(ranks + 4 * place, _ranked(value, place))
            store32(results + 4 * place, as_i64(value))
    count = 0
    while live != ZERO:
        symbol = load32(symbols + 4 * ctz(live))
        live &= live - ONE
        if width == 1:
            store16(out + 2 * count, symbol)
        else:
            store32(out + 4 * count, symbol)
        count += 1
    return count


@njit
def _ranked(value, place):
    """rank << 8 | place of a value, or _NO_RANK."""
    return as_i64(value >> _U32) << 8 | place if value != NONE else _NO_RANK


@njit
def _sift_down(heap, size, at, entry):
    """Put `entry` at or below place `at` of the heap, which is free."""
    child = 2 * at + 1
    while child < size:
        value = load64(heap + 8 * child)
        if child + 1 < size:
            other = load64(heap + 8 * child + 8)
            if other < value:
                value = other
                child += 1
        if entry <= value:
            break
        store64(heap + 8 * at, value)
        at = child
        child = 2 * at + 1
    store64(heap + 8 * at, entry)


@njit
def _push(heap, size, entry):
    """Add `entry` to a heap of `size` entries."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        value = load64(heap + 8 * parent)
        if value <= entry:
            break
        store64(heap + 8 * at, value)
        at = parent
    store64(heap + 8 * at, entry)


@njit
def merge_long(state, text, length, out, width):
    """As `merge_short`, for a pretoken of any length below 2^31.

    A token's id stands in the first and the last cell of its bytes, so its neighbours are found
    from the lengths of tokens. Heap entries are rank << 32 | place of the left symbol. One is
    stale exactly when the pair now at its place has another rank: symbols only grow, so the
    same pair never comes back to a place, and a cell that is no longer a token's first holds
    _DEAD or, as the last cell of a token, a longer one than the entry means.
    """
    byte_ids = load_i64(state + 8 * BYTE_IDS)
    byte_pairs = load_i64(state + 8 * BYTE_PAIRS)
    pairs = load_i64(state + 8 * PAIRS)
    shift = load64(state + 8 * PAIR_SHIFT)
    filter_bits = load_i64(state + 8 * FILTER)
    filter_mask = load64(state + 8 * FILTER_MASK)
    lengths = load_i64(state + 8 * LENGTHS)
    cells = load_i64(state + 8 * SCRATCH)
    heap = cells + ((4 * length + 7) & ~7)
    size = _ROOT
    for i in range(length):
        store32(cells + 4 * i, load32(byte_ids + 4 * load8(text + i)))
    for i in range(length - 1):
        value = load64(byte_pairs + 8 * load16(text + i))
        if value != NONE:
            store64(heap + 8 * size, (value >> _U32) << _U32 | as_u64(i))
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, i, load64(heap + 8 * i))
    while size > 0:
        entry = load64(heap)
        size -= 1
        if size > 0:
            _sift_down(heap, size, _ROOT, load64(heap + 8 * size))
        at = as_i64(entry & _LOW32)
        left = load32(cells + 4 * at)
        if left == _DEAD:
            continue
        middle = at + load32(lengths + 4 * left)
        if middle >= length:
            continue
        right = load32(cells + 4 * middle)
        value = find_pair(left, right, pairs, shift, filter_bits, filter_mask)
        if value == NONE or value >> _U32 != entry >> _U32:
            continue
        result = as_i64(value & _LOW32)
        end = middle + load32(lengths + 4 * right)
        store32(cells + 4 * middle, _DEAD)
        store32(cells + 4 * at, result)
        store32(cells + 4 * end - 4, result)
        if end < length:
            after = load32(cells + 4 * end)
            value = find_pair(result, after, pairs, shift, filter_bits, filter_mask)
            if value != NONE:
                _push(heap, size, (value >> _U32) << _U32 | as_u64(at))
                size += 1
        if at > 0:
            before = load32(cells + 4 * at - 4)
            value = find_pair(before, result, pairs, shift, filter_bits, filter_mask)
            if value != NONE:
                at -= load32(lengths + 4 * before)
                _push(heap, size, (value >> _U32) << _U32 | as_u64(at))
                size += 1
    count = 0
    at = 0
    while at < length:
        symbol = load32(cells + 4 * at)
        at += load32(lengths + 4 * symbol)
        if width == 1:
            store16(out + 2 * count, symbol)
        else:
            store32(out + 4 * count, symbol)
        count += 1
    return count


@njit
def fill_pairs(state):
    """Fill the pair table, which is full of NONE, and its filter, which is all zero.

    At DATA are int32 (DOCUMENTS, 3) rows of left, right, result by rank, all pairs distinct. At
    least half of the table stays empty.
    """
    merges = load_i64(state + 8 * DATA)
    pairs = load_i64(state + 8 * PAIRS)
    shift = load64(state + 8 * PAIR_SHIFT)
    filter_bits = load_i64(state + 8 * FILTER)
    mask = load64(state + 8 * FILTER_MASK)
    last = (16 << (64 - as_i64(shift))) - 1
    for rank in range(load_i64(state + 8 * DOCUMENTS)):
        row = merges + 12 * rank
        key = as_u64(load32(row) << 32 | load32(row + 4))
        mixed = _pair_hash(key)
        at = as_i64(mixed >> shift) << 4
        while load64(pairs + at) != NONE:
            at = (at + 16) & last
        store64(pairs + at, key)
        store64(pairs + at + 8, as_u64(rank << 32 | load32(row + 8)))
        bit = mixed & mask
        word = filter_bits + as_i64((bit >> _U6) << _U3)
        store64(word, load64(word) | ONE << (bit & _U63))
