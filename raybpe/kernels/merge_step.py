"""One merge of a pair (a, b) into c: rewrite its occurrences, move weights, write the new lists.

The order matters. Occurrences are rewritten first and neighbours counted afterwards, so a left
neighbour that is itself c means that b, a vanished between the two. An occurrence's right neighbour
is final only once the next occurrence was looked at.
"""

from raybpe.kernels import merge_state as state
from raybpe.kernels.intrinsics import load8, load32, load_i64, prefetch, store8, store32, store64
from raybpe.kernels.merge_pairs import add_pair, find_pair, push, set_word, slot_of, word
from raybpe.kernels.merge_symbols import inner, set_symbol, symbol_address, symbol_at

_BATCH = 1024  # occurrences that are found, then rewritten, then counted: their cells stay in cache
_CELLS_AHEAD = 24  # list entries between asking for a cell and reading it
_PAIRS_AHEAD = 8  # neighbours between asking for a slot of the pair table and reading it
_NO_LIST = -1
_TOP_BIT = -(1 << 63)


@inner
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


@inner
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
                soon = load32(positions + 4 * min(i + _CELLS_AHEAD, number - 1))
                prefetch(symbol_address(symbols, soon, unit))
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


@inner
def take_away(block, key, count):
    """Lower a pair's count, if the pair is in the table."""
    at = find_pair(word(block, state.PAIRS), word(block, state.PAIR_BITS), key)
    if at != 0:
        store64(at + 8, load_i64(at + 8) - count)


@inner
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


@inner
def update_pairs(block, a, b, c, space, space_end):
    """Take the old neighbour pairs' weights away, and create the new pairs.

    The number of each touched id becomes where its list goes, or _NO_LIST. Returns how many lists.
    """
    sentinel = word(block, state.SENTINEL)
    threshold = word(block, state.THRESHOLD)
    lengths = word(block, state.LENGTHS)
    room = word(block, state.MAX_LENGTH) - load32(lengths + 4 * c)
    created = 0
    pairs = word(block, state.PAIRS)
    bits = word(block, state.PAIR_BITS)
    sums = word(block, state.LEFT_SUMS)
    seen = word(block, state.LEFT_SEEN)
    used = word(block, state.LEFT_USED)
    for i in range(used):
        soon = load32(seen + 4 * min(i + _PAIRS_AHEAD, used - 1))
        prefetch(pairs + 16 * slot_of(soon << 32 | a, bits))
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
    used = word(block, state.RIGHT_USED)
    for i in range(used):
        soon = load32(seen + 4 * min(i + _PAIRS_AHEAD, used - 1))
        prefetch(pairs + 16 * slot_of(b << 32 | soon, bits))
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


@inner
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


@inner
def clear_sums(sums, seen, used):
    """Zero the touched entries."""
    for i in range(used):
        at = sums + 16 * load32(seen + 4 * i)
        store64(at, 0)
        store64(at + 8, 0)


@inner
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


@inner
def merge_pair(block, pair, count, begin, number, unit):
    """Make the next merge: of the pair whose slot is given, with its list in the pool."""
    merges = word(block, state.MERGES)
    key = load_i64(pair)
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
        word(block, state.RIGHT_SUMS), word(block, state.RIGHT_SEEN), word(block, state.RIGHT_USED)
    )
    set_word(block, state.LEFT_USED, 0)
    set_word(block, state.RIGHT_USED, 0)
    set_word(block, state.MERGES, merges + 1)
