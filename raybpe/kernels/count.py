"""Counting: the scanner's output goes into the table, batch by batch.

Two passes over a slice of pretokens: the first computes keys and asks for the cache lines of their
slots, the second finds them there. Everything resumes: `advance` returns a code when the table
needs room, with nothing lost.

A driver is `advance` and a scanner in turns; `count_gpt2` and `count_automaton` are the two.
"""

import numpy as np
from numba import njit

from raybpe.kernels.count_state import COUNTED, SCAN, TABLE, TAKEN
from raybpe.kernels.intrinsics import ZERO, as_i64, load64, load_i64, store64
from raybpe.kernels.pieces import next_piece
from raybpe.kernels.scan_state import ACTIVE, BATCH, COUNT, DATA, GAP, OUT
from raybpe.kernels.table import LONG, first_slot, hash_bytes, put, room
from raybpe.kernels.table_layout import DONE, LARGEST, MASKS, OVERFLOW, RECORDS, SHORT, SLICE

_SHORT = np.uint64(SHORT)
_OFFSET = GAP - np.uint64(1)


@njit
def _count_slice(state, first, stop):
    """Count the spans of entries first to stop - 1; returns a code of `table`."""
    table = load_i64(state + 8 * TABLE)
    data = load_i64(state + 8 * DATA)
    entry = load_i64(state + 8 * OUT) + 8 * first
    end = load_i64(state + 8 * OUT) + 8 * stop
    records = load_i64(table + 8 * RECORDS)
    masks = table + 8 * MASKS
    record = records
    long_bytes = 0
    start = load64(entry)
    while entry < end:
        entry += 8
        following = load64(entry)
        length = following - start | start & GAP
        where = data + as_i64(start)
        start = following
        if length > _SHORT:  # long, or one of the two entries has the GAP bit
            if load64(entry - 8) & GAP != ZERO:
                continue
            length &= _OFFSET
        if length <= _SHORT:
            mask = masks + 32 * as_i64(length)
            low = load64(where) & load64(mask)
            high = load64(where + 8) & load64(mask + 8) | load64(mask + 16)
        else:
            low = hash_bytes(where, as_i64(length))
            high = LONG | length
            long_bytes += as_i64(length)
        store64(record, low)
        store64(record + 8, high)
        store64(record + 16, first_slot(table, low, high))
        store64(record + 24, where)
        record += 32

    pretokens = (record - records) >> 5
    code = room(table, pretokens, long_bytes)
    if code != DONE:
        return code
    while records < record:
        # Nearly all are short ones in one of the first two slots, so both are tried in one branch.
        low = load64(records)
        high = load64(records + 8)
        slot = load_i64(records + 16)
        first = (load64(slot) ^ low) | (load64(slot + 8) ^ high)
        second = (load64(slot + 32) ^ low) | (load64(slot + 40) ^ high)
        slot += 0 if first == ZERO else 32
        number = load_i64(slot + 16)
        if (first == ZERO or second == ZERO) and as_i64(high) >= 0 and number < LARGEST:
            store64(slot + 16, number + 1)
        elif put(table, records, 1) < 0:
            return OVERFLOW
        records += 32
    store64(state + 8 * COUNTED, load_i64(state + 8 * COUNTED) + pretokens)
    return DONE


@njit
def _count_batch(state):
    """Count all spans in the output buffer; its last entry stays there, as the first."""
    taken = load_i64(state + 8 * TAKEN)
    last = load_i64(state + 8 * COUNT) - 1
    while taken < last:
        stop = min(taken + SLICE, last)
        code = _count_slice(state, taken, stop)
        if code != DONE:
            return code
        taken = stop
        store64(state + 8 * TAKEN, taken)
    out = load_i64(state + 8 * OUT)
    if last >= 0:
        store64(out, load64(out + 8 * last))
        store64(state + 8 * COUNT, 1)
    store64(state + 8 * TAKEN, 0)
    return DONE


@njit
def advance(state):
    """Prepare the scanner's next turn (SCAN), or return a code of `table`: DONE after the last."""
    if load_i64(state + 8 * COUNT) >= BATCH:
        code = _count_batch(state)
        if code != DONE:
            return code
    if load_i64(state + 8 * ACTIVE) == 0:
        if next_piece(state) == 0:
            return _count_batch(state)
        store64(state + 8 * ACTIVE, 1)
    return SCAN
