"""Merging one pretoken: the pair of lowest rank, the leftmost of equal ones, until none is left.

Both functions leave the ids as int32 at the start of the scratch space. Short pretokens look at
all their pairs in each step; long ones keep a heap, O(n log n), in LONG_SCRATCH bytes per byte.
"""

import numpy as np
from numba import njit

from raybpe.kernels.encode_state import (
    BYTE_IDS,
    BYTE_PAIRS,
    LENGTHS,
    NONE,
    PAIR_SHIFT,
    PAIRS,
    SCRATCH,
    SHORT,
)
from raybpe.kernels.intrinsics import (
    as_i64,
    as_u64,
    load8,
    load16,
    load32,
    load64,
    load_i64,
    store32,
    store64,
)

_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOW32 = np.uint64(0xFFFF_FFFF)
_U32 = np.uint64(32)
_ONE = np.uint64(1)
_DEAD = 0xFFFF_FFFF


@njit(cache=True)
def find_pair(left, right, pairs, shift):
    """rank << 32 | result of a pair of ids; NONE if it does not merge."""
    key = as_u64(left << 32 | right)
    last = (_ONE << (np.uint64(64) - shift)) - _ONE
    slot = (key * _MIX) >> shift
    while True:
        where = pairs + (as_i64(slot) << 4)
        found = load64(where)
        if found == key:
            return load64(where + 8)
        if found == NONE:
            return NONE
        slot = (slot + _ONE) & last


@njit(cache=True)
def merge_short(state, text, length):
    """Number of ids of the pretoken of 1 to SHORT bytes at address `text`."""
    byte_ids = load_i64(state + 8 * BYTE_IDS)
    byte_pairs = load_i64(state + 8 * BYTE_PAIRS)
    pairs = load_i64(state + 8 * PAIRS)
    shift = load64(state + 8 * PAIR_SHIFT)
    symbols = load_i64(state + 8 * SCRATCH)
    values = symbols + 8 * SHORT
    for i in range(length):
        store32(symbols + 4 * i, load32(byte_ids + 4 * load8(text + i)))
    for i in range(length - 1):
        store64(values + 8 * i, load64(byte_pairs + 8 * load16(text + i)))
    while length > 1:
        best = load64(values)
        at = 0
        for i in range(1, length - 1):
            value = load64(values + 8 * i)
            at = i if value < best else at
            best = min(value, best)
        if best == NONE:
            break
        result = as_i64(best & _LOW32)
        store32(symbols + 4 * at, result)
        length -= 1
        for i in range(at + 1, length):
            store32(symbols + 4 * i, load32(symbols + 4 * i + 4))
            store64(values + 8 * i, load64(values + 8 * i + 8))
        if at + 1 < length:
            right = load32(symbols + 4 * at + 4)
            store64(values + 8 * at, find_pair(result, right, pairs, shift))
        if at > 0:
            left = load32(symbols + 4 * at - 4)
            store64(values + 8 * at - 8, find_pair(left, result, pairs, shift))
    return length


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
def merge_long(state, text, length):
    """Number of ids of a pretoken of any length below 2^31.

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
    lengths = load_i64(state + 8 * LENGTHS)
    cells = load_i64(state + 8 * SCRATCH)
    heap = cells + ((4 * length + 7) & ~7)
    size = 0
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
            _sift_down(heap, size, 0, load64(heap + 8 * size))
        at = as_i64(entry & _LOW32)
        left = load32(cells + 4 * at)
        if left == _DEAD:
            continue
        middle = at + load32(lengths + 4 * left)
        if middle >= length:
            continue
        right = load32(cells + 4 * middle)
        value = find_pair(left, right, pairs, shift)
        if value == NONE or value >> _U32 != entry >> _U32:
            continue
        result = as_i64(value & _LOW32)
        end = middle + load32(lengths + 4 * right)
        store32(cells + 4 * middle, _DEAD)
        store32(cells + 4 * at, result)
        store32(cells + 4 * end - 4, result)
        if end < length:
            value = find_pair(result, load32(cells + 4 * end), pairs, shift)
            if value != NONE:
                _push(heap, size, (value >> _U32) << _U32 | as_u64(at))
                size += 1
        if at > 0:
            before = load32(cells + 4 * at - 4)
            value = find_pair(before, result, pairs, shift)
            if value != NONE:
                _push(
                    heap, size, (value >> _U32) << _U32 | as_u64(at - load32(lengths + 4 * before))
                )
                size += 1
    count = 0
    at = 0
    while at < length:
        symbol = load32(cells + 4 * at)
        at += load32(lengths + 4 * symbol)
        store32(cells + 4 * count, symbol)
        count += 1
    return count


@njit(cache=True)
def fill_pairs(merges, slots, shift):
    """Fill the pair table from int32 (n, 3) rows of left id, right id, result, in rank order.

    `slots` is uint64 (power of two, 2) full of NONE, at least half of which stays empty; `shift`
    is 64 - log2 of their number. All keys are distinct.
    """
    shift = np.uint64(shift)
    last = np.uint64(slots.shape[0] - 1)
    for rank in range(merges.shape[0]):
        key = as_u64(np.int64(merges[rank, 0]) << 32 | np.int64(merges[rank, 1]))
        slot = (key * _MIX) >> shift
        while slots[as_i64(slot), 0] != NONE:
            slot = (slot + _ONE) & last
        slots[as_i64(slot), 0] = key
        slots[as_i64(slot), 1] = as_u64(np.int64(rank) << 32 | np.int64(merges[rank, 2]))
