"""From a batch of scanned pretokens to ids: look each up in the cache, merge those not there."""

import numpy as np
from numba import njit

from raybpe.kernels.encode_cache import copy_long, find, insert, key_of, slot_of
from raybpe.kernels.encode_merge import merge_long, merge_short
from raybpe.kernels.encode_state import (
    ARENA,
    ARENA_FULL,
    DONE,
    GROW_CACHE,
    GROW_IDS,
    GROW_SCRATCH,
    IDS,
    IDS_SIZE,
    IDS_USED,
    KEY_LONG,
    LIMIT,
    LONG_SCRATCH,
    LONGEST_CACHED,
    MASKS,
    NEED,
    NEXT,
    RECORDS,
    SCRATCH,
    SCRATCH_SIZE,
    SHIFT,
    SHORT,
    TABLE,
    USED,
    VALUE_LONG,
    WHOLE,
    WHOLE_ARENA,
    WHOLE_SHIFT,
    WIDTH,
)
from raybpe.kernels.intrinsics import (
    ONE,
    ZERO,
    as_i64,
    load32,
    load64,
    load_i64,
    prefetch,
    store16,
    store32,
    store64,
)
from raybpe.kernels.scan_state import COUNT, DATA, OUT

_U48 = np.uint64(48)
_U56 = np.uint64(56)


@njit(cache=True)
def merge_miss(state, lo, hi, text, length, out):
    """Ids of a pretoken that the cache does not have, written at `out`; how many.

    −1: SCRATCH must grow to NEED bytes first.
    """
    width = load_i64(state + 8 * WIDTH)
    whole = load_i64(state + 8 * WHOLE)
    if whole != 0:
        shift = load64(state + 8 * WHOLE_SHIFT)
        arena = load_i64(state + 8 * WHOLE_ARENA)
        where = find(whole, shift, arena, slot_of(lo, hi, shift), lo, hi, text)
        if load64(where + 8) != ZERO:
            if load64(where + 24) >= VALUE_LONG:
                return copy_long(arena, where, hi, out, width)
            store64(out, load64(where + 16))
            return 1
    if length <= SHORT:
        count = merge_short(state, text, length)
    else:
        need = LONG_SCRATCH * length + 8
        if load_i64(state + 8 * SCRATCH_SIZE) < need:
            store64(state + 8 * NEED, need)
            return -1
        count = merge_long(state, text, length)
    symbols = load_i64(state + 8 * SCRATCH)
    if width == 1:
        for i in range(count):
            store16(out + 2 * i, load32(symbols + 4 * i))
    else:
        for i in range(count):
            store32(out + 4 * i, load32(symbols + 4 * i))
    return count


@njit(cache=True)
def _prepare(state, first, last):
    """Keys of entries `first` to `last` - 1 into RECORDS, their slots on the way to the cache."""
    data = load_i64(state + 8 * DATA)
    entries = load_i64(state + 8 * OUT)
    masks = load_i64(state + 8 * MASKS)
    table = load_i64(state + 8 * TABLE)
    shift = load64(state + 8 * SHIFT)
    record = load_i64(state + 8 * RECORDS)
    start = as_i64((load64(entries + 8 * first) << ONE) >> ONE)
    for index in range(first, last):
        end = as_i64((load64(entries + 8 * index + 8) << ONE) >> ONE)
        text = data + start
        lo, hi = key_of(text, end - start, masks)
        slot = slot_of(lo, hi, shift)
        prefetch(table + (slot << 5))
        store64(record, lo)
        store64(record + 8, hi)
        store64(record + 16, slot)
        store64(record + 24, text)
        record += 32
        start = end


@njit(cache=True)
def encode_words(state):
    """Encode the entries from NEXT up to the last one, which only ends a span; 0 or a GROW code."""
    first = load_i64(state + 8 * NEXT)
    last = load_i64(state + 8 * COUNT) - 1
    if first >= last:
        return DONE
    if load_i64(state + 8 * ARENA_FULL) != 0:
        return GROW_CACHE
    used = load_i64(state + 8 * USED)
    if used + last - first > load_i64(state + 8 * LIMIT):
        return GROW_CACHE
    entries = load_i64(state + 8 * OUT)
    ids_used = load_i64(state + 8 * IDS_USED)
    begin = as_i64((load64(entries + 8 * first) << ONE) >> ONE)
    end = as_i64((load64(entries + 8 * last) << ONE) >> ONE)
    if ids_used + end - begin > load_i64(state + 8 * IDS_SIZE):
        store64(state + 8 * NEED, end - begin)
        return GROW_IDS
    _prepare(state, first, last)
    table = load_i64(state + 8 * TABLE)
    shift = load64(state + 8 * SHIFT)
    arena = load_i64(state + 8 * ARENA)
    width = load_i64(state + 8 * WIDTH)
    ids = load_i64(state + 8 * IDS)
    out = ids + (ids_used << width)
    record = load_i64(state + 8 * RECORDS)
    code = DONE
    index = first
    while index < last:
        lo = load64(record)
        hi = load64(record + 8)
        text = load_i64(record + 24)
        where = find(table, shift, arena, load_i64(record + 16), lo, hi, text)
        if load64(where + 8) != ZERO:
            v1 = load64(where + 24)
            if v1 < VALUE_LONG:
                store64(out, load64(where + 16))
                store64(out + 8, v1)
                count = as_i64(v1 >> _U48)
            else:
                count = copy_long(arena, where, hi, out, width)
        else:
            length = as_i64(hi >> _U56) & 0x3F
            if hi >= KEY_LONG:
                length = as_i64(hi ^ KEY_LONG)
            count = merge_miss(state, lo, hi, text, length, out)
            if count < 0:
                code = GROW_SCRATCH
                break
            if length <= LONGEST_CACHED:
                insert(state, where, lo, hi, text, out, count)
        out += count << width
        record += 32
        index += 1
    store64(state + 8 * NEXT, index)
    store64(state + 8 * IDS_USED, (out - ids) >> width)
    return code
