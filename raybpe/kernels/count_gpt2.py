"""The driver that counts with the GPT-2 scanner."""

from numba import njit

from raybpe.kernels.count import advance
from raybpe.kernels.count_state import SCAN
from raybpe.kernels.intrinsics import store64
from raybpe.kernels.scan_gpt2 import scan
from raybpe.kernels.scan_state import ACTIVE


@njit
def count_gpt2(state):
    """Count the block that a state describes; returns a code of `table`, DONE at the end."""
    while True:
        code = advance(state)
        if code != SCAN:
            return code
        store64(state + 8 * ACTIVE, 1 - scan(state))
