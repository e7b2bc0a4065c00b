"""Cutting the documents of a block into pieces, at special tokens."""

from numba import njit

from raybpe.kernels.intrinsics import load_i64, store64
from raybpe.kernels.scan_state import (
    CARRY,
    DATA,
    DOCUMENT,
    DOCUMENTS,
    END,
    ENDS,
    FOLLOW,
    POS,
    RESUME,
    SPECIALS,
    STARTS,
    WORDS,
)
from raybpe.kernels.specials import next_special


@njit
def next_piece(state):
    """Set the scanner up for the next piece, which may be empty; 0 if there is none, else 1.

    Before the first call DOCUMENT is 0 and RESUME is -1.
    """
    at = load_i64(state + 8 * RESUME)
    document = load_i64(state + 8 * DOCUMENT)
    if at < 0:
        if document >= load_i64(state + 8 * DOCUMENTS):
            return 0
        at = load_i64(load_i64(state + 8 * STARTS) + 8 * document)
        document += 1
        store64(state + 8 * DOCUMENT, document)
    end = load_i64(load_i64(state + 8 * ENDS) + 8 * (document - 1))
    specials = load_i64(state + 8 * SPECIALS)
    where, index, length = next_special(specials, load_i64(state + 8 * DATA), at, end)
    for word in range(CARRY, WORDS):
        store64(state + 8 * word, 0)
    store64(state + 8 * POS, at)
    store64(state + 8 * END, where)
    store64(state + 8 * FOLLOW, index)
    store64(state + 8 * RESUME, where + length if index >= 0 else -1)
    return 1
