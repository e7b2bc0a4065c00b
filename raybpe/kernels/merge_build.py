"""Building what the merge kernel works on: symbols, counts of pairs, lists of positions.

**Symbols.** One array: sentinel, word, sentinel, word, …, sentinel; words by count, the highest
first. A cell per byte. A token's id stands in its first and last cell; the cells between hold what
they held and are never read as live. So the next token is at position + length, and the cell
before a token holds the id of its left neighbour.

**Weights.** The count of the word at a position is found from the groups of equal count; lists are
sorted, so a cursor that only moves forward does it.

**Pairs.** All tokens are bytes, so pairs are counted in a dense table. `merge_rebuild` makes the
lists anew when tokens are longer.
"""

from raybpe.kernels import merge_state as state
from raybpe.kernels.intrinsics import load8, load32, load_i64, prefetch, store32, store64
from raybpe.kernels.merge_pairs import (
    add_pair,
    push,
    set_word,
    word,
)
from raybpe.kernels.merge_symbols import inner, set_symbol, symbol_at

_BATCH = 256  # cells whose places are found before any is written
_AHEAD = 16  # words between asking for an input row and reading it


@inner
def build_symbols(block, unit):
    """Write symbols and groups, and count byte pairs at left << 8 | right of the dense tables.

    Words of one byte have no pairs and are left out. Returns the number of groups.
    """
    symbols = word(block, state.SYMBOLS)
    sentinel = word(block, state.SENTINEL)
    begins = word(block, state.GROUP_BEGINS)
    group_counts = word(block, state.GROUP_COUNTS)
    data = word(block, state.DATA)
    offsets = word(block, state.OFFSETS)
    counts = word(block, state.COUNTS)
    order = word(block, state.ORDER)
    byte_ids = word(block, state.BYTE_IDS)
    sums = word(block, state.BYTE_PAIR_COUNTS)
    places = word(block, state.BYTE_PAIR_PLACES)
    words = word(block, state.ORDER_SIZE)
    set_symbol(symbols, 0, sentinel, unit)
    cell = 1
    groups = 0
    last_count = 0
    for i in range(words):
        # The order by count jumps about in the input.
        soon = load_i64(order + 8 * min(i + 2 * _AHEAD, words - 1))
        prefetch(offsets + 8 * soon)
        prefetch(counts + 8 * soon)
        prefetch(data + load_i64(offsets + 8 * load_i64(order + 8 * min(i + _AHEAD, words - 1))))
        index = load_i64(order + 8 * i)
        at = data + load_i64(offsets + 8 * index)
        end = data + load_i64(offsets + 8 * index + 8)
        if end - at < 2:
            continue
        count = load_i64(counts + 8 * index)
        if count != last_count:
            store64(begins + 8 * groups, cell)
            store64(group_counts + 8 * groups, count)
            groups += 1
            last_count = count
        left = load8(byte_ids + load8(at))
        set_symbol(symbols, cell, left, unit)
        cell += 1
        at += 1
        while at < end:
            right = load8(byte_ids + load8(at))
            set_symbol(symbols, cell, right, unit)
            pair = left << 8 | right
            store64(sums + 8 * pair, load_i64(sums + 8 * pair) + count)
            store32(places + 4 * pair, load32(places + 4 * pair) + 1)
            left = right
            cell += 1
            at += 1
        set_symbol(symbols, cell, sentinel, unit)
        cell += 1
    store64(begins + 8 * groups, cell)
    return groups


@inner
def index_groups(block):
    """Fill BLOCK_GROUPS and HEAD_COUNTS."""
    cells = word(block, state.CELLS)
    begins = word(block, state.GROUP_BEGINS)
    group_counts = word(block, state.GROUP_COUNTS)
    blocks = word(block, state.BLOCK_GROUPS)
    head = word(block, state.HEAD_COUNTS)
    group = 0
    for i in range((cells >> 8) + 1):
        while load_i64(begins + 8 * group + 8) <= i << 8 and i << 8 < cells:
            group += 1
        store32(blocks + 4 * i, group)
    group = 0
    for cell in range(word(block, state.HEAD_CELLS)):
        while load_i64(begins + 8 * group + 8) <= cell:
            group += 1
        store64(head + 8 * cell, load_i64(group_counts + 8 * group))


@inner
def start_lists(block):
    """Give each byte pair of at least the threshold a list.

    In the dense table, the number becomes the place of the list's first position, or the pool's
    last place, which no list reaches.
    """
    sums = word(block, state.BYTE_PAIR_COUNTS)
    places = word(block, state.BYTE_PAIR_PLACES)
    threshold = word(block, state.THRESHOLD)
    limit = word(block, state.MAX_LENGTH)
    for pair in range(1 << 16):
        count = load_i64(sums + 8 * pair)
        number = load32(places + 4 * pair)
        place = word(block, state.POOL_ROOM) - 1
        if number > 0 and count >= threshold and limit >= 2:
            place = word(block, state.POOL_USED)
            add_list(block, (pair >> 8) << 32 | (pair & 255), count, number)
        store32(places + 4 * pair, place)


@inner
def add_list(block, key, count, number):
    """Make the record, table entry and heap entry of a new pair, its list at the pool's end."""
    records = word(block, state.RECORDS)
    record = word(block, state.RECORDS_USED)
    place = word(block, state.POOL_USED)
    store64(records + 24 * record, key)
    store64(records + 24 * record + 8, place)
    store64(records + 24 * record + 16, number)
    set_word(block, state.RECORDS_USED, record + 1)
    set_word(block, state.POOL_USED, place + number)
    add_pair(
        word(block, state.PAIRS),
        word(block, state.PAIR_LISTS),
        word(block, state.PAIR_BITS),
        key,
        count,
        record,
    )
    set_word(block, state.PAIRS_USED, word(block, state.PAIRS_USED) + 1)
    size = word(block, state.HEAP_USED)
    push(block, word(block, state.HEAP), size, count, key)
    set_word(block, state.HEAP_USED, size + 1)


@inner
def fill_byte_lists(block, unit):
    """Write the positions of all listed byte pairs, in one pass.

    Each pair's list is a stream of its own, thousands of them: places are asked for a batch ahead.
    """
    symbols = word(block, state.SYMBOLS)
    sentinel = word(block, state.SENTINEL)
    places = word(block, state.BYTE_PAIR_PLACES)
    pool = word(block, state.POOL)
    nowhere = word(block, state.POOL_ROOM) - 1
    batch = word(block, state.BATCH)
    cells = word(block, state.CELLS)
    left = sentinel
    for begin in range(1, cells, _BATCH):
        number = 0
        for cell in range(begin, min(begin + _BATCH, cells)):
            right = symbol_at(symbols, cell, unit)
            if left != sentinel and right != sentinel:
                at = places + 4 * (left << 8 | right)
                place = load32(at)
                prefetch(pool + 4 * place)
                store32(batch + 8 * number, place)
                store32(batch + 8 * number + 4, cell - 1)
                number += 1
                store32(at, place + (place != nowhere))
            left = right
        for i in range(number):
            store32(pool + 4 * load32(batch + 8 * i), load32(batch + 8 * i + 4))
