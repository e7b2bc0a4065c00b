"""The part of encoding that all drivers share: documents in, ids out.

Layouts and words in `encode_state` and `scan_state`. There is a driver per scanner, with two
functions. ``run(state)`` goes on until all documents are done (DONE) or something must grow (a GROW
code); grow it and call again. ``run_text(state, length)`` encodes the first bytes at DATA as one
document and returns the number of ids, or minus a GROW code; then go on with ``run``.

Bytes outside the documents, from AT up to STOP, become one id each if BETWEEN says so: they are not
UTF-8.
"""

from numba import njit

from raybpe.kernels.encode_state import (
    AT,
    BETWEEN,
    BYTE_IDS,
    DONE,
    ENDS_OUT,
    FINISHED,
    GROW_IDS,
    IDS,
    IDS_SIZE,
    IDS_USED,
    NEED,
    NEXT,
    SPECIAL_IDS,
    STOP,
    WIDTH,
)
from raybpe.kernels.encode_words import encode_words
from raybpe.kernels.intrinsics import load8, load32, load_i64, store16, store32, store64
from raybpe.kernels.pieces import next_piece
from raybpe.kernels.scan_state import (
    ACTIVE,
    COUNT,
    DATA,
    DOCUMENT,
    DOCUMENTS,
    END,
    ENDS,
    FOLLOW,
    OUT,
    POS,
    RESUME,
    STARTS,
)

# Values of ACTIVE: what has been done about a piece.
_NO_PIECE = 0
_SCANNING = 1
_PIECE_FOUND = 2  # bytes between it and the one before still want their ids

SCAN = -1  # the scanner's turn


@njit
def _write_id(state, number):
    """Append one id; 1, or 0 if there is no room."""
    used = load_i64(state + 8 * IDS_USED)
    if used >= load_i64(state + 8 * IDS_SIZE):
        store64(state + 8 * NEED, 1)
        return 0
    ids = load_i64(state + 8 * IDS)
    if load_i64(state + 8 * WIDTH) == 1:
        store16(ids + 2 * used, number)
    else:
        store32(ids + 4 * used, number)
    store64(state + 8 * IDS_USED, used + 1)
    return 1


@njit
def _raw_bytes(state, end):
    """One id for each byte from AT to `end`, if BETWEEN says so; 1, or 0 if there is no room."""
    if load_i64(state + 8 * BETWEEN) == 0:
        return 1
    at = load_i64(state + 8 * AT)
    data = load_i64(state + 8 * DATA)
    byte_ids = load_i64(state + 8 * BYTE_IDS)
    while at < end:
        if _write_id(state, load32(byte_ids + 4 * load8(data + at))) == 0:
            store64(state + 8 * AT, at)
            return 0
        at += 1
    store64(state + 8 * AT, end)
    return 1


@njit
def _close_piece(state):
    """Write the special token after the piece, or note the document's end; 1, or 0 for no room."""
    follow = load_i64(state + 8 * FOLLOW)
    if follow >= 0:
        special = load32(load_i64(state + 8 * SPECIAL_IDS) + 4 * follow)
        if _write_id(state, special) == 0:
            return 0
        store64(state + 8 * AT, load_i64(state + 8 * RESUME))
    else:
        store64(state + 8 * AT, load_i64(state + 8 * END))
        ends = load_i64(state + 8 * ENDS_OUT)
        if ends != 0:
            document = load_i64(state + 8 * DOCUMENT) - 1
            store64(ends + 8 * document, load_i64(state + 8 * IDS_USED))
    store64(state + 8 * ACTIVE, _NO_PIECE)
    store64(state + 8 * FINISHED, 0)
    store64(state + 8 * COUNT, 0)
    store64(state + 8 * NEXT, 0)
    return 1


@njit
def advance(state):
    """Do all that can be done before the scanner's next turn: SCAN, DONE or a GROW code."""
    code = encode_words(state)
    if code != DONE:
        return code
    if load_i64(state + 8 * ACTIVE) == _SCANNING:
        if load_i64(state + 8 * FINISHED) == 0:  # the last entry starts the next batch
            count = load_i64(state + 8 * COUNT)
            entries = load_i64(state + 8 * OUT)
            store64(entries, load_i64(entries + 8 * count - 8))
            store64(state + 8 * COUNT, 1)
            store64(state + 8 * NEXT, 0)
            return SCAN
        if _close_piece(state) == 0:
            return GROW_IDS
    if load_i64(state + 8 * ACTIVE) == _NO_PIECE:
        if next_piece(state) == 0:
            return DONE if _raw_bytes(state, load_i64(state + 8 * STOP)) == 1 else GROW_IDS
        store64(state + 8 * ACTIVE, _PIECE_FOUND)
    if _raw_bytes(state, load_i64(state + 8 * POS)) == 0:
        return GROW_IDS
    store64(state + 8 * ACTIVE, _SCANNING)
    return SCAN


@njit
def begin_documents(state):
    """Make the state ready for the documents of STARTS, ENDS and DOCUMENTS, from AT to STOP; 0."""
    store64(state + 8 * DOCUMENT, 0)
    store64(state + 8 * RESUME, -1)
    store64(state + 8 * ACTIVE, _NO_PIECE)
    store64(state + 8 * FINISHED, 0)
    store64(state + 8 * COUNT, 0)
    store64(state + 8 * NEXT, 0)
    return 0


@njit
def begin_text(state, length):
    """Make the state ready for one document, the first `length` bytes at DATA, and no ids yet."""
    store64(load_i64(state + 8 * STARTS), 0)
    store64(state + 8 * DOCUMENTS, 1)
    store64(state + 8 * ENDS_OUT, 0)
    store64(state + 8 * IDS_USED, 0)
    store64(load_i64(state + 8 * ENDS), length)
    store64(state + 8 * STOP, length)
    store64(state + 8 * AT, 0)
    begin_documents(state)


@njit
def text_result(state, code):
    """What ``run_text`` returns when ``run`` has returned `code`."""
    return load_i64(state + 8 * IDS_USED) if code == DONE else -code
