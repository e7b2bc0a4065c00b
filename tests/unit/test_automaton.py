"""The automaton scanner against the plain automaton in Python, on small and hostile pieces."""

import random
from itertools import pairwise

import numpy as np
import pytest
import regex
from test_compile import by_automaton

from raybpe.block import PADDING_BYTES
from raybpe.kernels import scan_state
from raybpe.kernels.entry import address
from raybpe.kernels.scan_automaton import scan
from raybpe.pretokenize import PATTERNS
from raybpe.pretokenize.compile import compile_pattern
from raybpe.pretokenize.tables import pack

GAP = int(scan_state.GAP)
AWKWARD = {
    "many gaps": r"\w+|!\d",
    "ends far back": r"a(?:b{5}c)?|b|\s+x",
    "gap in the middle": r"ab+c|b{2}",
    "needs the end": r"a+(?![\s\S])|b+(?=c)",
    "lazy": r"\w{2,4}?|\s",
    "possessive": r"[ab]?+a|\s++",
    "marks": r"\p{L}\p{M}*|[^\p{L}]+?(?=\p{L})",
    "back over a letter": r"\w*\p{L}",
    "two back": r"(?:é1!)?é|1",
}
ALPHABET = "aabbbcé1! \nx\u0301東😀\U0010ffff\u07ff\u0800\uffff"


def entries_of(text: bytes, tables: np.ndarray, offset: int = 0) -> list[int]:
    """All entries that the scanner gives for one piece, `offset` bytes into the data."""
    data = np.full(offset + len(text) + PADDING_BYTES, ord("a"), np.uint8)
    data[offset : offset + len(text)] = np.frombuffer(text, np.uint8)
    output = np.zeros(scan_state.CAPACITY + 1, np.uint64)
    output[-1] = 12345
    state = np.zeros(scan_state.WORDS, np.int64)
    state[scan_state.DATA] = address(data)
    state[scan_state.POS] = offset
    state[scan_state.END] = offset + len(text)
    state[scan_state.OUT] = address(output)
    state[scan_state.TABLES] = address(tables)
    found: list[int] = []
    while True:
        finished = scan(address(state))
        count = int(state[scan_state.COUNT])
        assert count <= scan_state.CAPACITY
        assert output[-1] == 12345
        found += output[:count].tolist()
        state[scan_state.COUNT] = 0
        if finished:
            return found
        assert count >= scan_state.BATCH


def pieces(text: str, tables: np.ndarray, offset: int = 0) -> list[str]:
    data = text.encode()
    entries = entries_of(data, tables, offset)
    assert entries[-1] == offset + len(data) | GAP
    places = [entry & ~GAP for entry in entries]
    assert places[0] == offset
    assert places == sorted(set(places))
    return [
        data[here - offset : (following & ~GAP) - offset].decode()
        for here, following in pairwise(entries)
        if not here & GAP
    ]


@pytest.mark.parametrize("pattern", [*AWKWARD.values(), *PATTERNS.values()])
def test_scanner_equals_plain_automaton(pattern: str) -> None:
    automaton = compile_pattern(pattern)
    tables = pack(automaton)
    rng = random.Random(pattern)
    for number in range(800):
        text = "".join(rng.choices(ALPHABET, k=rng.randint(0, 10)))
        expected = by_automaton(automaton, text)
        assert pieces(text, tables, offset=number % 70) == expected
        assert expected == [m.group() for m in regex.finditer(pattern, text)]


@pytest.mark.parametrize("pattern", [*AWKWARD.values(), PATTERNS["gpt2"], PATTERNS["o200k"]])
def test_pieces_longer_than_blocks_and_batches(pattern: str) -> None:
    tables = pack(compile_pattern(pattern))
    rng = random.Random(pattern)
    for size in (62, 63, 64, 65, 128, 3000):
        for letters in (ALPHABET, "ab", "é ", "a", " ", "!", "東", "a1! "):
            text = "".join(rng.choices(letters, k=size))
            assert pieces(text, tables) == [m.group() for m in regex.finditer(pattern, text)]


def test_every_start_fills_the_buffer_no_further_than_promised() -> None:
    tables = pack(compile_pattern(r"\S|\s"))
    assert pieces("ab" * 5000, tables) == list("ab" * 5000)
    assert entries_of(b"", tables) == [GAP]


def test_unmatched_text_is_marked() -> None:
    tables = pack(compile_pattern("a+"))
    assert entries_of(b"aa--a-", tables) == [0, 2 | GAP, 4, 5 | GAP, 6 | GAP]
    entries = entries_of(b"-" * 2000, tables)
    assert all(entry & GAP for entry in entries)


def test_invalid_text_keeps_to_its_piece() -> None:
    rng = random.Random(4)
    for pattern in (PATTERNS["cl100k"], AWKWARD["ends far back"], r"[\s\S]{3}"):
        tables = pack(compile_pattern(pattern))
        for _ in range(2000):
            text = bytes(rng.choices([*b"ab \n1", *range(0x80, 0x100)], k=rng.randint(1, 9)))
            entries = entries_of(text, tables)
            places = [entry & ~GAP for entry in entries]
            assert places == sorted(places)
            assert entries[-1] == len(text) | GAP


def test_a_long_pretoken_is_scanned_once() -> None:
    """No time that grows with the square of a pretoken's length: this would take minutes."""
    for name in ("cl100k", "o200k", "deepseek-v3"):
        tables = pack(compile_pattern(PATTERNS[name]))
        for text in ("a" * 10**6, " " * 10**6 + "x", "\n" + " " * 10**6 + "x", "!" * 10**6):
            assert "".join(pieces(text, tables)) == text
