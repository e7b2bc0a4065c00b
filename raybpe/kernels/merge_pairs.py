"""The pair table and the heap of the merge kernel.

Both hold only pairs of at least the threshold. A pair's key is left << 32 | right. The heap is
lazy: a pair's count only falls after the step that creates it, so its entry is an upper bound and
is put right when it comes to the top.
"""

import numpy as np

from raybpe.kernels import merge_state as state
from raybpe.kernels.intrinsics import as_i64, as_u64, load8, load32, load_i64, store32, store64
from raybpe.kernels.merge_symbols import inner

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio


@inner
def word(block, index):
    """Word `index` of the state block."""
    return load_i64(block + 8 * index)


@inner
def set_word(block, index, value):
    """Set word `index` of the state block."""
    store64(block + 8 * index, value)


@inner
def slot_of(key, bits):
    """Where the search for a key begins in a table of 2**bits slots."""
    # Unsigned, for this product always overflows, which signed products must not.
    return as_i64((as_u64(key) * _MIX) >> as_u64(64 - bits))


@inner
def find_pair(pairs, bits, key):
    """Address of the pair's slot (key, count), or 0."""
    mask = (1 << bits) - 1
    slot = slot_of(key, bits)
    while True:
        at = pairs + 16 * slot
        found = load_i64(at)
        if found == key:
            return at
        if found == state.EMPTY:
            return 0
        slot = (slot + 1) & mask


@inner
def add_pair(pairs, lists, bits, key, count, record):
    """Put a pair that is not in the table."""
    mask = (1 << bits) - 1
    slot = slot_of(key, bits)
    while load_i64(pairs + 16 * slot) != state.EMPTY:
        slot = (slot + 1) & mask
    store64(pairs + 16 * slot, key)
    store64(pairs + 16 * slot + 8, count)
    store32(lists + 4 * slot, record)


@inner
def move_pairs(block):
    """Put the pairs of the old table that still reach the threshold into the new one."""
    old = word(block, state.OLD)
    old_lists = word(block, state.OLD_LISTS)
    pairs = word(block, state.PAIRS)
    lists = word(block, state.PAIR_LISTS)
    bits = word(block, state.PAIR_BITS)
    threshold = word(block, state.THRESHOLD)
    used = 0
    for slot in range(word(block, state.OLD_SIZE)):
        key = load_i64(old + 16 * slot)
        count = load_i64(old + 16 * slot + 8)
        if key != state.EMPTY and count >= threshold:
            add_pair(pairs, lists, bits, key, count, load32(old_lists + 4 * slot))
            used += 1
    set_word(block, state.PAIRS_USED, used)


@inner
def compare_bytes(block, a, b):
    """-1, 0 or 1 as token a's bytes are less than, equal to, or greater than token b's."""
    if a == b:
        return 0
    prefixes = word(block, state.PREFIXES)
    prefix_a = load_i64(prefixes + 8 * a)
    prefix_b = load_i64(prefixes + 8 * b)
    if prefix_a != prefix_b:
        return -1 if prefix_a < prefix_b else 1
    lengths = word(block, state.LENGTHS)
    length_a = load32(lengths + 4 * a)
    length_b = load32(lengths + 4 * b)
    begins = word(block, state.TEXT_BEGINS)
    text = word(block, state.TEXT)
    text_a = text + load_i64(begins + 8 * a)
    text_b = text + load_i64(begins + 8 * b)
    for i in range(8, min(length_a, length_b)):
        byte_a = load8(text_a + i)
        byte_b = load8(text_b + i)
        if byte_a != byte_b:
            return -1 if byte_a < byte_b else 1
    # A prefix is padded with zero bytes, so of two that agree the longer token is the greater.
    return -1 if length_a < length_b else 1


@inner
def wins_tie(block, key_a, key_b):
    """Whether pair a is merged before pair b of the same count."""
    if word(block, state.BY_BYTES) == 0:
        return key_a < key_b
    order = compare_bytes(block, key_a >> 32, key_b >> 32)
    if order == 0:
        order = compare_bytes(block, key_a & 0xFFFFFFFF, key_b & 0xFFFFFFFF)
    return order > 0


@inner
def comes_first(block, count_a, key_a, count_b, key_b):
    """Whether heap entry a is above entry b."""
    if count_a != count_b:
        return count_a > count_b
    return wins_tie(block, key_a, key_b)


@inner
def sift_down(block, heap, size, count, key):
    """Put an entry at the root, whose old entry is dropped, and let it sink."""
    index = 0
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        child_count = load_i64(heap + 16 * child)
        child_key = load_i64(heap + 16 * child + 8)
        if child + 1 < size:
            other_count = load_i64(heap + 16 * child + 16)
            other_key = load_i64(heap + 16 * child + 24)
            if comes_first(block, other_count, other_key, child_count, child_key):
                child += 1
                child_count = other_count
                child_key = other_key
        if not comes_first(block, child_count, child_key, count, key):
            break
        store64(heap + 16 * index, child_count)
        store64(heap + 16 * index + 8, child_key)
        index = child
    store64(heap + 16 * index, count)
    store64(heap + 16 * index + 8, key)


@inner
def push(block, heap, size, count, key):
    """Add an entry to a heap of `size` entries."""
    index = size
    while index > 0:
        parent = (index - 1) >> 1
        parent_count = load_i64(heap + 16 * parent)
        parent_key = load_i64(heap + 16 * parent + 8)
        if not comes_first(block, count, key, parent_count, parent_key):
            break
        store64(heap + 16 * index, parent_count)
        store64(heap + 16 * index + 8, parent_key)
        index = parent
    store64(heap + 16 * index, count)
    store64(heap + 16 * index + 8, key)


@inner
def drop_first(block, heap, size):
    """Remove the root of a heap of `size` entries; returns the new size."""
    size -= 1
    if size > 0:
        sift_down(block, heap, size, load_i64(heap + 16 * size), load_i64(heap + 16 * size + 8))
    return size
