"""The driver that counts with the automaton scanner."""

from numba import njit

from raybpe.kernels.count import advance
from raybpe.kernels.count_state import SCAN
from raybpe.kernels.intrinsics import store64
from raybpe.kernels.scan_automaton import scan
from raybpe.kernels.scan_state import ACTIVE


@njit
def count_automaton(state):
    """Count the block that a state describes; returns a code of `table`, DONE at the end."""
    while True:
        code = advance(state)
        if code != SCAN:
            return code
        store64(state + 8 * ACTIVE, 1 - scan(state))
