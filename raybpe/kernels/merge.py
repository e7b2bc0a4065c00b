"""The merge loop: a vocabulary from weighted words, exactly, about 30 ns per symbol in all.

Python calls `run(operation, block, unit)`; `unit` is a scalar of the symbol type, so only the type
that is used gets compiled. `merge_state` names the block's words, `merge_build` explains the
symbols, `merge_step` is one merge, `merge_rebuild` makes the lists anew.

Why it is exact:

* *Lists are born whole.* Two tokens become neighbours only in the step that creates the newer of
  the two, so a pair gets all its positions in that step; later its count only falls. A list is
  therefore written once, and a heap entry is an upper bound.
* *A stale position shows itself.* Only first and last cells of a's tokens ever hold a, and all of
  a's tokens were born in one step, so a listed position is never the last cell of another a. Thus
  symbol[p] = a means that a live a starts at p, and symbol[p + length(a)] is what follows it.
* *Pruning.* A pair born below the threshold can never reach it, so it needs no list. When no pair
  is left, Python lowers the threshold and the lists are made anew.
* *No two ids have equal bytes* (see `reference`), so a created pair is always a new one.
"""

from numba import njit

from raybpe.kernels import merge_state as state
from raybpe.kernels.intrinsics import load32, load_i64, store32, store64
from raybpe.kernels.merge_build import (
    build_symbols,
    fill_byte_lists,
    index_groups,
    start_lists,
)
from raybpe.kernels.merge_pairs import (
    drop_first,
    find_pair,
    move_pairs,
    set_word,
    sift_down,
    word,
)
from raybpe.kernels.merge_step import merge_pair
from raybpe.kernels.merge_symbols import inner, symbol_at

# Operations of `run`.


@inner
def lacking_room(block, key, number):
    """The code of what has too little room for merging a list of `number` places, or REACHED."""
    sentinel = word(block, state.SENTINEL)
    most = 2 * min(number, sentinel)
    set_word(block, state.NEEDED, most)
    if 2 * (word(block, state.PAIRS_USED) + most) > 1 << word(block, state.PAIR_BITS):
        return state.PAIRS_FULL
    if word(block, state.RECORDS_USED) + most > word(block, state.RECORD_ROOM):
        return state.RECORDS_FULL
    if word(block, state.HEAP_USED) + most > word(block, state.HEAP_ROOM):
        return state.HEAP_FULL
    set_word(block, state.NEEDED, 2 * number)
    if word(block, state.POOL_USED) + 2 * number > word(block, state.POOL_ROOM):
        return state.POOL_FULL
    if word(block, state.BY_BYTES) != 0:
        lengths = word(block, state.LENGTHS)
        length = load32(lengths + 4 * (key >> 32)) + load32(lengths + 4 * (key & 0xFFFFFFFF))
        set_word(block, state.NEEDED, length)
        if word(block, state.TEXT_USED) + length > word(block, state.TEXT_ROOM):
            return state.TEXT_FULL
    return state.REACHED


@inner
def merge_until(block, unit):
    """Merge until TARGET or WORK is reached, no pair is left, or room is lacking."""
    heap = word(block, state.HEAP)
    pairs = word(block, state.PAIRS)
    lists = word(block, state.PAIR_LISTS)
    bits = word(block, state.PAIR_BITS)
    records = word(block, state.RECORDS)
    threshold = word(block, state.THRESHOLD)
    work = 0
    while word(block, state.MERGES) < word(block, state.TARGET):
        size = word(block, state.HEAP_USED)
        if size == 0:
            return state.NO_PAIRS
        count = load_i64(heap)
        key = load_i64(heap + 8)
        pair = find_pair(pairs, bits, key)
        true_count = 0
        if pair != 0:
            true_count = load_i64(pair + 8)
        if true_count < threshold:
            set_word(block, state.HEAP_USED, drop_first(block, heap, size))
            continue
        if true_count < count:
            sift_down(block, heap, size, true_count, key)
            continue
        record = records + 24 * load32(lists + ((pair - pairs) >> 2))
        begin = load_i64(record + 8)
        number = load_i64(record + 16)
        code = lacking_room(block, key, number)
        if code != state.REACHED:
            return code
        if work >= word(block, state.WORK):
            return state.PAUSED
        work += number + 64

        set_word(block, state.HEAP_USED, drop_first(block, heap, size))
        merge_pair(block, pair, count, begin, number, unit)
    return state.REACHED


@inner
def compact(block, unit):
    """Slide lists that can still be merged to the front of the pool, and drop the others.

    ORDER lists the old records (OLD) by where they begin; the kept ones go to RECORDS.
    """
    symbols = word(block, state.SYMBOLS)
    lengths = word(block, state.LENGTHS)
    pairs = word(block, state.PAIRS)
    lists = word(block, state.PAIR_LISTS)
    bits = word(block, state.PAIR_BITS)
    order = word(block, state.ORDER)
    old = word(block, state.OLD)
    records = word(block, state.RECORDS)
    pool = word(block, state.POOL)
    threshold = word(block, state.THRESHOLD)
    keep_stale = word(block, state.FILTER) == 0
    used = 0
    end = 0
    for i in range(word(block, state.ORDER_SIZE)):
        record = old + 24 * load_i64(order + 8 * i)
        key = load_i64(record)
        pair = find_pair(pairs, bits, key)
        if pair == 0 or load_i64(pair + 8) < threshold:
            continue
        a = key >> 32
        b = key & 0xFFFFFFFF
        length_a = load32(lengths + 4 * a)
        begin = load_i64(record + 8)
        new_begin = end
        for place in range(begin, begin + load_i64(record + 16)):
            cell = load32(pool + 4 * place)
            if keep_stale or (
                symbol_at(symbols, cell, unit) == a
                and symbol_at(symbols, cell + length_a, unit) == b
            ):
                store32(pool + 4 * end, cell)
                end += 1
        at = records + 24 * used
        store64(at, key)
        store64(at + 8, new_begin)
        store64(at + 16, end - new_begin)
        store32(lists + ((pair - pairs) >> 2), used)
        used += 1
    set_word(block, state.RECORDS_USED, used)
    set_word(block, state.POOL_USED, end)


@njit
def run(operation, block, unit):
    """Carry out one operation; returns its code, or for BUILD the number of groups."""
    if operation == state.MERGE:
        return merge_until(block, unit)
    if operation == state.COMPACT:
        compact(block, unit)
    elif operation == state.MOVE_PAIRS:
        move_pairs(block)
    elif operation == state.BUILD:
        return build_symbols(block, unit)
    elif operation == state.INDEX_GROUPS:
        index_groups(block)
    elif operation == state.START_LISTS:
        start_lists(block)
    else:
        fill_byte_lists(block, unit)
    return state.REACHED
