"""Merges from ranks: which pair of earlier tokens each token of a rank file is made of.

A `.tiktoken` file holds tokens in rank order and no merges. Encoding the bytes of token t with the
tokens of lower rank must end in exactly two tokens, and those are its merge. Rather than encode,
each split of t into two earlier tokens is tried: it is the answer exactly when no token of lower
rank than t would be formed across the split while the two halves are taken apart again, last
merge first (the validity test of rust-gems/bpe). At most one split passes.

Tokens are looked up by their bytes in an open-addressing table. Memory: 8 bytes per slot, at most
four slots per token. Time: a few look-ups per byte of the vocabulary.
"""

import numpy as np
from numba import njit

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(29)


@njit(cache=True, nogil=True)
def _hash(data, start, end):
    value = _SEED
    for at in range(start, end):
        value = (value ^ np.uint64(data[at])) * _MULTIPLIER
        value ^= value >> _SHIFT
    return value


@njit(cache=True, nogil=True)
def _find(data, offsets, slots, start, end):
    """Rank of the token ``data[start:end]``, or -1."""
    mask = np.int64(len(slots) - 1)
    length = end - start
    slot = np.int64(_hash(data, start, end) & np.uint64(mask))
    while slots[slot] >= 0:
        rank = slots[slot]
        begin = offsets[rank]
        if offsets[rank + 1] - begin == length:
            same = True
            for at in range(length):
                if data[begin + at] != data[start + at]:
                    same = False
                    break
            if same:
                return rank
        slot = (slot + 1) & mask
    return np.int64(-1)


@njit(cache=True, nogil=True)
def _holds(data, offsets, slots, left, right, cut, first, second, limit):
    """Whether no token below `limit` forms across `cut` between `first` and `second`."""
    while True:
        start = cut - (offsets[first + 1] - offsets[first])
        end = cut + (offsets[second + 1] - offsets[second])
        formed = _find(data, offsets, slots, start, end)
        if 0 <= formed < limit:
            return False
        # Take back the later of the two merges; single bytes have none. A pair that forms then was
        # passed over only if what was taken back has a lower rank, or the same one further left.
        merged_first, merged_second = left[first] >= 0, left[second] >= 0
        if merged_first and (first > second or not merged_second):
            limit = first
            first = right[first]
        elif merged_second:
            limit = second + 1
            second = left[second]
        else:
            return True


@njit(cache=True, nogil=True)
def recover(data, offsets, left, right):
    """Fill `left` and `right` (int64 per token, ranks; -1 for one byte).

    Args:
        data: uint8, the tokens' bytes one after another in rank order.
        offsets: int64 (tokens + 1,).

    Returns:
        -1, or the first token that is not a merge of two earlier ones; -2 - t when token t is the
        same bytes as an earlier one.
    """
    count = len(offsets) - 1
    size = 4
    while size < 2 * count:
        size *= 2
    slots = np.full(size, -1, np.int64)
    mask = np.int64(size - 1)
    for token in range(count):
        start, end = offsets[token], offsets[token + 1]
        if _find(data, offsets, slots, start, end) >= 0:
            return np.int64(-2 - token)
        slot = np.int64(_hash(data, start, end) & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = token
    left[:] = -1
    right[:] = -1
    for token in range(count):
        start, end = offsets[token], offsets[token + 1]
        if end - start < 2:
            continue
        for cut in range(start + 1, end):
            first = _find(data, offsets, slots, start, cut)
            if first < 0 or (first >= token and cut > start + 1):
                continue
            second = _find(data, offsets, slots, cut, end)
            if second < 0 or (second >= token and end > cut + 1):
                continue
            if _holds(data, offsets, slots, left, right, cut, first, second, token):
                left[token] = first
                right[token] = second
                break
        if left[token] < 0:
            return np.int64(token)
    return np.int64(-1)
