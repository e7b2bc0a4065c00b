"""From a batch of scanned pretokens to ids: look each up in the cache, merge those not there.

Those that are not there wait, to be merged many at a time (`encode_waiting`).
"""

import numpy as np

from raybpe.kernels.encode_cache import copy_long, find, first_slot, insert, key_of
from raybpe.kernels.encode_long import merge_long
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
    SCRATCH_SIZE,
    SHIFT,
    SHORT,
    SLICE,
    TABLE,
    USED,
    VALUE_LONG,
    WAITING_COUNT,
    WAITING_SIZE,
    WHOLE,
    WHOLE_ARENA,
    WHOLE_SHIFT,
    WIDTH,
)
from raybpe.kernels.encode_waiting import settle, wait
from raybpe.kernels.intrinsics import (
    ONE,
    ZERO,
    as_i64,
    load64,
    load_i64,
    prefetch,
    store64,
)
from raybpe.kernels.jit import njit
from raybpe.kernels.scan_state import COUNT, DATA, OUT

_U48 = np.uint64(48)
_U56 = np.uint64(56)

# What `_encode_slowly` returns instead of a number of ids.
_NO_SCRATCH = -1
_WAITING_FULL = -2


@njit
def _whole_token(state, lo, hi, text, out):
    """Write the id of a pretoken at `out` if it is a token that wins over merges; 1, or 0."""
    whole = load_i64(state + 8 * WHOLE)
    if whole == 0:
        return 0
    shift = load64(state + 8 * WHOLE_SHIFT)
    arena = load_i64(state + 8 * WHOLE_ARENA)
    where = find(whole, shift, arena, first_slot(whole, shift, lo, hi), lo, hi, text)
    if load64(where + 8) == ZERO:
        return 0
    if load64(where + 24) >= VALUE_LONG:
        return copy_long(arena, where, hi, out, load_i64(state + 8 * WIDTH))
    store64(out, load64(where + 16))
    return 1


@njit
def _prepare(state, first, last):
    """Keys of entries `first` to `last` - 1 into RECORDS, their slots on the way to the cache.

    A record is four words: the key, the address of its first slot, the address of its bytes.
    """
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
        where = first_slot(table, shift, lo, hi)
        prefetch(where)
        store64(record, lo)
        store64(record + 8, hi)
        store64(record + 16, where)
        store64(record + 24, text)
        record += 32
        start = end


@njit
def _encode_slowly(state, record, out):
    """Encode the pretoken of a record that is not short, or not where it is looked for first.

    Writes its ids at `out` and returns how many, or lets it wait: 0; WAITING_FULL if no other one
    may wait then. NO_SCRATCH: SCRATCH must grow to NEED bytes first.
    """
    lo = load64(record)
    hi = load64(record + 8)
    text = load_i64(record + 24)
    arena = load_i64(state + 8 * ARENA)
    shift = load64(state + 8 * SHIFT)
    width = load_i64(state + 8 * WIDTH)
    where = find(load_i64(state + 8 * TABLE), shift, arena, load_i64(record + 16), lo, hi, text)
    if load64(where + 8) != ZERO:
        v1 = load64(where + 24)
        if v1 >= VALUE_LONG:
            return copy_long(arena, where, hi, out, width)
        store64(out, load64(where + 16))
        store64(out + 8, v1)
        return as_i64(v1 >> _U48)
    length = as_i64(hi ^ KEY_LONG) if hi >= KEY_LONG else as_i64(hi >> _U56) & 0x3F
    count = _whole_token(state, lo, hi, text, out)
    if count == 0 and length <= SHORT:
        written = (out - load_i64(state + 8 * IDS)) >> width
        return _WAITING_FULL if wait(state, lo, hi, text, length, written) else 0
    if count == 0:
        need = LONG_SCRATCH * length + 8
        if load_i64(state + 8 * SCRATCH_SIZE) < need:
            store64(state + 8 * NEED, need)
            return _NO_SCRATCH
        count = merge_long(state, text, length, out)
    if length <= LONGEST_CACHED:
        insert(state, where, lo, hi, text, out, count)
    return count


@njit
def _encode_slice(state, first, last):
    """Encode entries `first` to `last` - 1; the index of the first that is not done."""
    _prepare(state, first, last)
    width = load_i64(state + 8 * WIDTH)
    ids = load_i64(state + 8 * IDS)
    out = ids + (load_i64(state + 8 * IDS_USED) << width)
    record = load_i64(state + 8 * RECORDS)
    index = first
    while index < last:
        # Nearly all are short and in one of two slots of a line, so both are tried in one branch.
        lo = load64(record)
        hi = load64(record + 8)
        where = load_i64(record + 16)
        one = (load64(where) ^ lo) | (load64(where + 8) ^ hi)
        other = (load64(where + 32) ^ lo) | (load64(where + 40) ^ hi)
        where += 0 if one == ZERO else 32
        v1 = load64(where + 24)
        if (one == ZERO or other == ZERO) and v1 < VALUE_LONG:
            store64(out, load64(where + 16))
            store64(out + 8, v1)
            out += as_i64(v1 >> _U48) << width
        else:
            count = _encode_slowly(state, record, out)
            if count == _NO_SCRATCH:
                break
            if count == _WAITING_FULL:
                store64(state + 8 * IDS_USED, (out - ids) >> width)
                settle(state)
                out = ids + (load_i64(state + 8 * IDS_USED) << width)
            else:
                out += count << width
        record += 32
        index += 1
    store64(state + 8 * IDS_USED, (out - ids) >> width)
    return index


@njit
def encode_words(state):
    """Encode the entries from NEXT up to the last one, which only ends a span; 0 or a GROW code."""
    entries = load_i64(state + 8 * OUT)
    next_entry = load_i64(state + 8 * NEXT)
    last = load_i64(state + 8 * COUNT) - 1
    while next_entry < last:
        stop = min(next_entry + SLICE, last)
        if load_i64(state + 8 * ARENA_FULL) != 0:
            return GROW_CACHE
        waiting = load_i64(state + 8 * WAITING_COUNT)
        if load_i64(state + 8 * USED) + waiting + stop - next_entry > load_i64(state + 8 * LIMIT):
            return GROW_CACHE
        begin = as_i64((load64(entries + 8 * next_entry) << ONE) >> ONE)
        end = as_i64((load64(entries + 8 * stop) << ONE) >> ONE)
        need = end - begin + load_i64(state + 8 * WAITING_SIZE)
        if load_i64(state + 8 * IDS_USED) + need > load_i64(state + 8 * IDS_SIZE):
            store64(state + 8 * NEED, need)
            return GROW_IDS
        next_entry = _encode_slice(state, next_entry, stop)
        store64(state + 8 * NEXT, next_entry)
        if next_entry < stop:
            return GROW_SCRATCH
    return DONE
