"""The part of encoding that all drivers share: documents in, ids out.

Layouts and words in `encode_state` and `scan_state`. There is a driver per scanner, with one
function, for each one that Python calls is compiled with all that it calls. ``run(state, request)``
encodes the documents of STARTS, ENDS and DOCUMENTS (BEGIN), or the first `request` bytes at DATA as
one document, until all are done or something must grow. It returns the number of ids written, or
minus a GROW code: grow that and call again with GO_ON.

The same function fills the tables that encoding reads, which takes another state block, and
returns 0: FILL_PAIRS (`fill_pairs`) and FILL_TOKENS (`encode_cache.fill`).

Bytes outside the documents, from AT up to STOP, become one id each if BETWEEN says so: they are not
UTF-8.
"""

from raybpe.kernels.encode_cache import fill, move
from raybpe.kernels.encode_pairs import fill_pairs
from raybpe.kernels.encode_state import (
    AT,
    BEGIN,
    BETWEEN,
    BYTE_IDS,
    DONE,
    ENDS_OUT,
    FILL_PAIRS,
    FILL_TOKENS,
    FINISHED,
    GROW_IDS,
    IDS,
    IDS_SIZE,
    IDS_USED,
    NEED,
    NEXT,
    OLD_SLOTS,
    SPECIAL_IDS,
    STOP,
    WAITING_COUNT,
    WAITING_SIZE,
    WIDTH,
)
from raybpe.kernels.encode_waiting import settle
from raybpe.kernels.encode_words import encode_words
from raybpe.kernels.intrinsics import load8, load32, load_i64, store16, store32, store64
from raybpe.kernels.jit import njit
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
    waiting = load_i64(state + 8 * WAITING_SIZE)
    if used + waiting >= load_i64(state + 8 * IDS_SIZE):
        store64(state + 8 * NEED, waiting + 1)
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
            settle(state)
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
            settle(state)
            return DONE if _raw_bytes(state, load_i64(state + 8 * STOP)) == 1 else GROW_IDS
        store64(state + 8 * ACTIVE, _PIECE_FOUND)
    if _raw_bytes(state, load_i64(state + 8 * POS)) == 0:
        return GROW_IDS
    store64(state + 8 * ACTIVE, _SCANNING)
    return SCAN


@njit
def begin(state, request):
    """What `request` asks for before or instead of encoding; 1 to encode, 0 if all is done."""
    if request >= 0:
        store64(load_i64(state + 8 * STARTS), 0)
        store64(load_i64(state + 8 * ENDS), request)
        store64(state + 8 * DOCUMENTS, 1)
        store64(state + 8 * ENDS_OUT, 0)
        store64(state + 8 * IDS_USED, 0)
        store64(state + 8 * AT, 0)
        store64(state + 8 * STOP, request)
    if request >= 0 or request == BEGIN:
        store64(state + 8 * DOCUMENT, 0)
        store64(state + 8 * RESUME, -1)
        store64(state + 8 * ACTIVE, _NO_PIECE)
        store64(state + 8 * FINISHED, 0)
        store64(state + 8 * COUNT, 0)
        store64(state + 8 * NEXT, 0)
        store64(state + 8 * WAITING_COUNT, 0)
        store64(state + 8 * WAITING_SIZE, 0)
    elif request == FILL_PAIRS:
        fill_pairs(state)
        return 0
    elif request == FILL_TOKENS:
        fill(state)
        return 0
    elif load_i64(state + 8 * OLD_SLOTS) != 0:
        move(state)
    return 1


@njit
def result(state, code):
    """What ``run`` returns for a code of `advance`."""
    return load_i64(state + 8 * IDS_USED) if code == DONE else -code
