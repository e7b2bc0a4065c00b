"""Pretokens that wait to be merged together, and the output that lacks their ids until then.

Layout in `encode_state`. The output is moved apart from its end, so each id moves at most once per
`settle`.
"""

from raybpe.kernels.encode_cache import find, first_slot, insert
from raybpe.kernels.encode_short import merge_waiting
from raybpe.kernels.encode_state import (
    ARENA,
    IDS,
    IDS_USED,
    MOST_WAITING,
    SHIFT,
    TABLE,
    WAITING,
    WAITING_BYTES,
    WAITING_COUNT,
    WAITING_IDS,
    WAITING_SIZE,
    WIDTH,
)
from raybpe.kernels.intrinsics import (
    ZERO,
    load16,
    load64,
    load_i64,
    store16,
    store64,
)
from raybpe.kernels.jit import njit


@njit
def wait(state, lo, hi, text, length, written):
    """Let a pretoken of at most SHORT bytes wait, whose ids come after `written` ids.

    There must be room: fewer than MOST_WAITING wait.
    """
    count = load_i64(state + 8 * WAITING_COUNT)
    record = load_i64(state + 8 * WAITING) + WAITING_BYTES * count
    store64(record, lo)
    store64(record + 8, hi)
    store64(record + 16, text)
    store64(record + 24, length)
    store64(record + 32, written)
    store64(state + 8 * WAITING_COUNT, count + 1)
    store64(state + 8 * WAITING_SIZE, load_i64(state + 8 * WAITING_SIZE) + length)
    return count + 1 == MOST_WAITING


@njit
def settle(state):
    """Merge all that waits, put the ids into the output and the cache."""
    count = load_i64(state + 8 * WAITING_COUNT)
    if count == 0:
        return
    first = load_i64(state + 8 * WAITING)
    end = first + WAITING_BYTES * count
    merge_waiting(state, first, count)
    _keep(state, first, end)
    _put_in(state, first, end)
    store64(state + 8 * WAITING_COUNT, 0)
    store64(state + 8 * WAITING_SIZE, 0)


@njit
def _keep(state, first, end):
    """Put the ids of the records from `first` to `end` into the cache."""
    arena = load_i64(state + 8 * ARENA)
    table = load_i64(state + 8 * TABLE)
    shift = load64(state + 8 * SHIFT)
    for record in range(first, end, WAITING_BYTES):
        lo = load64(record)
        hi = load64(record + 8)
        text = load_i64(record + 16)
        where = find(table, shift, arena, first_slot(table, shift, lo, hi), lo, hi, text)
        if load64(where + 8) == ZERO:  # else it waited twice
            insert(state, where, lo, hi, text, record + WAITING_IDS, load_i64(record + 40))


@njit
def _put_in(state, first, end):
    """Move the output apart and put in the ids of the records from `first` to `end`."""
    width = load_i64(state + 8 * WIDTH)
    ids = load_i64(state + 8 * IDS)
    used = load_i64(state + 8 * IDS_USED)
    more = 0
    for record in range(first, end, WAITING_BYTES):
        more += load_i64(record + 40)
    store64(state + 8 * IDS_USED, used + more)
    shift = more << width
    stop = ids + (used << width)
    for record in range(end - WAITING_BYTES, first - 1, -WAITING_BYTES):
        begin = ids + (load_i64(record + 32) << width)
        _move_up(begin, stop, shift)
        size = load_i64(record + 40) << width
        shift -= size
        for at in range(0, size, 2):
            store16(begin + shift + at, load16(record + WAITING_IDS + at))
        stop = begin


@njit
def _move_up(begin, end, distance):
    """Move the bytes from `begin` to `end`, an even number, up by `distance`, last ones first."""
    while end - begin >= 16:
        end -= 16
        low = load64(end)
        high = load64(end + 8)
        store64(end + distance, low)
        store64(end + distance + 8, high)
    while end > begin:
        end -= 2
        store16(end + distance, load16(end))
