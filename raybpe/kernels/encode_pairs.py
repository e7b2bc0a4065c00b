"""The pairs that merge, as encoding looks them up: layout in `encode_state`."""

import numpy as np

from raybpe.kernels.encode_state import FILTER, FILTER_MASK, NONE, PAIR_SHIFT, PAIRS
from raybpe.kernels.intrinsics import (
    ONE,
    ZERO,
    as_i64,
    as_u64,
    find4,
    load32,
    load64,
    load_i64,
    mum,
    store64,
)
from raybpe.kernels.jit import njit
from raybpe.kernels.scan_state import DATA, DOCUMENTS

_MIX1 = np.uint64(0x9E3779B97F4A7C15)
_MIX2 = np.uint64(0xD6E8FEB86659FD93)
_U3 = np.uint64(3)
_U6 = np.uint64(6)
_U63 = np.uint64(63)


@njit
def _pair_hash(key):
    """Hash of left << 32 | right: its top bits choose the line, its low bits the filter's bit."""
    return mum(key ^ _MIX1, _MIX2)


@njit
def pair_line(left, right, shift, filter_bits, filter_mask):
    """Offset of the line where a pair of ids is looked for first.

    For what the filter turns away it is the empty line, 0.
    """
    mixed = _pair_hash(as_u64(left << 32 | right))
    bit = mixed & filter_mask
    known = (load64(filter_bits + as_i64((bit >> _U6) << _U3)) >> (bit & _U63)) & ONE
    return (64 + (as_i64(mixed >> shift) << 6)) & -as_i64(known)  # a condition would be guessed


@njit
def find_in_line(left, right, pairs, shift, line):
    """rank << 32 | result of a pair of ids, whose `pair_line` is `line`; NONE if it does not merge.

    One branch, hardly ever taken: the line is full of other pairs.
    """
    key = as_u64(left << 32 | right)
    value = find4(pairs + line, key)
    has_room = as_u64(np.int64(load64(pairs + line + 24) == NONE))
    if ~value | has_room == ZERO:
        value = _find_further(key, pairs, shift, line)
    return value


@njit
def find_pair(left, right, pairs, shift, filter_bits, filter_mask):
    """rank << 32 | result of a pair of ids; NONE if it does not merge."""
    line = pair_line(left, right, shift, filter_bits, filter_mask)
    return find_in_line(left, right, pairs, shift, line)


@njit
def _find_further(key, pairs, shift, line):
    """What `find_pair` returns for a pair that is not in its full first line."""
    last = 64 << (64 - as_i64(shift))
    while True:
        line = line + 64 if line < last else 64
        value = find4(pairs + line, key)
        if value != NONE or load64(pairs + line + 24) == NONE:
            return value


@njit
def fill_pairs(state):
    """Fill the pair table, which is full of NONE, and its filter, which is all zero.

    At DATA are int32 (DOCUMENTS, 3) rows of left, right, result by rank, all pairs distinct; there
    are at least as many lines, and the empty one.
    """
    merges = load_i64(state + 8 * DATA)
    pairs = load_i64(state + 8 * PAIRS)
    shift = load64(state + 8 * PAIR_SHIFT)
    filter_bits = load_i64(state + 8 * FILTER)
    mask = load64(state + 8 * FILTER_MASK)
    last = 64 << (64 - as_i64(shift))
    for rank in range(load_i64(state + 8 * DOCUMENTS)):
        row = merges + 12 * rank
        key = as_u64(load32(row) << 32 | load32(row + 4))
        mixed = _pair_hash(key)
        line = 64 + (as_i64(mixed >> shift) << 6)
        while load64(pairs + line + 24) != NONE:
            line = line + 64 if line < last else 64
        where = pairs + line
        while load64(where) != NONE:
            where += 8
        store64(where, key)
        store64(where + 32, as_u64(rank << 32 | load32(row + 8)))
        bit = mixed & mask
        word = filter_bits + as_i64((bit >> _U6) << _U3)
        store64(word, load64(word) | ONE << (bit & _U63))
