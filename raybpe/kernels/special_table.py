"""Special tokens as one int64 array; `specials` says what for."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

TOKENS = 0  # how many
BEGINNINGS = 1  # how many two-byte beginnings, if at most MOST; else 0
FIRST = 2  # their first bytes
SECOND = 6  # their second bytes; -1: any, for a token of one byte
BITMAP = 16  # bit (first | second << 8) of 65,536
RECORDS = BITMAP + 1024  # per token: byte offset in this array, length, index
RECORD = 3
MOST = 4


def compile_specials(tokens: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The compiled form of distinct, non-empty special tokens, in id order; none is fine too."""
    order = sorted(range(len(tokens)), key=lambda index: -len(tokens[index]))
    first_byte = 8 * (RECORDS + RECORD * len(tokens))
    text = b"".join(tokens[index] for index in order)
    words = np.zeros(first_byte // 8 + (len(text) + 7) // 8, np.int64)
    words.view(np.uint8)[first_byte : first_byte + len(text)] = np.frombuffer(text, np.uint8)
    for place, index in enumerate(order):
        at = RECORDS + RECORD * place
        words[at : at + RECORD] = first_byte, len(tokens[index]), index
        first_byte += len(tokens[index])

    beginnings = sorted({(token[0], token[1] if len(token) > 1 else -1) for token in tokens})
    bits = words[BITMAP:RECORDS].view(np.uint64)
    for first, second in beginnings:
        for pair in (first | other << 8 for other in (range(256) if second < 0 else (second,))):
            bits[pair >> 6] |= np.uint64(1 << (pair & 63))
    words[TOKENS] = len(tokens)
    if len(beginnings) <= MOST:
        words[BEGINNINGS] = len(beginnings)
        for place, (first, second) in enumerate(beginnings):
            words[FIRST + place], words[SECOND + place] = first, second
    return words
