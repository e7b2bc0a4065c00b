"""Scanner over pretokens that the caller has found: one piece, no special tokens.

TABLES is the address of int64 [entries given out so far, entries in all, entry, entry, …].
"""

from numba import njit

from raybpe.kernels.intrinsics import load_i64, store64
from raybpe.kernels.scan_state import BATCH, COUNT, OUT, TABLES


@njit
def scan(state):
    """See `scan_state`."""
    listed = load_i64(state + 8 * TABLES)
    given = load_i64(listed)
    total = load_i64(listed + 8)
    entries = load_i64(state + 8 * OUT)
    count = load_i64(state + 8 * COUNT)
    while count < BATCH and given < total:
        store64(entries + 8 * count, load_i64(listed + 16 + 8 * given))
        count += 1
        given += 1
    store64(listed, given)
    store64(state + 8 * COUNT, count)
    return 1 if given == total else 0
