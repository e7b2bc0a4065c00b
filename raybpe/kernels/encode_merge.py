"""Merging one pretoken: the pair of lowest rank, the leftmost of equal ones, until none is left.

`merge_short` looks at all pairs in each step: they are few, and all in registers or the nearest
cache. `merge_long` keeps a heap, O(n log n), in LONG_SCRATCH bytes per byte.
"""

import numpy as np
from numba import njit

from raybpe.kernels.encode_state import (
    BYTE_IDS,
    BYTE_PAIRS,
    LENGTHS,
    MERGES,
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

_MIX1 = np.uint64(0x9E3779B97F4A7C15)
_MIX2 = np.uint64(0xD6E8FEB86659FD93)
_LOW32 = np.uint64(0xFFFF_FFFF)
_U32 = np.uint64(32)
_U64 = np.uint64(64)
_DEAD = 0xFFFF_FFFF


@njit(cache=True)
def pair_hash(left, right):
    """Hash of a pair of ids: its top bits choose the slot, its low 32 bits are kept there."""
    return mum(as_u64(left << 32 | right) ^ _MIX1, _MIX2)


@njit(cache=True)
def rank_of(left, right, pairs, shift, merges):
    """Rank of a pair of ids; NONE if it does not merge."""
    mixed = pair_hash(left, right)
    last = (8 << (64 - as_i64(shift))) - 1
    tag = mixed & _LOW32
    at = as_i64(mixed >> shift) << 3
    while True:
        found = load64(pairs + at)
        if found == ALL:
            return NONE
        if found >> _U32 == tag:
            rank = as_i64(found & _LOW32)
            row = merges + 12 * rank
            if load32(row) == left and load32(row + 4) == right:
                return rank
        at = (at + 8) & last


@njit(cache=True)
def merge_short(state, text, length, out, width):
    """Write the ids of the pretoken of 1 to SHORT bytes at address `text`; how many.

    A symbol stays where its first byte is. `values` holds rank << 8 | place of the pair that
    begins at each place, or NONE, so the least is the pair to merge. `live` has a bit for each
    place where a symbol begins.
    """
    byte_ids = load_i64(state + 8 * BYTE_IDS)
    byte_pairs = load_i64(state + 8 * BYTE_PAIRS)
    pairs = load_i64(state + 8 * PAIRS)
    shift = load64(state + 8 * PAIR_SHIFT)
    merges = load_i64(state + 8 * MERGES)
    symbols = load_i64(state + 8 * SCRATCH)
    values = symbols + 4 * SHORT
    last = length - 1
    for i in range(last):
        store32(symbols + 4 * i, load32(byte_ids + 4 * load8(text + i)))
        rank = load32(byte_pairs + 4 * load16(text + i))
        store32(values + 4 * i, rank << 8 | i if rank != NONE else NONE)
    store32(symbols + 4 * last, load32(byte_ids + 4 * load8(text + last)))
    live = ALL >> (_U64 - as_u64(length))
    while True:
        best = NONE
        for i in range(last):
            best = min(best, load32(values + 4 * i))
        if best == NONE:
            break
        at = best & 0xFF
        result = load32(merges + 12 * (best >> 8) + 8)
        after = live & (ALL << as_u64(at) << ONE)
        right = after & (ZERO - after)
        live ^= right
        after ^= right
        store32(symbols + 4 * at, result)
        store32(values + 4 * ctz(right), NONE)
        value = NONE
        if after != ZERO:
            value = rank_of(result, load32(symbols + 4 * ctz(after)), pairs, shift, merges)
            if value != NONE:
                value = value << 8 | at
        store32(values + 4 * at, value)
        before = live & ~(ALL << as_u64(at))
        if before != ZERO:
            place = 63 - clz(before)
            value = rank_of(load32(symbols + 4 * place), result, pairs, shift, merges)
            if value != NONE:
                value = value << 8 | place
            store32(values + 4 * place, value)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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
    merges = load_i64(state + 8 * MERGES)
    lengths = load_i64(state + 8 * LENGTHS)
    cells = load_i64(state + 8 * SCRATCH)
    heap = cells + ((4 * length + 7) & ~7)
    size = 0
    for i in range(length):
        store32(cells + 4 * i, load32(byte_ids + 4 * load8(text + i)))
    for i in range(length - 1):
        rank = load32(byte_pairs + 4 * load16(text + i))
        if rank != NONE:
            store64(heap + 8 * size, as_u64(rank << 32 | i))
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, i, load64(heap + 8 * i))
    while size > 0:
        entry = load64(heap)
        size -= 1
        if size > 0:
            _sift_down(heap, size, 0, load64(heap + 8 * size))
        at = as_i64(entry & _LOW32)
        left = load32(cells + 4 * at)
        if left == _DEAD:
            continue
        middle = at + load32(lengths + 4 * left)
        if middle >= length:
            continue
        right = load32(cells + 4 * middle)
        row = merges + 12 * as_i64(entry >> _U32)
        if load32(row) != left or load32(row + 4) != right:
            continue
        result = load32(row + 8)
        end = middle + load32(lengths + 4 * right)
        store32(cells + 4 * middle, _DEAD)
        store32(cells + 4 * at, result)
        store32(cells + 4 * end - 4, result)
        if end < length:
            rank = rank_of(result, load32(cells + 4 * end), pairs, shift, merges)
            if rank != NONE:
                _push(heap, size, as_u64(rank << 32 | at))
                size += 1
        if at > 0:
            before = load32(cells + 4 * at - 4)
            rank = rank_of(before, result, pairs, shift, merges)
            if rank != NONE:
                _push(heap, size, as_u64(rank << 32 | (at - load32(lengths + 4 * before))))
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


@njit(cache=True)
def fill_pairs(merges, slots, shift):
    """Fill the pair table from int32 (n, 3) rows of left id, right id, result, in rank order.

    `slots` is uint64 (power of two,) full of ones, at least half of which stays empty; `shift` is
    64 - log2 of their number. All pairs are distinct.
    """
    shift = np.uint64(shift)
    last = slots.shape[0] - 1
    for rank in range(merges.shape[0]):
        mixed = pair_hash(np.int64(merges[rank, 0]), np.int64(merges[rank, 1]))
        slot = as_i64(mixed >> shift)
        while slots[slot] != ALL:
            slot = (slot + 1) & last
        slots[slot] = (mixed & _LOW32) << _U32 | as_u64(np.int64(rank))
