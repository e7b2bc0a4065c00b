"""Merging a long pretoken: the pair of lowest rank, the leftmost of equal ones, until none is left.

Long pretokens are mostly lines of one or two characters: rulers, indents, tables. There the pair of
lowest rank stands in many places, and a pass from left to right merges them all. When a pass
merges too few, a heap of the pairs takes over, for O(n log n) whatever the text.
"""

import numpy as np

from raybpe.kernels.encode_pairs import find_pair
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
    WIDTH,
)
from raybpe.kernels.intrinsics import (
    as_i64,
    as_u64,
    load8,
    load16,
    load32,
    load64,
    load_i64,
    store16,
    store32,
    store64,
)
from raybpe.kernels.jit import njit

_LOW32 = np.uint64(0xFFFF_FFFF)
_U32 = np.uint64(32)
_ROOT = np.int64(0)  # typed, or functions that it is passed to are compiled once more
_DEAD = 0xFFFF_FFFF
_FEW = 64  # symbols that are merged in passes however little each merges
_PART = 8  # a pass that merges less than one symbol in so many is the last


@njit
def merge_long(state, text, length, out):
    """Write the ids of a pretoken of 2 to 2^31 - 1 bytes at address `text`; how many.

    SCRATCH holds LONG_SCRATCH bytes per byte.
    """
    byte_ids = load_i64(state + 8 * BYTE_IDS)
    byte_pairs = load_i64(state + 8 * BYTE_PAIRS)
    symbols = load_i64(state + 8 * SCRATCH)
    values = symbols + ((4 * length + 7) & ~7)
    for i in range(length):
        store32(symbols + 4 * i, load32(byte_ids + 4 * load8(text + i)))
        store64(values + 8 * i, load64(byte_pairs + 8 * load16(text + i)))
    store64(values + 8 * length - 8, NONE)
    size = length
    before = size + 1
    while size < before:
        if size > _FEW and _PART * (before - size) < size and before <= length:
            return _merge_heap(state, symbols, values, size, length, out)
        before = size
        size = _merge_pass(state, symbols, values, size)
    width = load_i64(state + 8 * WIDTH)
    for i in range(size):
        _write(out, i, load32(symbols + 4 * i), width)
    return size


@njit
def _write(out, index, symbol, width):
    if width == 1:
        store16(out + 2 * index, symbol)
    else:
        store32(out + 4 * index, symbol)


@njit
def _merge_pass(state, symbols, values, size):
    """Merge the pair of lowest rank wherever it stands, left to right; how many symbols are left.

    `values` has the pair that begins at each symbol, NONE at the last one. A merge that makes a
    pair of lower rank is the last of its pass, for that pair comes next.
    """
    pairs = load_i64(state + 8 * PAIRS)
    shift = load64(state + 8 * PAIR_SHIFT)
    filter_bits = load_i64(state + 8 * FILTER)
    filter_mask = load64(state + 8 * FILTER_MASK)
    best = NONE
    for i in range(size):
        best = min(best, load64(values + 8 * i))
    if best == NONE:
        return size
    result = as_i64(best & _LOW32)
    wanted = best
    known_left = known_right = np.int64(-1)  # the pair that was looked up last: runs repeat it
    known = NONE
    last = size - 1
    written = _ROOT
    fresh = False  # the symbol before is new, so its pair is not known
    i = _ROOT
    while i < size:
        symbol = load32(symbols + 4 * i)
        value = load64(values + 8 * i)
        merges = value == wanted
        if merges:
            symbol = result
            i += 1
        if written > 0 and (merges or fresh):
            left = load32(symbols + 4 * written - 4)
            if left != known_left or symbol != known_right:
                known = find_pair(left, symbol, pairs, shift, filter_bits, filter_mask)
                known_left = left
                known_right = symbol
            store64(values + 8 * written - 8, known)
            if known < best:
                wanted = NONE - np.uint64(1)
        if merges and i < last:
            # The pair with what follows must not come first.
            right = load32(symbols + 4 * i + 4)
            if result != known_left or right != known_right:
                known = find_pair(result, right, pairs, shift, filter_bits, filter_mask)
                known_left = result
                known_right = right
            if known < best:
                wanted = NONE - np.uint64(1)
        store32(symbols + 4 * written, symbol)
        store64(values + 8 * written, value)
        fresh = merges
        written += 1
        i += 1
    store64(values + 8 * written - 8, NONE)
    return written


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
def _spread(state, cells, heap, size, length):
    """From symbols one after another to cells by byte, from values to heap entries; how many.

    In place: no cell lies before its symbol, no entry behind its value.
    """
    lengths = load_i64(state + 8 * LENGTHS)
    entries = _ROOT
    at = _ROOT
    for i in range(size):
        value = load64(heap + 8 * i)
        if value != NONE:
            store64(heap + 8 * entries, (value >> _U32) << _U32 | as_u64(at))
            entries += 1
        at += load32(lengths + 4 * load32(cells + 4 * i))
    at = length
    for i in range(size - 1, -1, -1):
        symbol = load32(cells + 4 * i)
        store32(cells + 4 * at - 4, symbol)
        at -= load32(lengths + 4 * symbol)
        store32(cells + 4 * at, symbol)
    for i in range(entries // 2 - 1, -1, -1):
        _sift_down(heap, entries, i, load64(heap + 8 * i))
    return entries


@njit
def _merge_heap(state, cells, heap, size, length, out):
    """What `merge_long` does, from `size` symbols at `cells` and their pairs at `heap`.

    A token's id stands in the first and the last cell of its bytes, so its neighbours are found
    from the lengths of tokens. Heap entries are rank << 32 | place of the left symbol. One is
    stale exactly when the pair now at its place has another rank: symbols only grow, so the
    same pair never comes back to a place, and a cell that is no longer a token's first holds
    _DEAD or, as the last cell of a token, a longer one than the entry means.
    """
    pairs = load_i64(state + 8 * PAIRS)
    shift = load64(state + 8 * PAIR_SHIFT)
    filter_bits = load_i64(state + 8 * FILTER)
    filter_mask = load64(state + 8 * FILTER_MASK)
    lengths = load_i64(state + 8 * LENGTHS)
    entries = _spread(state, cells, heap, size, length)
    while entries > 0:
        entry = load64(heap)
        entries -= 1
        if entries > 0:
            _sift_down(heap, entries, _ROOT, load64(heap + 8 * entries))
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
                _push(heap, entries, (value >> _U32) << _U32 | as_u64(at))
                entries += 1
        if at > 0:
            before = load32(cells + 4 * at - 4)
            value = find_pair(before, result, pairs, shift, filter_bits, filter_mask)
            if value != NONE:
                at -= load32(lengths + 4 * before)
                _push(heap, entries, (value >> _U32) << _U32 | as_u64(at))
                entries += 1
    width = load_i64(state + 8 * WIDTH)
    count = 0
    at = 0
    while at < length:
        symbol = load32(cells + 4 * at)
        at += load32(lengths + 4 * symbol)
        _write(out, count, symbol, width)
        count += 1
    return count
