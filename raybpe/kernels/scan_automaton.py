"""Scanner for any compiled pattern: one table look-up per byte (`automaton_tables`).

Most bytes are ASCII and index a row of the fast table; others are decoded and indexed by class. The
entry gives the next state, already past any end of a pretoken, and flags for the ends themselves,
written without branching. What the fast table leaves open is found by `match_end`, the plain
automaton, from the start of the pretoken; scanning resumes after its match.

Each code point adds at most two entries, so blocks of 64 bytes keep within the buffer's spare room.
Text must be valid UTF-8; if it is not, the pretokens mean nothing, but nothing beyond is touched.
"""

from numba import njit

from raybpe.kernels.automaton_tables import (
    BEFORE,
    END_SYMBOL,
    FAST,
    HERE,
    LOOSE,
    MATCHES,
    ROW,
    SLOW,
    START,
)
from raybpe.kernels.intrinsics import load8, load32, load_i64, store64
from raybpe.kernels.scan_state import BATCH, CARRY, COUNT, DATA, END, OUT, POS, TABLES
from raybpe.kernels.symbols import symbol_at

_GAP = -(1 << 63)  # bit 63, as int64
_BLOCK = 64

# Bytes into the state block.
_STATE = CARRY * 8  # entry whose state is the fast one; 0 before the first code point
_OPEN = _STATE + 8  # address where the open span began
_LAST = _STATE + 16  # address of the last code point


@njit
def length_of(lead):
    """Bytes of a valid character, by its first byte."""
    return 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)


@njit
def match_end(where, end, tables):
    """Where the match that begins at `where` ends, by the plain automaton; 0 if there is none."""
    rows = tables + load_i64(tables + MATCHES)
    state = START
    found = 0
    while where < end:
        length = length_of(load8(where))
        entry = load32(rows + 4 * symbol_at(where, length, tables) + state)
        if entry & HERE:
            found = where
        state = entry & ROW
        if state == 0:
            return found
        where += length
    if load32(rows + 4 * END_SYMBOL + state) & HERE:
        found = end
    return found


@njit
def scan(state):
    """Scan on in the current piece; as described in `scan_state`."""
    data = load_i64(state + 8 * DATA)
    where = data + load_i64(state + 8 * POS)
    end = data + load_i64(state + 8 * END)
    out = load_i64(state + 8 * OUT)
    tables = load_i64(state + 8 * TABLES)
    rows = tables + load_i64(tables + FAST)
    free = out + 8 * load_i64(state + 8 * COUNT)
    full = out + 8 * BATCH
    entry = load_i64(state + _STATE)
    opened = load_i64(state + _OPEN)
    last = load_i64(state + _LAST)
    if entry == 0:
        entry = START
        opened = where
    finished = 0
    while finished == 0 and free < full:
        stop = min(where + _BLOCK, end)
        while where < stop:
            byte = load8(where)
            length = 1
            symbol = byte
            if byte >= 0x80:
                length = length_of(byte)
                symbol = symbol_at(where, length, tables)
            entry = load32(rows + 4 * symbol + (entry & ROW))
            if entry & (SLOW | BEFORE):
                if entry & SLOW:
                    break
                store64(free, opened - data)
                free += 8
                opened = last
            store64(free, (opened - data) | ((entry & LOOSE) << 61))
            free += (entry & HERE) << 3
            opened += (where - opened) & -(entry & HERE)
            last = where
            where += length
        if entry & SLOW == 0:
            if where < end:
                continue
            if opened < end:
                entry = load32(rows + 4 * END_SYMBOL + (entry & ROW))
            if entry & SLOW == 0:
                if opened < end and entry & BEFORE:
                    store64(free, opened - data)
                    free += 8
                    opened = last
                if opened < end:
                    store64(free, (opened - data) | ((entry & LOOSE) << 61))
                    free += 8
                store64(free, (end - data) | _GAP)
                free += 8
                finished = 1
                continue
        # The open span's end lies further back than the fast table can say.
        where = match_end(opened, end, tables)
        gap = 0
        if where == 0:
            where = min(opened + length_of(load8(opened)), end)
            gap = _GAP
        store64(free, (opened - data) | gap)
        free += 8
        opened = where
        entry = START
    store64(state + 8 * COUNT, (free - out) >> 3)
    store64(state + 8 * POS, where - data)
    store64(state + _STATE, entry)
    store64(state + _OPEN, opened)
    store64(state + _LAST, last)
    return finished
