"""The encode driver with the automaton scanner."""

from numba import njit

from raybpe.kernels.encode import SCAN, advance, begin_text, text_result
from raybpe.kernels.encode_state import FINISHED
from raybpe.kernels.intrinsics import store64
from raybpe.kernels.scan_automaton import scan


@njit
def run(state):
    """See `encode`."""
    while True:
        code = advance(state)
        if code != SCAN:
            return code
        store64(state + 8 * FINISHED, scan(state))


@njit
def run_text(state, length):
    """See `encode`."""
    begin_text(state, length)
    return text_result(state, run(state))
