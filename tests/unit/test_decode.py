"""Ids back to bytes and text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe.errors import UsageError
from raybpe.tokenizer import Tokenizer
from raybpe.tokenizer.text import decode_text, unit_starts

BYTES = Tokenizer({value: bytes([value]) for value in range(256)}, [])
WORDS = Tokenizer(
    BYTES.vocab | {256: b"he", 257: "é".encode(), 258: b"\xc3", 300: b"hello"},
    [(b"h", b"e")],
)
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60))
def test_all_bytes_come_back(data):
    assert BYTES.decode_bytes(BYTES.encode(data)) == data


@settings(deadline=None, max_examples=200)
@given(ANY_TEXT)
def test_every_str_comes_back(text):
    assert BYTES.decode(BYTES.encode(text)) == text


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00", "\udc80é\ud800\ud800"])
def test_lone_surrogates_come_back(text):
    assert WORDS.decode(WORDS.encode(text)) == text


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.sampled_from(b"a\x80\xbf\xc3\xe0\xa0\xe2\x82\xac\xf0\x9f\x90\xf4\x8f\xff\xc1"),
        max_size=12,
    )
)
def test_replacement_is_pythons(values):
    data = bytes(values)
    assert decode_text(data) == data.decode("utf-8", "replace")
    assert len(unit_starts(data)) == len(decode_text(data))


def test_other_error_rules_are_pythons():
    assert BYTES.decode([0xED, 0xA0, 0x80, 97], errors="ignore") == "a"
    with pytest.raises(UnicodeDecodeError):
        BYTES.decode([0xFF], errors="strict")


@pytest.mark.parametrize("ids", [[256], [-1], [1 << 40], ["a"], [None], np.array([7, 999])])
def test_unknown_ids_are_refused(ids):
    with pytest.raises(UsageError, match="not in the vocabulary"):
        BYTES.decode_bytes(ids)


@pytest.mark.parametrize("ids", [[[]], 5, None])
def test_what_is_no_sequence_of_ids_is_refused(ids):
    with pytest.raises(UsageError, match="several integers"):
        BYTES.decode(ids)


def test_arrays_and_iterators_are_taken():
    ids = WORDS.encode_to_numpy("hello é" * 10)
    assert WORDS.decode(ids) == "hello é" * 10
    assert WORDS.decode(iter(ids.tolist())) == "hello é" * 10
    assert WORDS.decode_batch([ids, [300], []]) == ["hello é" * 10, "hello", ""]


def test_long_arrays_are_decoded_in_parts(monkeypatch):
    monkeypatch.setattr("raybpe.tokenizer.tokenizer._IDS_AT_A_TIME", 7)
    text = "hello and é" * 9
    assert WORDS.decode(WORDS.encode_to_numpy(text)) == text


@pytest.mark.parametrize(
    ("ids", "text", "offsets"),
    [
        ([], "", []),
        ([256, 257, 97], "heéa", [0, 2, 3]),
        ([97, 0xC3, 0xA9, 98], "aéb", [0, 1, 1, 2]),
        ([0xC3, 98], "\ufffdb", [0, 1]),
        ([0xE2, 0x82, 0xAC, 0xE2, 0x82], "€\ufffd", [0, 0, 0, 1, 1]),
        ([0xFF, 0xFF, 257], "\ufffd\ufffdé", [0, 1, 2]),
    ],
)
def test_offsets_name_the_character_of_the_first_byte(ids, text, offsets):
    assert WORDS.decode_with_offsets(ids) == (text, offsets)


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=20))
def test_offsets_equal_tiktokens(text):
    tiktoken = pytest.importorskip("tiktoken")
    other = tiktoken.Encoding(
        "bytes",
        pat_str=r"[\s\S]",
        mergeable_ranks={bytes([value]): value for value in range(256)},
        special_tokens={},
    )
    ids = BYTES.encode(text)
    assert BYTES.decode_with_offsets(ids) == other.decode_with_offsets(ids)
