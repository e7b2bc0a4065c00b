"""The encode driver with the automaton scanner.

A gap, a stretch that the pattern does not match, is one pretoken. The scanner gives an entry for
each of its code points, so entries of the same gap are taken out.
"""

import numpy as np

from raybpe.kernels.encode import SCAN, advance, begin, result
from raybpe.kernels.encode_state import FINISHED
from raybpe.kernels.intrinsics import ZERO, load64, load_i64, store64
from raybpe.kernels.jit import njit
from raybpe.kernels.scan_automaton import scan
from raybpe.kernels.scan_state import COUNT, GAP, OUT

_GAP = np.uint64(GAP)


@njit
def _join_gaps(state, finished):
    """Take out entries that go on with the gap before them; the end of the piece stays."""
    entries = load_i64(state + 8 * OUT)
    count = load_i64(state + 8 * COUNT)
    last = count - finished
    both = ZERO
    for index in range(1, last):
        both |= load64(entries + 8 * index) & load64(entries + 8 * index - 8)
    if both & _GAP == ZERO:
        return
    kept = 1
    gap = load64(entries) & _GAP
    for index in range(1, count):
        entry = load64(entries + 8 * index)
        if index == last or entry & gap == ZERO:
            store64(entries + 8 * kept, entry)
            kept += 1
        gap = entry & _GAP
    store64(state + 8 * COUNT, kept)


@njit
def run(state, request):
    """See `encode`."""
    if begin(state, request) == 0:
        return 0
    while True:
        code = advance(state)
        if code != SCAN:
            return result(state, code)
        finished = scan(state)
        store64(state + 8 * FINISHED, finished)
        _join_gaps(state, finished)
