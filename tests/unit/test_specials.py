"""Finding special tokens, against `regex` with the longest alternative first."""

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from raybpe.kernels.entry import address
from raybpe.kernels.special_table import compile_specials
from raybpe.kernels.specials import next_special


@njit
def _next(specials, data, at, end):
    return next_special(specials, data, at, end)


def found(tokens: list[bytes], text: bytes, after: bytes = b"") -> list[tuple[int, int]]:
    """(offset, index) of all special tokens; `after` lies past the end and must not matter."""
    specials = compile_specials(tokens)
    data = np.frombuffer(text + after[:128].ljust(128, b"<"), np.uint8)
    result = []
    at = 0
    while True:
        at, index, length = _next(address(specials), address(data), at, len(text))
        if index < 0:
            assert (at, index, length) == (len(text), -1, 0)
            return result
        assert length == len(tokens[index])
        result.append((at, index))
        at += length


def expected(tokens: list[bytes], text: bytes) -> list[tuple[int, int]]:
    if not tokens:
        return []
    longest_first = sorted(tokens, key=len, reverse=True)
    pattern = regex.compile(b"|".join(map(regex.escape, longest_first)))
    return [(match.start(), tokens.index(match.group())) for match in pattern.finditer(text)]


END = b"<|endoftext|>"
CASES = {
    "none": [],
    "one": [END],
    "one byte": [b"|"],
    "two bytes": [b"<|"],
    "prefixes of each other": [b"<|end|>", b"<|end|><|end|>", b"<|end"],
    "inside another": [b"end", END],
    "overlapping": [b"aba", b"bab"],
    "one byte among longer": [b"a", b"ab", b"abc"],
    "five beginnings": [b"ab", b"bc", b"cd", b"de", b"ef", b"abcdef"],
    "many": [f"<|tok{i}|>".encode() for i in range(300)] + [b"x", b"<|tok"],
    "letters": [bytes([c]) for c in b"abcdefgh"],
    "multi-byte": ["é".encode(), "中文".encode(), "中".encode()],
}


@pytest.mark.parametrize("case", CASES)
def test_against_regex_at_every_offset(case):
    tokens = CASES[case]
    bait = b"<|end<|endof<|tok1<|tok12|>abababcdefabc<|end|><|end|>" + "é中文中".encode()
    for pad in (*range(8), *range(50, 70), 127, 128):
        for token in tokens[:6] or [b""]:
            for text in (b"z" * pad + token, b"z" * pad + token + bait + token, bait * 3 + token):
                assert found(tokens, text) == expected(tokens, text), text


def test_a_token_that_goes_on_past_the_end_is_none():
    for cut in range(len(END)):
        assert found([END], b"text" + END[:cut], END[cut:]) == []


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 200])
def test_nothing_to_find(length):
    assert found([END], b"<" * length) == []


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.text("ab<|>", min_size=1, max_size=5).map(str.encode), max_size=9, unique=True),
    st.lists(st.sampled_from(["a", "b", "<", "|", ">", "<|a|>", "z" * 20]), max_size=80),
)
def test_random_tokens_and_text(tokens, units):
    text = "".join(units).encode()
    assert found(tokens, text) == expected(tokens, text)
