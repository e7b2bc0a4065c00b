"""The merge loop: a vocabulary from weighted words, exactly, in 28–36 ns per symbol in all.

`run(operation, block, unit)` is the only function that Python calls; `unit` is a scalar of the
symbol type, so only the type that is used gets compiled. `merge_state` names the block's words,
`merge_build` explains the symbols.

Why it is exact:

* *Lists are born whole.* Two tokens become neighbours only in the step that creates the newer of
  the two, so a pair gets all its positions in that step; later its count only falls. A list is
  therefore written once, and a heap entry is an upper bound.
* *A stale position shows itself.* Only first and last cells of a's tokens ever hold a, and all of
  a's tokens were born in one step, so a listed position is never the last cell of another a. Thus
  symbol[p] = a means that a live a starts at p, and symbol[p + length(a)] is what follows it.
* *Pruning.* A pair born below the threshold can never reach it, so it needs no list. When no pair
  is left, Python lowers the threshold and the lists are made anew (`merge_build`).
* *No two ids have equal bytes* (see `reference`), so a created pair is always a new one.
"""

import numba

from raybpe.kernels import merge_state as state
from raybpe.kernels.intrinsics import load8, load32, load_i64, store8, store32, store64
from raybpe.kernels.merge_build import (
    build_symbols,
    count_pairs,
    fill_byte_lists,
    fill_lists,
    index_groups,
    sketch_pairs,
    start_lists,
)
from raybpe.kernels.merge_pairs import (
    add_pair,
    drop_first,
    find_pair,
    move_pairs,
    push,
    set_word,
    sift_down,
    word,
)
from raybpe.kernels.merge_state import set_symbol, symbol_at

# Operations of `run`.
BUILD = 0
INDEX_GROUPS = 1
START_LISTS = 2
FILL_BYTE_LISTS = 3
MERGE = 4
COMPACT = 5
MOVE_PAIRS = 6
SKETCH_PAIRS = 7
COUNT_PAIRS = 8
FILL_LISTS = 9

_BATCH = 1024  # occurrences that are found, then rewritten, then counted: their cells stay in cache
_NO_LIST = -1
_TOP_BIT = -(1 << 63)


@numba.njit(nogil=True)
def count_neighbours(block, first, last, length, unit):
    """Note the neighbours of rewritten occurrences [first, last), and add up weights by id."""
    symbols = word(block, state.SYMBOLS)
    places = word(block, state.PLACES)
    lefts = word(block, state.LEFTS)
    rights = word(block, state.RIGHTS)
    left_sums = word(block, state.LEFT_SUMS)
    right_sums = word(block, state.RIGHT_SUMS)
    left_seen = word(block, state.LEFT_SEEN)
    right_seen = word(block, state.RIGHT_SEEN)
    left_used = word(block, state.LEFT_USED)
    right_used = word(block, state.RIGHT_USED)
    begins = word(block, state.GROUP_BEGINS)
    group_counts = word(block, state.GROUP_COUNTS)
    blocks = word(block, state.BLOCK_GROUPS)
    head = word(block, state.HEAD_COUNTS)
    head_cells = word(block, state.HEAD_CELLS)
    group = 0
    group_end = 0
    group_count = 0
    for i in range(first, last):
        cell = load32(places + 4 * i)
        if cell < head_cells:
            count = load_i64(head + 8 * cell)
        else:
            if cell >= group_end:
                group = max(group, load32(blocks + 4 * (cell >> 8)))
                group_end = load_i64(begins + 8 * group + 8)
                while group_end <= cell:
                    group += 1
                    group_end = load_i64(begins + 8 * group + 8)
                group_count = load_i64(group_counts + 8 * group)
            count = group_count
        left = symbol_at(symbols, cell - 1, unit)
        right = symbol_at(symbols, cell + length, unit)
        set_symbol(lefts, i, left, unit)
        set_symbol(rights, i, right, unit)
        at = left_sums + 16 * left
        number = load_i64(at + 8)
        store64(at, load_i64(at) + count)
        store64(at + 8, number + 1)
        store32(left_seen + 4 * left_used, left)
        left_used += number == 0
        at = right_sums + 16 * right
        number = load_i64(at + 8)
        store64(at, load_i64(at) + count)
        store64(at + 8, number + 1)
        store32(right_seen + 4 * right_used, right)
        right_used += number == 0
    set_word(block, state.LEFT_USED, left_used)
    set_word(block, state.RIGHT_USED, right_used)


@numba.njit(nogil=True)
def rewrite(block, begin, number, a, b, c, unit):
    """Replace a, b by c at the live ones of a list's positions; returns how many there were.

    PLACES, LEFTS and RIGHTS get each occurrence's cell and neighbours, the sums their weights.
    """
    symbols = word(block, state.SYMBOLS)
    lengths = word(block, state.LENGTHS)
    places = word(block, state.PLACES)
    positions = word(block, state.POOL) + 4 * begin
    dead = word(block, state.SENTINEL) + 1
    length_a = load32(lengths + 4 * a)
    length = load32(lengths + 4 * c)
    found = 0
    counted = 0
    for start in range(0, number, _BATCH):
        end = min(start + _BATCH, number)
        if a == b:
            # Greedy from the left: a rewritten occurrence makes the overlapping next one stale.
            for i in range(start, end):
                cell = load32(positions + 4 * i)
                if (
                    symbol_at(symbols, cell, unit) == a
                    and symbol_at(symbols, cell + length_a, unit) == a
                ):
                    set_symbol(symbols, cell + length_a, dead, unit)
                    set_symbol(symbols, cell, c, unit)
                    set_symbol(symbols, cell + length - 1, c, unit)
                    store32(places + 4 * found, cell)
                    found += 1
        else:
            first = found
            for i in range(start, end):
                cell = load32(positions + 4 * i)
                store32(places + 4 * found, cell)
                found += (symbol_at(symbols, cell, unit) == a) & (
                    symbol_at(symbols, cell + length_a, unit) == b
                )
            for i in range(first, found):
                cell = load32(places + 4 * i)
                set_symbol(symbols, cell + length_a, dead, unit)
                set_symbol(symbols, cell, c, unit)
                set_symbol(symbols, cell + length - 1, c, unit)
        # The newest one's right neighbour may be rewritten by the next batch.
        if found - 1 > counted:
            count_neighbours(block, counted, found - 1, length, unit)
            counted = found - 1
    count_neighbours(block, counted, found, length, unit)
    return found


@numba.njit(nogil=True)
def take_away(block, key, count):
    """Lower a pair's count, if the pair is in the table."""
    at = find_pair(word(block, state.PAIRS), word(block, state.PAIR_BITS), key)
    if at != 0:
        store64(at + 8, load_i64(at + 8) - count)


@numba.njit(nogil=True)
def create(block, key, count, number, space, space_end):
    """Make a new pair with a list of `number` places; returns where the list begins.

    That is in the given free space if it fits, else at the pool's end.
    """
    if space + number <= space_end:
        begin = space
    else:
        begin = word(block, state.POOL_USED)
        set_word(block, state.POOL_USED, begin + number)
    record = word(block, state.RECORDS_USED)
    at = word(block, state.RECORDS) + 24 * record
    store64(at, key)
    store64(at + 8, begin)
    store64(at + 16, number)
    set_word(block, state.RECORDS_USED, record + 1)
    pairs = word(block, state.PAIRS)
    add_pair(pairs, word(block, state.PAIR_LISTS), word(block, state.PAIR_BITS), key, count, record)
    set_word(block, state.PAIRS_USED, word(block, state.PAIRS_USED) + 1)
    size = word(block, state.HEAP_USED)
    push(block, word(block, state.HEAP), size, count, key)
    set_word(block, state.HEAP_USED, size + 1)
    return begin


@numba.njit(nogil=True)
def update_pairs(block, a, b, c, space, space_end):
    """Take the old neighbour pairs' weights away, and create the new pairs.

    The number of each touched id becomes where its list goes, or _NO_LIST. Returns how many lists.
    """
    sentinel = word(block, state.SENTINEL)
    threshold = word(block, state.THRESHOLD)
    lengths = word(block, state.LENGTHS)
    room = word(block, state.MAX_LENGTH) - load32(lengths + 4 * c)
    created = 0
    sums = word(block, state.LEFT_SUMS)
    seen = word(block, state.LEFT_SEEN)
    for i in range(word(block, state.LEFT_USED)):
        left = load32(seen + 4 * i)
        at = sums + 16 * left
        count = load_i64(at)
        number = load_i64(at + 8)
        begin = _NO_LIST
        if left != sentinel:
            # Where the left neighbour is a c too, the pair that vanished was b, a.
            take_away(block, (b if left == c else left) << 32 | a, count)
            if count >= threshold and load32(lengths + 4 * left) <= room:
                begin = create(block, left << 32 | c, count, number, space, space_end)
                if begin == space:
                    space += number
                created += 1
        store64(at + 8, begin)
    sums = word(block, state.RIGHT_SUMS)
    seen = word(block, state.RIGHT_SEEN)
    for i in range(word(block, state.RIGHT_USED)):
        right = load32(seen + 4 * i)
        at = sums + 16 * right
        count = load_i64(at)
        number = load_i64(at + 8)
        begin = _NO_LIST
        if right != sentinel and right != c:  # c, c was counted from its left
            take_away(block, b << 32 | right, count)
            if count >= threshold and load32(lengths + 4 * right) <= room:
                begin = create(block, c << 32 | right, count, number, space, space_end)
                if begin == space:
                    space += number
                created += 1
        store64(at + 8, begin)
    return created


@numba.njit(nogil=True)
def write_lists(block, found, unit):
    """Write the positions of the created pairs, in order."""
    lengths = word(block, state.LENGTHS)
    pool = word(block, state.POOL)
    places = word(block, state.PLACES)
    lefts = word(block, state.LEFTS)
    rights = word(block, state.RIGHTS)
    left_sums = word(block, state.LEFT_SUMS)
    right_sums = word(block, state.RIGHT_SUMS)
    for i in range(found):
        left = symbol_at(lefts, i, unit)
        at = left_sums + 16 * left + 8
        place = load_i64(at)
        if place >= 0:
            store32(pool + 4 * place, load32(places + 4 * i) - load32(lengths + 4 * left))
            store64(at, place + 1)
        at = right_sums + 16 * symbol_at(rights, i, unit) + 8
        place = load_i64(at)
        if place >= 0:
            store32(pool + 4 * place, load32(places + 4 * i))
            store64(at, place + 1)


@numba.njit(nogil=True)
def clear_sums(sums, seen, used):
    """Zero the touched entries."""
    for i in range(used):
        at = sums + 16 * load32(seen + 4 * i)
        store64(at, 0)
        store64(at + 8, 0)


@numba.njit(nogil=True)
def name_token(block, a, b, c):
    """Note length, and for byte-order ties the bytes, of c = a + b."""
    lengths = word(block, state.LENGTHS)
    length_a = load32(lengths + 4 * a)
    length_b = load32(lengths + 4 * b)
    store32(lengths + 4 * c, length_a + length_b)
    if word(block, state.BY_BYTES) == 0:
        return
    text = word(block, state.TEXT)
    begins = word(block, state.TEXT_BEGINS)
    used = word(block, state.TEXT_USED)
    store64(begins + 8 * c, used)
    out = text + used
    from_a = text + load_i64(begins + 8 * a)
    for i in range(length_a):
        store8(out + i, load8(from_a + i))
    out += length_a
    from_b = text + load_i64(begins + 8 * b)
    for i in range(length_b):
        store8(out + i, load8(from_b + i))
    set_word(block, state.TEXT_USED, used + length_a + length_b)
    out = text + used
    prefix = 0
    for i in range(8):
        prefix = prefix << 8
        if i < length_a + length_b:
            prefix |= load8(out + i)
    # With the top bit flipped, signed numbers compare as the bytes do.
    store64(word(block, state.PREFIXES) + 8 * c, prefix ^ _TOP_BIT)


@numba.njit(nogil=True)
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


@numba.njit(nogil=True)
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
        merges = word(block, state.MERGES)
        a = key >> 32
        b = key & 0xFFFFFFFF
        c = 256 + merges
        store64(word(block, state.MERGED) + 8 * merges, key)
        store64(word(block, state.MERGED_COUNTS) + 8 * merges, count)
        name_token(block, a, b, c)
        found = rewrite(block, begin, number, a, b, c, unit)
        created = update_pairs(block, a, b, c, begin, begin + number)
        store64(pair + 8, 0)  # also what overlapping a, a in a run seem to have left
        if created > 0:
            write_lists(block, found, unit)
        clear_sums(
            word(block, state.LEFT_SUMS), word(block, state.LEFT_SEEN), word(block, state.LEFT_USED)
        )
        clear_sums(
            word(block, state.RIGHT_SUMS),
            word(block, state.RIGHT_SEEN),
            word(block, state.RIGHT_USED),
        )
        set_word(block, state.LEFT_USED, 0)
        set_word(block, state.RIGHT_USED, 0)
        set_word(block, state.MERGES, merges + 1)
    return state.REACHED


@numba.njit(nogil=True)
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


@numba.njit(nogil=True, cache=True)
def run(operation, block, unit):
    """Carry out one operation; returns its code, or for BUILD the number of groups."""
    if operation == MERGE:
        return merge_until(block, unit)
    if operation == COMPACT:
        compact(block, unit)
    elif operation == MOVE_PAIRS:
        move_pairs(block)
    elif operation == BUILD:
        return build_symbols(block, unit)
    elif operation == INDEX_GROUPS:
        index_groups(block)
    elif operation == START_LISTS:
        start_lists(block)
    elif operation == FILL_BYTE_LISTS:
        fill_byte_lists(block, unit)
    elif operation == SKETCH_PAIRS:
        sketch_pairs(block, unit)
    elif operation == COUNT_PAIRS:
        return count_pairs(block, unit)
    else:
        fill_lists(block, unit)
    return state.REACHED
