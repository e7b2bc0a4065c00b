"""The GPT-2 scanner against the pattern itself, run by `regex`."""

import ctypes
import mmap

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe.kernels import scan_gpt2, scan_state
from raybpe.kernels.entry import address
from raybpe.pretokenize.gpt2_classes import gpt2_tables

PATTERN = regex.compile(
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
)
EVERY_CODE_POINT = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# Bytes before and after the text, which must not matter: leads, letters, spaces, an apostrophe.
JUNK = b"\xe4's \xc3A1\n\xf0" * 20
CANARY = np.uint64(0xDEAD_BEEF)


def scanned(text: bytes, start: int = 0, junk: bytes = JUNK) -> list[int]:
    """Offsets where pretokens start, and the end, as the scanner tells them batch by batch."""
    data = np.frombuffer(junk[:start] + text + junk[:128], np.uint8)
    return scan_at(address(data), start, start + len(text))


def scan_at(where: int, start: int, end: int) -> list[int]:
    tables = gpt2_tables()
    out = np.full(scan_state.CAPACITY + 8, CANARY, np.uint64)
    state = np.zeros(scan_state.STATE_WORDS, np.int64)
    state[scan_state.DATA] = where
    state[scan_state.POS] = start
    state[scan_state.END] = end
    state[scan_state.OUT] = address(out)
    state[scan_state.TABLES] = address(tables)
    found: list[int] = []
    finished = 0
    while not finished:
        finished = scan_gpt2.scan(address(state))
        count = int(state[scan_state.COUNT])
        assert (out[scan_state.CAPACITY :] == CANARY).all()
        if finished:
            assert out[count - 1] & scan_state.GAP
            out[count - 1] ^= scan_state.GAP
        else:
            assert count >= scan_state.BATCH
        kept = count if finished else count - 1  # as drivers do: the last span is not over
        found += out[:kept].astype(np.int64).tolist()
        out[0] = out[count - 1]
        state[scan_state.COUNT] = 1
    return [offset - start for offset in found]


def expected(text: bytes) -> list[int]:
    offsets = [0]
    for match in PATTERN.finditer(text.decode()):
        offsets.append(offsets[-1] + len(match.group().encode()))
    return offsets


def edge_code_points() -> list[str]:
    """The first and last two code points of every run of one class, and some of the others."""
    classes = gpt2_tables()[:0x110000].astype(np.int8)
    edges = np.flatnonzero(np.diff(classes))
    near = {int(edge) + step for edge in edges for step in (-1, 0, 1, 2)}
    return [c for c in EVERY_CODE_POINT if ord(c) in near or ord(c) % 997 == 0]


def test_every_code_point():
    text = "".join(f"{c}a{c} " for c in EVERY_CODE_POINT).encode()
    assert scanned(text) == expected(text)


@pytest.mark.parametrize(
    "context",
    ["{0}", " {0} ", "1{0}'", "'{0}s", "\n{0} x", "'s{0}'s", "{0}{0}", "x" * 61 + "{0}'ll"],
)
def test_code_points_at_the_edges_of_classes(context):
    text = "".join(context.format(c) for c in edge_code_points()).encode()
    assert scanned(text) == expected(text)


@pytest.mark.parametrize(
    "unit", ["a", " ", "'", "1", "é", "中", "\u3000", "😀", " x", "'s", "\n a"]
)
def test_every_length_and_alignment_around_the_block_edges(unit):
    for length in range(200):
        text = (unit * length).encode()
        for start in (0, 1, 63):
            assert scanned(text, start) == expected(text), (length, start)


@pytest.mark.parametrize(
    "word", ["'s", "'t", "'re", "'ve", "'ll", "'LL", "'r", "'lx", "'sé", "''s"]
)
@pytest.mark.parametrize("before", ["x", " ", "'", "\n", "é", "\u3000", "1", "x's", ""])
def test_contractions_over_block_edges(word, before):
    for position in (*range(6), *range(56, 70), *range(120, 134)):
        for after in ("", "x", " y", "'s", "'ll", "é", "\u2003z"):
            text = ("x" * position + before + word + after).encode()
            assert scanned(text) == expected(text), text


@pytest.mark.parametrize("space", [" ", "\n", "\x85", "\u1680", "\u2003", "\u2028", "\u3000"])
def test_runs_of_spaces_over_block_edges(space):
    for position in (0, *range(54, 68)):
        for count in range(1, 5):
            for after in ("", "x", " x", "\u2003x", "1", "'s"):
                text = ("é" * (position % 2) + "x" * position + space * count + after).encode()
                assert scanned(text) == expected(text), text


ALPHABET = [
    *"'stdmrlvea1! \n\t", "ll", "re", "'s", "'ll", "  ", "x" * 30, "é", "中", "я", "😀", "\u0301",
    "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\u1680", "²", "٣", "९", "𝟘", "𐐷", "ǅ", "Ⅷ",
]  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(ALPHABET), max_size=150), st.integers(0, 70))
def test_random_text_of_the_classes_that_matter(units, start):
    text = "".join(units).encode()
    assert scanned(text, start) == expected(text)


@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_random_code_points(text):
    assert scanned(text.encode()) == expected(text.encode())


def test_long_random_text_in_many_batches():
    rng = np.random.default_rng(5)
    text = "".join(np.array(ALPHABET)[rng.integers(0, len(ALPHABET), 100_000)]).encode()
    assert scanned(text, 17) == expected(text)


def test_real_text(sample_text):
    text = sample_text(300_000)
    assert scanned(text) == expected(text)


def test_small_corpora(shared):
    for path in sorted((shared / "corpora" / "small").iterdir()):
        text = path.read_bytes().decode("utf-8", "replace").encode()
        assert scanned(text, 3) == expected(text), path.name


def test_reads_at_most_128_bytes_past_the_end():
    """The page after the padding is protected: one byte too far ends the process."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 4 * page)
    view = np.frombuffer(memory, np.uint8)
    where = address(view)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(where + 3 * page), page, 0) == 0
    end = 3 * page - 128
    try:
        for text in (b"a" * 200, "中文'll 😀\u3000".encode() * 9, b"x's" * 50, b" "):
            view[end - len(text) : end] = np.frombuffer(text, np.uint8)
            for start in range(max(0, len(text) - 130), len(text)):
                if text[start] & 0xC0 != 0x80:
                    found = scan_at(where, end - len(text) + start, end)
                    assert found == expected(text[start:])
    finally:
        libc.mprotect(ctypes.c_void_p(where + 3 * page), page, 3)


def test_invalid_text_is_cut_somehow_and_read_safely():
    rng = np.random.default_rng(3)
    for size in (0, 1, 63, 64, 65, 5_000):
        found = scanned(
            bytes(rng.choice(np.array([32, 0x80, 0xC2, 0xE3, 0xF7, 0xFF], np.uint8), size)), 5
        )
        assert found[-1] == size
        assert size == 0 or found[0] == 0
        assert sorted(set(found)) == found


def test_tables_follow_regex():
    tables = gpt2_tables()
    sample = edge_code_points()
    for pattern, kind in ((r"\p{L}", 1), (r"\p{N}", 2), (r"\s", 4)):
        compiled = regex.compile(pattern)
        members = {c for c in sample if compiled.fullmatch(c)}
        assert {c for c in sample if tables[ord(c)] == kind} == members
    assert not tables[0xD800:0xE000].any()
    assert not tables.flags.writeable
