"""Merges from ranks: which pair of earlier tokens each token of a rank file is made of.

A `.tiktoken` file holds tokens in rank order and no merges. Encoding the bytes of token t with the
tokens of lower rank must end in exactly two tokens, and those are its merge. Rather than encode,
each split of t into two earlier tokens is tried: it is the answer exactly when no token of lower
rank than t would be formed across the split while the two halves are taken apart again, last
merge first (the validity test of rust-gems/bpe). At most one split passes.

Tokens are looked up by their bytes in an open-addressing table. Memory: 8 bytes per slot, at most
four slots per token. Time: a few look-ups per byte of the vocabulary; the hash of a first half
grows by a byte per split, so that a token of 100,000 bytes takes no time to speak of.
"""

import numpy as np
from numba import njit

from raybpe.kernels.intrinsics import load8, load_i64, store64

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(29)


@njit
def _add(value, byte):
    """Hash of some bytes and one more."""
    value = (value ^ np.uint64(byte)) * _MULTIPLIER
    return value ^ value >> _SHIFT


@njit
def _hash(data, start, end):
    value = _SEED
    for at in range(start, end):
        value = _add(value, load8(data + at))
    return value


@njit
def _find(data, offsets, slots, mask, start, end):
    """Rank of the token ``data[start:end]``, or -1."""
    return _find_hashed(data, offsets, slots, mask, start, end, _hash(data, start, end))


@njit
def _find_hashed(data, offsets, slots, mask, start, end, value):
    length = end - start
    slot = np.int64(value & np.uint64(mask))
    while True:
        rank = load_i64(slots + 8 * slot)
        if rank < 0:
            return -1
        begin = load_i64(offsets + 8 * rank)
        if load_i64(offsets + 8 * rank + 8) - begin == length:
            same = True
            for at in range(length):
                if load8(data + begin + at) != load8(data + start + at):
                    same = False
                    break
            if same:
                return rank
        slot = (slot + 1) & mask


@njit
def _holds(data, offsets, slots, mask, left, right, cut, first, second, limit):
    """Whether no token below `limit` forms across `cut` between `first` and `second`."""
    while True:
        start = cut - (load_i64(offsets + 8 * first + 8) - load_i64(offsets + 8 * first))
        end = cut + (load_i64(offsets + 8 * second + 8) - load_i64(offsets + 8 * second))
        formed = _find(data, offsets, slots, mask, start, end)
        if 0 <= formed < limit:
            return False
        # Take back the later of the two merges; single bytes have none. A pair that forms then was
        # passed over only if what was taken back has a lower rank, or the same one further left.
        merged_first = load_i64(left + 8 * first) >= 0
        merged_second = load_i64(left + 8 * second) >= 0
        if merged_first and (first > second or not merged_second):
            limit = first
            first = load_i64(right + 8 * first)
        elif merged_second:
            limit = second + 1
            second = load_i64(left + 8 * second)
        else:
            return True


@njit
def recover(data, offsets, tokens, slots, mask, left, right):
    """Fill `left` and `right` (int64 per token, ranks), which hold -1, the answer for one byte.

    Args:
        data: address of uint8, the tokens' bytes one after another in rank order.
        offsets: address of int64 (tokens + 1,).
        tokens: how many.
        slots: address of int64 (mask + 1,), all -1; a power of two, at least twice `tokens`.
        mask: slots - 1.
        left, right: addresses of int64 (tokens,).

    Returns:
        -1, or the first token that is not a merge of two earlier ones; -2 - t when token t is the
        same bytes as an earlier one.
    """
    for token in range(tokens):
        start, end = load_i64(offsets + 8 * token), load_i64(offsets + 8 * token + 8)
        if _find(data, offsets, slots, mask, start, end) >= 0:
            return -2 - token
        slot = np.int64(_hash(data, start, end) & np.uint64(mask))
        while load_i64(slots + 8 * slot) >= 0:
            slot = (slot + 1) & mask
        store64(slots + 8 * slot, token)
    for token in range(tokens):
        start, end = load_i64(offsets + 8 * token), load_i64(offsets + 8 * token + 8)
        if end - start < 2:
            continue
        value = _SEED
        for cut in range(start + 1, end):
            value = _add(value, load8(data + cut - 1))
            first = _find_hashed(data, offsets, slots, mask, start, cut, value)
            if first < 0 or (first >= token and cut > start + 1):
                continue
            second = _find(data, offsets, slots, mask, cut, end)
            if second < 0 or (second >= token and end > cut + 1):
                continue
            if _holds(data, offsets, slots, mask, left, right, cut, first, second, token):
                store64(left + 8 * token, first)
                store64(right + 8 * token, second)
                break
        if load_i64(left + 8 * token) < 0:
            return token
    return -1
