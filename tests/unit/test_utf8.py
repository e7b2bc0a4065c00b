"""Validation and the four policies, against Python's decoder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe.block import PADDING_BYTES, Block
from raybpe.errors import InvalidUtf8Error
from raybpe.pretokenize.utf8 import clean_block

# Valid and invalid at every limit of table 3-7.
UNITS = [
    b"a", b"x" * 20, b"\n", "é".encode(), "中".encode(), "😀".encode(), b"\xc2\x80", b"\xdf\xbf",
    b"\xe0\xa0\x80", b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbf", b"\xf0\x90\x80\x80",
    b"\xf4\x8f\xbf\xbf", b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf",
    b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff",
    b"\xc3", b"\xe4", b"\xe4\xb8", b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x98",
]  # fmt: skip


def block_of(documents: list[bytes], gap: bytes = b"", after: bytes = b"") -> Block:
    """Documents with `gap` before each and `after` past the last, which must not matter."""
    text, starts, ends = b"", [], []
    for document in documents:
        text += gap
        starts.append(len(text))
        text += document
        ends.append(len(text))
    data = np.frombuffer(text + after[:PADDING_BYTES].ljust(PADDING_BYTES, b"\x80"), np.uint8)
    return Block(data, np.array(starts, np.int64), np.array(ends, np.int64), "some.txt", 1000)


def documents_of(block: Block) -> list[bytes]:
    spans = zip(block.starts, block.ends, strict=True)
    return [block.data[start:end].tobytes() for start, end in spans]


def kept(document: bytes) -> tuple[list[bytes], list[int]]:
    """Valid pieces and invalid bytes, by Python's decoder; a valid document stays as it is."""
    try:
        document.decode()
    except UnicodeDecodeError:
        pieces, invalid, piece = [], [], ""
        for character in document.decode("utf-8", "surrogateescape"):
            if 0xDC80 <= ord(character) <= 0xDCFF:
                invalid.append(ord(character) - 0xDC00)
                pieces.append(piece)
                piece = ""
            else:
                piece += character
        return [p.encode() for p in [*pieces, piece] if p], invalid
    return [document], []


def check(documents: list[bytes], gap: bytes = b"", after: bytes = b"") -> None:
    block = block_of(documents, gap, after)
    pieces = [kept(document) for document in documents]
    counts = np.bincount([b for _, invalid in pieces for b in invalid], minlength=256)
    clean, histogram = clean_block(block, "keep")
    assert documents_of(clean) == [piece for found, _ in pieces for piece in found]
    assert (histogram == counts).all()
    for policy, name in (("replace", "replace"), ("skip", "ignore")):
        clean, histogram = clean_block(block, policy)
        assert documents_of(clean) == [d.decode("utf-8", name).encode() for d in documents]
        assert (histogram == counts).all()
        assert len(clean.data) >= clean.ends[-1] + PADDING_BYTES
    first = None
    for document, start in zip(documents, block.starts, strict=True):
        try:
            document.decode()
        except UnicodeDecodeError as error:
            first = int(start) + error.start
            break
    if first is None:
        assert clean_block(block, "error")[0] is block
    else:
        with pytest.raises(InvalidUtf8Error, match=rf"some\.txt: byte offset {1000 + first} "):
            clean_block(block, "error")


@pytest.mark.parametrize("unit", UNITS)
def test_each_sequence_at_every_place_around_a_block_edge(unit):
    for before in range(56, 68):
        for tail in (b"", b"a", "中".encode()):
            check([b"x" * before + unit + tail])
            check([b"\xc3\xa9" * (before // 2) + unit + tail])


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.lists(st.sampled_from(UNITS), max_size=40).map(b"".join), min_size=1, max_size=4),
    st.sampled_from([b"", b"\xe4", b"\xff\xff"]),
)
def test_random_sequences(documents, gap):
    check(documents, gap)


def test_every_two_bytes():
    every = [bytes([first, second]) for first in range(0x80, 256) for second in range(256)]
    check([pair for pair in every if pair[1] in (0, 0x7F, 0xFF) or 0x80 <= pair[1] <= 0xC2])


@pytest.mark.parametrize("lead", ["e0", "e1", "ed", "ee", "f0", "f1", "f4", "f5"])
def test_limits_of_three_and_four_bytes(lead):
    edges = (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
    head = bytes.fromhex(lead)
    check([head + bytes([a, b]) for a in edges for b in edges])
    check([head + bytes([a, b, c]) for a in edges for b in edges for c in (0x7F, 0x80, 0xC0)])


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_character_cut_short_at_the_end_is_invalid_whatever_follows(cut):
    whole = "😀".encode()
    for length in (0, 60, 61, 62, 63, 64, 128):
        check([b"x" * length + whole[:cut]], after=whole[cut:])


def test_random_bytes_and_small_corpora(shared):
    check([np.random.default_rng(1).bytes(20_000)])
    for path in sorted((shared / "corpora" / "small").iterdir()):
        check([path.read_bytes()[:30_000]])


def test_offset_that_does_not_map_to_the_source():
    block = block_of([b"ab\xff"])
    block = Block(block.data, block.starts, block.ends, "a.jsonl", None)
    with pytest.raises(InvalidUtf8Error, match=r"a\.jsonl: byte 2 of a record"):
        clean_block(block, "error")


def test_replacing_moves_offsets_so_they_are_no_longer_claimed():
    block = block_of([b"a\xff", b"b"])
    assert clean_block(block, "replace")[0].offset is None
    assert clean_block(block, "keep")[0].offset == 1000


def test_empty_block():
    block = Block(np.zeros(128, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert clean_block(block, "error")[0] is block
