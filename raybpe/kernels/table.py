"""The hash table that counts pretokens: open addressing with linear probing.

A slot is 32 bytes: two key words, the count (int64), an offset in the arena (int64).

- A pretoken of at most SHORT bytes *is* its key words: its bytes, zero-padded, and in the top byte
  its length with bit 6 set. Equal keys are equal pretokens, with no second look into memory.
- A longer one has a 64-bit hash in the first word, bit 63 and the length in the second, and its
  bytes in the arena, an append-only byte array; bytes are compared when both words agree.

A second word of zero is an empty slot. The top bits of the hash of the two words give a pair of
slots, which share a cache line, and where to go on from there. So tables of any size hold pretokens
in nearly the same order, and adding one to another goes through both in sequence. The hash depends
on nothing but the bytes: it also chooses partitions, and must stay what it is.

Kernels take addresses. TABLE_WORDS int64 describe a table. A kernel that lacks room returns GROW_*
before it has changed anything that a second call would repeat; Python makes room and calls again.
"""

import numpy as np
from numba import njit

from raybpe.kernels.intrinsics import (
    ZERO,
    as_i64,
    as_u64,
    load64,
    load_i64,
    mum,
    prefetch,
    store64,
)
from raybpe.kernels.table_layout import (
    ARENA,
    ARENA_SIZE,
    ARENA_USED,
    DONE,
    GROW_ARENA,
    GROW_SLOTS,
    LARGEST,
    LAST,
    LIMIT,
    NEEDED,
    SHIFT,
    SLOTS,
    USED,
)

LONG = np.uint64(1 << 63)
_LENGTH = np.uint64((1 << 56) - 1)
_K1 = np.uint64(0x9E3779B97F4A7C15)
_K2 = np.uint64(0xD6E8FEB86659FD93)
_K3 = np.uint64(0xA0761D6478BD642F)


@njit
def slot_hash(low, high):
    """The hash of a key: top bits choose the slot and the partition."""
    return mum(low ^ _K1, high ^ _K2)


@njit
def hash_bytes(where, length):
    """Hash of more than SHORT bytes; reads nothing else."""
    mixed = as_u64(length) ^ _K3
    last = where + length - 16
    while where < last:
        mixed = mum(load64(where) ^ mixed, load64(where + 8) ^ _K1)
        where += 16
    return mum(load64(last) ^ mixed, load64(last + 8) ^ _K2)


@njit
def copy_bytes(source, target, length):
    """Copy more than SHORT bytes."""
    last = length - 8
    at = 0
    while at < last:
        store64(target + at, load64(source + at))
        at += 8
    store64(target + last, load64(source + last))


@njit
def same_bytes(a, b, length):
    """1 if more than SHORT bytes are equal."""
    last = length - 8
    at = 0
    while at < last:
        if load64(a + at) != load64(b + at):
            return 0
        at += 8
    return 1 if load64(a + last) == load64(b + last) else 0


@njit
def put(table, record, amount):
    """Add `amount` to the pretoken of a record, which is a new one if need be.

    A record is 32 bytes: two key words, the address of the first slot to look at, the address of
    the bytes. There must be room for one more. Returns the slots passed over, or -1 if the count
    would overflow (then nothing is changed).
    """
    low = load64(record)
    high = load64(record + 8)
    slot = load_i64(record + 16)
    passed = 0
    while True:
        found = load64(slot + 8)
        if found == high and load64(slot) == low:
            if as_i64(high) >= 0 or same_bytes(
                load_i64(record + 24),
                load_i64(table + 8 * ARENA) + load_i64(slot + 24),
                as_i64(high & _LENGTH),
            ):
                count = load_i64(slot + 16)
                if count > LARGEST - amount:  # signed overflow itself is undefined
                    return -1
                store64(slot + 16, count + amount)
                return passed
        elif found == ZERO:
            store64(slot, low)
            store64(slot + 8, high)
            store64(slot + 16, amount)
            if as_i64(high) < 0:
                at = load_i64(table + 8 * ARENA_USED)
                length = as_i64(high & _LENGTH)
                copy_bytes(load_i64(record + 24), load_i64(table + 8 * ARENA) + at, length)
                store64(slot + 24, at)
                store64(table + 8 * ARENA_USED, at + length)
            store64(table + 8 * USED, load_i64(table + 8 * USED) + 1)
            return passed
        passed += 1
        slots = load_i64(table + 8 * SLOTS)
        slot = slots + ((slot - slots + 32) & load_i64(table + 8 * LAST))


@njit
def room(table, pretokens, long_bytes):
    """DONE if so many new pretokens, with so many bytes in long ones, fit; else what to grow."""
    if load_i64(table + 8 * USED) + pretokens > load_i64(table + 8 * LIMIT):
        return GROW_SLOTS
    if load_i64(table + 8 * ARENA_USED) + long_bytes > load_i64(table + 8 * ARENA_SIZE):
        store64(table + 8 * NEEDED, long_bytes)
        return GROW_ARENA
    return DONE


@njit
def first_slot(table, low, high):
    """Address of the slot where a key belongs, which is prefetched."""
    place = slot_hash(low, high) >> as_u64(load_i64(table + 8 * SHIFT))
    slot = load_i64(table + 8 * SLOTS) + as_i64(place) * 64
    prefetch(slot)
    return slot
