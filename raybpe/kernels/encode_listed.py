"""The encode driver with the pretokens listed by the caller."""

from raybpe.kernels.encode import SCAN, advance, begin, result
from raybpe.kernels.encode_state import FINISHED
from raybpe.kernels.intrinsics import store64
from raybpe.kernels.jit import njit
from raybpe.kernels.scan_listed import scan


@njit
def run(state, request):
    """See `encode`."""
    if begin(state, request) == 0:
        return 0
    while True:
        code = advance(state)
        if code != SCAN:
            return result(state, code)
        store64(state + 8 * FINISHED, scan(state))
