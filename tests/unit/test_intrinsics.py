"""Machine operations against plain Python."""

import numpy as np
import pytest
from numba import njit

from raybpe.kernels import intrinsics as machine
from raybpe.kernels.entry import address

TEXT = bytes(range(256)) + b"don't 42 \xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80 \t\n" + bytes(128)


@njit
def _masks(where):
    return machine.classify64(where)


@njit
def _limits(where, a, b, c):
    return machine.at_least64(where, a, b, c)


@njit
def _equal(where, byte):
    return machine.equal64(where, byte), machine.high64(where)


@njit
def _within(where, ranges):
    return machine.within64(where, ranges)


@njit
def _bits(a, b):
    return machine.ctz(a), machine.clz(a), machine.popcount(a), machine.mum(a, b)


@njit
def _loads(where):
    return (
        machine.load8(where),
        machine.load16(where),
        machine.load32(where),
        machine.load64(where),
        machine.load_i64(where),
    )


@njit
def _stores(where, value):
    machine.store8(where, value)
    machine.store16(where + 2, value)
    machine.store32(where + 5, value)
    machine.store64(where + 11, value)
    machine.prefetch(where)


def mask(text: bytes, accept) -> int:
    return sum(1 << i for i, byte in enumerate(text[:64]) if accept(byte))


@pytest.mark.parametrize("start", range(0, 256, 5))
def test_classes_of_64_bytes_at_any_alignment(start):
    data = np.frombuffer(TEXT, np.uint8)
    text = TEXT[start:]
    assert _masks(address(data) + start) == (
        mask(text, lambda b: bytes([b]).isalpha()),
        mask(text, lambda b: 48 <= b <= 57),
        mask(text, lambda b: b == 32),
        mask(text, lambda b: b in b" \t\n\v\f\r"),
        mask(text, lambda b: b == 39),
        mask(text, lambda b: b >= 128),
    )


@pytest.mark.parametrize("start", [0, 1, 100, 190, 192, 255])
def test_comparisons_of_64_bytes(start):
    data = np.frombuffer(TEXT, np.uint8)
    where, text = address(data) + start, TEXT[start:]
    limits = (0x80, 0xC2, 0xF5)
    assert _limits(where, *limits) == tuple(mask(text, lambda b, n=n: b >= n) for n in limits)
    assert _equal(where, 0xE4) == (
        mask(text, lambda b: b == 0xE4),
        mask(text, lambda b: b >= 128),
    )
    pairs = [(0xC4, 7), (0x20, 0), (0, 1), (0xFF, 1)]
    packed = np.uint64(sum((f | n << 8) << 16 * i for i, (f, n) in enumerate(pairs)))
    assert _within(where, packed) == mask(
        text, lambda b: any(first <= b < first + count for first, count in pairs)
    )


@pytest.mark.parametrize("a", [0, 1, 2**63, 2**64 - 1, 0x00F0_0000_0000_1000])
def test_bit_counts_and_folded_product(a):
    b = 0x9E37_79B9_7F4A_7C15
    product = a * b
    assert _bits(np.uint64(a), np.uint64(b)) == (
        (a & -a).bit_length() - 1 if a else 64,
        64 - a.bit_length(),
        bin(a).count("1"),
        (product & (2**64 - 1)) ^ (product >> 64),
    )


@pytest.mark.parametrize("start", [0, 1, 3, 7, 127, 250])
def test_loads_are_little_endian_and_zero_extended(start):
    data = np.frombuffer(TEXT, np.uint8)
    expected = [int.from_bytes(TEXT[start : start + n], "little") for n in (1, 2, 4, 8)]
    signed = int.from_bytes(TEXT[start : start + 8], "little", signed=True)
    assert _loads(address(data) + start) == (*expected, signed)


@pytest.mark.parametrize("value", [0, 1, -1, 0x0123_4567_89AB_CDEF, np.uint64(2**64 - 2)])
def test_stores_touch_only_their_bytes(value):
    target = np.full(24, 0xAA, np.uint8)
    _stores(address(target), value)
    number = int(value) % 2**64
    expected = bytearray(b"\xaa" * 24)
    for at, size in ((0, 1), (2, 2), (5, 4), (11, 8)):
        expected[at : at + size] = (number % 256**size).to_bytes(size, "little")
    assert target.tobytes() == bytes(expected)
