"""Making all lists anew from the symbols, for a lower threshold: seldom needed, so compiled apart.

A sketch, whose sums can only be too high, tells which pairs to count exactly; those that reach the
threshold get a list.
"""

from numba import njit

from raybpe.kernels import merge_state as state
from raybpe.kernels.intrinsics import load32, load_i64, store32, store64
from raybpe.kernels.merge_build import add_list
from raybpe.kernels.merge_pairs import add_pair, find_pair, set_word, slot_of, word
from raybpe.kernels.merge_symbols import inner, symbol_at

# Operations of `run_rebuild`.


@inner
def sketch_pairs(block, unit):
    """Add every pair's weight to the sketch, at the place its key hashes to."""
    symbols = word(block, state.SYMBOLS)
    sentinel = word(block, state.SENTINEL)
    lengths = word(block, state.LENGTHS)
    begins = word(block, state.GROUP_BEGINS)
    group_counts = word(block, state.GROUP_COUNTS)
    sketch = word(block, state.SKETCH)
    bits = word(block, state.SKETCH_BITS)
    group = -1
    group_end = 0
    count = 0
    left = sentinel
    cell = 1
    while cell < word(block, state.CELLS):
        if cell >= group_end:
            group += 1
            group_end = load_i64(begins + 8 * group + 8)
            count = load_i64(group_counts + 8 * group)
        right = symbol_at(symbols, cell, unit)
        if left != sentinel and right != sentinel:
            at = sketch + 8 * slot_of(left << 32 | right, bits)
            store64(at, load_i64(at) + count)
        left = right
        cell += 1 if right == sentinel else load32(lengths + 4 * right)


@inner
def count_pairs(block, unit):
    """Count exactly the pairs whose sketch reaches the threshold; the number stands for the list.

    Returns PAIRS_FULL when more than half the slots would be taken; begin again with more.
    """
    symbols = word(block, state.SYMBOLS)
    sentinel = word(block, state.SENTINEL)
    lengths = word(block, state.LENGTHS)
    begins = word(block, state.GROUP_BEGINS)
    group_counts = word(block, state.GROUP_COUNTS)
    sketch = word(block, state.SKETCH)
    sketch_bits = word(block, state.SKETCH_BITS)
    pairs = word(block, state.PAIRS)
    lists = word(block, state.PAIR_LISTS)
    bits = word(block, state.PAIR_BITS)
    threshold = word(block, state.THRESHOLD)
    limit = word(block, state.MAX_LENGTH)
    used = 0
    group = -1
    group_end = 0
    count = 0
    left = sentinel
    left_length = 0
    cell = 1
    while cell < word(block, state.CELLS):
        if cell >= group_end:
            group += 1
            group_end = load_i64(begins + 8 * group + 8)
            count = load_i64(group_counts + 8 * group)
        right = symbol_at(symbols, cell, unit)
        length = 1 if right == sentinel else load32(lengths + 4 * right)
        if left != sentinel and right != sentinel and left_length + length <= limit:
            key = left << 32 | right
            if load_i64(sketch + 8 * slot_of(key, sketch_bits)) >= threshold:
                at = find_pair(pairs, bits, key)
                if at != 0:
                    store64(at + 8, load_i64(at + 8) + count)
                    number = lists + ((at - pairs) >> 2)
                    store32(number, load32(number) + 1)
                else:
                    if 2 * (used + 1) > 1 << bits:
                        return state.PAIRS_FULL
                    add_pair(pairs, lists, bits, key, count, 1)
                    used += 1
        left = right
        left_length = length
        cell += length
    set_word(block, state.PAIRS_USED, used)
    return state.REACHED


@inner
def fill_lists(block, unit):
    """Give each pair of at least the threshold a list and a heap entry, and fill the lists.

    Takes the counted pairs from the old table, and adds them to the empty one.
    """
    old = word(block, state.OLD)
    old_numbers = word(block, state.OLD_LISTS)
    threshold = word(block, state.THRESHOLD)
    for slot in range(word(block, state.OLD_SIZE)):
        key = load_i64(old + 16 * slot)
        count = load_i64(old + 16 * slot + 8)
        if key != state.EMPTY and count >= threshold:
            add_list(block, key, count, load32(old_numbers + 4 * slot))
    symbols = word(block, state.SYMBOLS)
    sentinel = word(block, state.SENTINEL)
    lengths = word(block, state.LENGTHS)
    pairs = word(block, state.PAIRS)
    lists = word(block, state.PAIR_LISTS)
    bits = word(block, state.PAIR_BITS)
    records = word(block, state.RECORDS)
    pool = word(block, state.POOL)
    for record in range(word(block, state.RECORDS_USED)):
        store64(records + 24 * record + 16, 0)
    left = sentinel
    left_cell = 0
    cell = 1
    while cell < word(block, state.CELLS):
        right = symbol_at(symbols, cell, unit)
        if left != sentinel and right != sentinel:
            at = find_pair(pairs, bits, left << 32 | right)
            if at != 0:
                record = records + 24 * load32(lists + ((at - pairs) >> 2))
                number = load_i64(record + 16)
                store32(pool + 4 * (load_i64(record + 8) + number), left_cell)
                store64(record + 16, number + 1)
        left = right
        left_cell = cell
        cell += 1 if right == sentinel else load32(lengths + 4 * right)


@njit
def run_rebuild(operation, block, unit):
    """Carry out one operation; returns its code."""
    if operation == state.SKETCH_PAIRS:
        sketch_pairs(block, unit)
    elif operation == state.COUNT_PAIRS:
        return count_pairs(block, unit)
    else:
        fill_lists(block, unit)
    return state.REACHED
