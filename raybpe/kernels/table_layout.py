"""The words and constants of the hash table that `table` describes; no code that is compiled."""

import numpy as np
import numpy.typing as npt

# Words that describe a table.
SLOTS = 0  # address of the slots
SHIFT = 1  # 64 - log2(number of pairs of slots)
LAST = 2  # byte offset of the last slot
USED = 3  # slots in use
LIMIT = 4  # slots in use at which the table must grow
ARENA = 5  # address of the arena
ARENA_USED = 6
ARENA_SIZE = 7
RECORDS = 8  # address of scratch space, RECORD_BYTES
NEEDED = 9  # with GROW_ARENA: bytes that must be free
MASKS = 16  # four words for each length up to SHORT: key masks and the length's mark
TABLE_WORDS = MASKS + 4 * 16

DONE, GROW_SLOTS, GROW_ARENA, OVERFLOW = 0, 1, 2, 3

SHORT = 15
SLICE = 128  # pretokens whose slots are prefetched together
RECORD_BYTES = 32 * (SLICE + 1)
SLOT_BYTES = 32
LARGEST = (1 << 63) - 1


def key_masks() -> npt.NDArray[np.int64]:
    """The words at MASKS: for each length, masks of the two key words and the mark."""
    words = np.zeros((SHORT + 1, 4), np.uint64)
    for length in range(SHORT + 1):
        words[length, 0] = (1 << 8 * min(length, 8)) - 1
        words[length, 1] = (1 << 8 * max(length - 8, 0)) - 1
        words[length, 2] = (length | 0x40) << 56
    return words.view(np.int64).ravel()
