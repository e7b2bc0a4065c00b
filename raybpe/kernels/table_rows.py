"""Tables as a whole: growing, adding rows or another table, export.

All of it behind one function, `run`, because every function that Python calls costs time to load.
A request is REQUEST_WORDS int64: what to do, and where it stands, so that it can go on after a
GROW_* code.
"""

import numpy as np
from numba import njit

from raybpe.kernels.intrinsics import (
    ZERO,
    as_i64,
    as_u64,
    load8,
    load64,
    load_i64,
    store64,
)
from raybpe.kernels.table import LONG, copy_bytes, first_slot, hash_bytes, put, room, slot_hash
from raybpe.kernels.table_layout import (
    ARENA,
    DONE,
    GROW_SLOTS,
    LAST,
    MASKS,
    OVERFLOW,
    RECORDS,
    SHIFT,
    SHORT,
    SLICE,
    SLOTS,
    USED,
)
from raybpe.kernels.table_requests import (
    ADD,
    COUNTS,
    CURSORS,
    INSERT,
    LONGEST,
    MEASURE,
    NEXT,
    OFFSETS,
    PARTITIONS,
    REHASH,
    SOURCE,
    SOURCE_ARENA,
    SOURCE_SIZE,
    TARGET,
    TOTAL,
)

_BYTES = np.uint64((1 << 56) - 1)
_U32 = np.uint64(32)
_U56 = np.uint64(56)

# Slots passed over per pretoken, on average over a slice, at which the table is crowded although
# it is not full: rows in hash order fill one end of a small table first.
_CROWDED = 16
_CROWDED_USE = 64  # … but not when fewer than 1 in 64 slots are in use: growing would not help


@njit
def _rehash(table, request):
    """Move all slots from SOURCE into the table's empty ones."""
    slots = load_i64(table + 8 * SLOTS)
    last = load_i64(table + 8 * LAST)
    shift = as_u64(load_i64(table + 8 * SHIFT))
    old = load_i64(request + 8 * SOURCE)
    end = old + 32 * load_i64(request + 8 * TOTAL)
    while old < end:
        low = load64(old)
        high = load64(old + 8)
        if high != ZERO:
            place = as_i64(slot_hash(low, high) >> shift) << 6
            while load64(slots + place + 8) != ZERO:
                place = (place + 32) & last
            for word in range(0, 32, 8):
                store64(slots + place + word, load64(old + word))
        old += 32
    return DONE


@njit
def _short_key(where, length, readable, masks):
    """Key words of at most SHORT bytes, of which `readable` or more can be read."""
    mask = masks + 32 * length
    if readable >= 16:
        low = load64(where) & load64(mask)
        return low, load64(where + 8) & load64(mask + 8) | load64(mask + 16)
    low = ZERO
    high = ZERO
    for at in range(length):
        byte = as_u64(load8(where + at))
        if at < 8:
            low |= byte << as_u64(8 * at)
        else:
            high |= byte << as_u64(8 * (at - 8))
    return low, high | load64(mask + 16)


@njit
def _crowded(table, passed, pretokens):
    """Whether probing takes so long that the table should grow before it is full."""
    slots = load_i64(table + 8 * LAST) >> 5
    used = load_i64(table + 8 * USED)
    return passed > _CROWDED * pretokens + SLICE and used * _CROWDED_USE > slots


@njit
def _insert(table, request):
    """Add rows: bytes OFFSETS[i] to OFFSETS[i + 1] of SOURCE, COUNTS[i] times."""
    data = load_i64(request + 8 * SOURCE)
    size = load_i64(request + 8 * SOURCE_SIZE)
    offsets = load_i64(request + 8 * OFFSETS)
    counts = load_i64(request + 8 * COUNTS)
    row = load_i64(request + 8 * NEXT)
    rows = load_i64(request + 8 * TOTAL)
    records = load_i64(table + 8 * RECORDS)
    while row < rows:
        stop = min(row + SLICE, rows)
        long_bytes = 0
        start = load_i64(offsets + 8 * row)
        for index in range(row, stop):
            end = load_i64(offsets + 8 * index + 8)
            length = end - start
            if length <= SHORT:
                low, high = _short_key(data + start, length, size - start, table + 8 * MASKS)
            else:
                low = hash_bytes(data + start, length)
                high = LONG | as_u64(length)
                long_bytes += length
            record = records + 32 * (index - row)
            store64(record, low)
            store64(record + 8, high)
            store64(record + 16, first_slot(table, low, high))
            store64(record + 24, data + start)
            start = end
        code = room(table, stop - row, long_bytes)
        if code != DONE:
            return code
        passed = 0
        for index in range(row, stop):
            over = put(table, records + 32 * (index - row), load_i64(counts + 8 * index))
            if over < 0:
                return OVERFLOW
            passed += over
        store64(request + 8 * NEXT, stop)
        if _crowded(table, passed, stop - row):
            return GROW_SLOTS
        row = stop
    return DONE


@njit
def _add(table, request):
    """Add the slots of another table."""
    source = load_i64(request + 8 * SOURCE)
    arena = load_i64(request + 8 * SOURCE_ARENA)
    index = load_i64(request + 8 * NEXT)
    slots = load_i64(request + 8 * TOTAL)
    records = load_i64(table + 8 * RECORDS)
    while index < slots:
        record = records
        long_bytes = 0
        stop = index
        # The slot's own address stands in for that of the bytes until the second pass.
        while stop < slots and record < records + 32 * SLICE:
            slot = source + 32 * stop
            high = load64(slot + 8)
            stop += 1
            if high != ZERO:
                low = load64(slot)
                store64(record, low)
                store64(record + 8, high)
                store64(record + 16, first_slot(table, low, high))
                store64(record + 24, slot)
                record += 32
                if as_i64(high) < 0:
                    long_bytes += as_i64(high & _BYTES)
        code = room(table, (record - records) >> 5, long_bytes)
        if code != DONE:
            return code
        passed = 0
        at = records
        while at < record:
            slot = load_i64(at + 24)
            store64(at + 24, arena + load_i64(slot + 24))
            over = put(table, at, load_i64(slot + 16))
            if over < 0:
                return OVERFLOW
            passed += over
            at += 32
        index = stop
        store64(request + 8 * NEXT, index)
        if _crowded(table, passed, (record - records) >> 5):
            return GROW_SLOTS
    return DONE


@njit
def _length(high):
    """Length in bytes of the pretoken with this second key word."""
    if as_i64(high) < 0:
        return as_i64(high & _BYTES)
    return as_i64(high >> _U56) & 0x3F


@njit
def _cursor(request, low, high):
    """(partition, address of its cursor); rows that are too long have the last cursor."""
    partitions = load_i64(request + 8 * PARTITIONS)
    part = partitions
    if _length(high) <= load_i64(request + 8 * LONGEST):
        part = as_i64((slot_hash(low, high) >> _U32) * as_u64(partitions) >> _U32)
    return part, load_i64(request + 8 * CURSORS) + 24 * part


@njit
def _measure(table, request):
    """Count the rows and bytes of each partition, in its cursor."""
    slot = load_i64(table + 8 * SLOTS)
    end = slot + load_i64(table + 8 * LAST) + 32
    while slot < end:
        high = load64(slot + 8)
        if high != ZERO:
            _, cursor = _cursor(request, load64(slot), high)
            store64(cursor, load_i64(cursor) + 1)
            store64(cursor + 8, load_i64(cursor + 8) + _length(high))
        slot += 32
    return DONE


@njit
def _fill(table, request):
    """Write each partition's rows; of those that are too long, only the counts.

    A cursor is (next row, next byte in TARGET, first byte in TARGET). The offsets of partition p
    begin p entries later than its counts, for each has one more. Writes up to 16 bytes past a row.
    """
    slot = load_i64(table + 8 * SLOTS)
    end = slot + load_i64(table + 8 * LAST) + 32
    arena = load_i64(table + 8 * ARENA)
    partitions = load_i64(request + 8 * PARTITIONS)
    data = load_i64(request + 8 * TARGET)
    offsets = load_i64(request + 8 * OFFSETS)
    counts = load_i64(request + 8 * COUNTS)
    while slot < end:
        low = load64(slot)
        high = load64(slot + 8)
        if high != ZERO:
            part, cursor = _cursor(request, low, high)
            row = load_i64(cursor)
            store64(cursor, row + 1)
            store64(counts + 8 * row, load_i64(slot + 16))
            if part < partitions:
                at = load_i64(cursor + 8)
                after = at + _length(high)
                if as_i64(high) >= 0:
                    store64(data + at, low)
                    store64(data + at + 8, high)
                else:
                    copy_bytes(arena + load_i64(slot + 24), data + at, after - at)
                store64(cursor + 8, after)
                store64(offsets + 8 * (row + part + 1), after - load_i64(cursor + 16))
        slot += 32
    return DONE


@njit
def run(operation, table, request):
    """Do what a request says with a table; both are addresses. Returns a code of `table`."""
    if operation == REHASH:
        return _rehash(table, request)
    if operation == INSERT:
        return _insert(table, request)
    if operation == ADD:
        return _add(table, request)
    if operation == MEASURE:
        return _measure(table, request)
    return _fill(table, request)
