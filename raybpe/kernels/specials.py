"""Finding special tokens in text: leftmost, and the longest of those that start there.

The compiled form is one int64 array, made by `compile_specials`: a header, a bitmap of the two-byte
beginnings, a record per token (longest first), and the tokens' bytes. With up to four different
beginnings the search compares 64 places at a time; with more it looks every place up in the bitmap.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

from raybpe.kernels.intrinsics import ONE, ZERO, as_u64, ctz, equal64, load8, load16, load_i64

# Words of the compiled form.
_TOKENS = 0  # how many
_BEGINNINGS = 1  # how many two-byte beginnings, if at most _MOST; else 0
_FIRST = 2  # their first bytes
_SECOND = 6  # their second bytes; -1: any, for a token of one byte
_BITMAP = 16  # bit (first | second << 8) of 65,536
_RECORDS = _BITMAP + 1024  # per token: byte offset in this array, length, index
_RECORD = 3
_MOST = 4


def compile_specials(tokens: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The compiled form of distinct, non-empty special tokens, in id order; none is fine too."""
    order = sorted(range(len(tokens)), key=lambda index: -len(tokens[index]))
    first_byte = 8 * (_RECORDS + _RECORD * len(tokens))
    text = b"".join(tokens[index] for index in order)
    words = np.zeros(first_byte // 8 + (len(text) + 7) // 8, np.int64)
    words.view(np.uint8)[first_byte : first_byte + len(text)] = np.frombuffer(text, np.uint8)
    for place, index in enumerate(order):
        at = _RECORDS + _RECORD * place
        words[at : at + _RECORD] = first_byte, len(tokens[index]), index
        first_byte += len(tokens[index])

    beginnings = sorted({(token[0], token[1] if len(token) > 1 else -1) for token in tokens})
    bits = words[_BITMAP:_RECORDS].view(np.uint64)
    for first, second in beginnings:
        for pair in (first | other << 8 for other in (range(256) if second < 0 else (second,))):
            bits[pair >> 6] |= np.uint64(1 << (pair & 63))
    words[_TOKENS] = len(tokens)
    if len(beginnings) <= _MOST:
        words[_BEGINNINGS] = len(beginnings)
        for place, (first, second) in enumerate(beginnings):
            words[_FIRST + place], words[_SECOND + place] = first, second
    return words


@njit(cache=True)
def _longest_here(specials, where, room):
    """(index, length) of the longest special token at an address, or (-1, 0)."""
    for place in range(load_i64(specials + 8 * _TOKENS)):
        record = specials + 8 * (_RECORDS + _RECORD * place)
        length = load_i64(record + 8)
        token = specials + load_i64(record)
        if length <= room:
            same = 0
            while same < length and load8(where + same) == load8(token + same):
                same += 1
            if same == length:
                return load_i64(record + 16), length
    return -1, 0


@njit(cache=True)
def next_special(specials, data, at, end):
    """The first special token in data[at:end]: (offset, index, length).

    (end, -1, 0) if there is none. Reads up to 128 bytes past `end`.
    """
    if load_i64(specials + 8 * _TOKENS) == 0:
        return end, -1, 0
    beginnings = load_i64(specials + 8 * _BEGINNINGS)
    bitmap = specials + 8 * _BITMAP
    while at < end:
        candidates = ZERO
        for place in range(beginnings):
            here = equal64(data + at, load_i64(specials + 8 * (_FIRST + place)))
            second = load_i64(specials + 8 * (_SECOND + place))
            if second >= 0:
                here &= equal64(data + at + 1, second)
            candidates |= here
        if beginnings == 0:
            for step in range(64):
                pair = load16(data + at + step)
                bit = (load8(bitmap + (pair >> 3)) >> (pair & 7)) & 1
                candidates |= as_u64(bit) << as_u64(step)
        while candidates != ZERO:
            where = at + ctz(candidates)
            if where >= end:
                break
            index, length = _longest_here(specials, data + where, end - where)
            if index >= 0:
                return where, index, length
            candidates &= candidates - ONE
        at += 64
    return end, -1, 0
