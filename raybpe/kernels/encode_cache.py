"""The cache of encoded pretokens: keys, lookup, insertion, growth. Layout in `encode_state`."""

import numpy as np

from raybpe.kernels.encode_state import (
    ARENA,
    ARENA_FULL,
    ARENA_SIZE,
    ARENA_USED,
    IDS,
    KEY_LONG,
    MASKS,
    OLD,
    OLD_SLOTS,
    SHIFT,
    TABLE,
    USED,
    VALUE_LONG,
    WIDTH,
)
from raybpe.kernels.intrinsics import (
    ZERO,
    as_i64,
    as_u64,
    load64,
    load_i64,
    store64,
)
from raybpe.kernels.jit import njit
from raybpe.kernels.scan_state import DATA, DOCUMENTS, STARTS
from raybpe.kernels.table import hash_bytes, same_bytes, slot_hash
from raybpe.kernels.table_layout import SHORT

_LOW48 = np.uint64(0xFFFF_FFFF_FFFF)
_U48 = np.uint64(48)
_ONE_ID = np.int64(1)  # typed, or `insert` is compiled once more


@njit
def key_of(text, length, masks):
    """The two key words of `length` bytes at an address."""
    if length <= SHORT:
        mask = masks + 32 * length
        lo = load64(text) & load64(mask)
        return lo, (load64(text + 8) & load64(mask + 8)) | load64(mask + 16)
    return hash_bytes(text, length), KEY_LONG | as_u64(length)


@njit
def first_slot(table, shift, lo, hi):
    """Address of the first slot where a key may be: it begins a cache line of two slots."""
    return table + (as_i64(slot_hash(lo, hi) >> shift) << 6)


@njit
def find(table, shift, arena, where, lo, hi, text):
    """Address of the slot that holds the key, or of the empty one where it belongs.

    `where` is the key's first slot; `text` the address of its bytes, read for long keys only.
    """
    last = (64 << (64 - as_i64(shift))) - 1
    while True:
        found = load64(where + 8)
        if found == ZERO:
            return where
        if found == hi and load64(where) == lo:
            if hi < KEY_LONG:
                return where
            length = as_i64(hi ^ KEY_LONG)
            if same_bytes(arena + load_i64(where + 16), text, length) == 1:
                return where
        where = table + ((where - table + 32) & last)


@njit
def insert(state, where, lo, hi, text, ids, count):
    """Keep `count` ids, which lie at address `ids` as in the output, in the empty slot `where`.

    A value that finds no room in the arena is left out, and ARENA_FULL set.
    """
    width = load_i64(state + 8 * WIDTH)
    v0 = load64(ids)
    v1 = (load64(ids + 8) & _LOW48) | as_u64(count) << _U48
    if hi >= KEY_LONG or count > 14 >> width:
        length = 0
        if hi >= KEY_LONG:
            length = as_i64(hi ^ KEY_LONG)
        used = load_i64(state + 8 * ARENA_USED)
        padded = (length + 7) & ~7
        size = padded + (((count << width) + 7) & ~7)
        if used + size > load_i64(state + 8 * ARENA_SIZE):
            store64(state + 8 * ARENA_FULL, 1)
            return
        arena = load_i64(state + 8 * ARENA) + used
        for at in range(0, padded, 8):
            store64(arena + at, load64(text + at))
        for at in range(0, size - padded, 8):
            store64(arena + padded + at, load64(ids + at))
        store64(state + 8 * ARENA_USED, used + size)
        v0 = as_u64(used)
        v1 = VALUE_LONG | as_u64(count)
    store64(where, lo)
    store64(where + 8, hi)
    store64(where + 16, v0)
    store64(where + 24, v1)
    store64(state + 8 * USED, load_i64(state + 8 * USED) + 1)


@njit
def copy_long(arena, where, hi, out, width):
    """Write the ids of a slot whose value lies in the arena; returns how many."""
    length = 0
    if hi >= KEY_LONG:
        length = as_i64(hi ^ KEY_LONG)
    count = as_i64(load64(where + 24) & _LOW48)
    source = arena + load_i64(where + 16) + ((length + 7) & ~7)
    for at in range(0, count << width, 8):
        store64(out + at, load64(source + at))
    return count


@njit
def move(state):
    """Put the entries of the cache at OLD into the empty, larger one at TABLE."""
    old = load_i64(state + 8 * OLD)
    table = load_i64(state + 8 * TABLE)
    shift = load64(state + 8 * SHIFT)
    last = (64 << (64 - as_i64(shift))) - 1
    for source in range(old, old + 32 * load_i64(state + 8 * OLD_SLOTS), 32):
        lo = load64(source)
        hi = load64(source + 8)
        if hi != ZERO:
            where = first_slot(table, shift, lo, hi)
            while load64(where + 8) != ZERO:
                where = table + ((where - table + 32) & last)
            for word in range(0, 32, 8):
                store64(where + word, load64(source + word))
    store64(state + 8 * OLD_SLOTS, 0)


@njit
def fill(state):
    """Insert keys with one id each into an empty cache that has room for them.

    Their bytes are at DATA, one after another, their int64 (DOCUMENTS + 1,) offsets at STARTS,
    their int64 ids at IDS. The first of equal keys stays.
    """
    data = load_i64(state + 8 * DATA)
    offsets = load_i64(state + 8 * STARTS)
    ids = load_i64(state + 8 * IDS)
    table = load_i64(state + 8 * TABLE)
    shift = load64(state + 8 * SHIFT)
    arena = load_i64(state + 8 * ARENA)
    masks = load_i64(state + 8 * MASKS)
    for index in range(load_i64(state + 8 * DOCUMENTS)):
        start = load_i64(offsets + 8 * index)
        text = data + start
        lo, hi = key_of(text, load_i64(offsets + 8 * index + 8) - start, masks)
        where = find(table, shift, arena, first_slot(table, shift, lo, hi), lo, hi, text)
        if load64(where + 8) == ZERO:
            insert(state, where, lo, hi, text, ids + 8 * index, _ONE_ID)
