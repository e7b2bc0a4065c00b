"""Decoding one id at a time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe.errors import UsageError
from raybpe.tokenizer import Tokenizer
from raybpe.tokenizer.stream import DecodeStream
from raybpe.tokenizer.text import decode_text

TOKENIZER = Tokenizer(
    {value: bytes([value]) for value in range(256)} | {256: "€".encode()[:2], 257: b"\xac!"}, []
)
WORDS = {0: b"lo", 1: b"w</w>", 2: b"e", 3: b"r</w>", 4: b"<", 5: b"/w>", 6: "é".encode()[:1]}
WORDS |= {7: "é".encode()[1:] + b"</w>", 8: b"<<", 9: b"/w"}


def feed(stream, ids):
    return [stream.feed(number) for number in ids], stream.flush()


def test_a_character_that_is_never_finished_is_replaced():
    assert feed(TOKENIZER.decode_stream(), [0xE2, 0x82, 32]) == (["", "", "\ufffd "], "")
    assert feed(TOKENIZER.decode_stream(), [97, 0xF0, 0x9F]) == (["a", "", ""], "\ufffd")
    assert feed(TOKENIZER.decode_stream(), [0xFF]) == (["\ufffd"], "")


def test_a_stream_can_be_used_again_after_flushing():
    stream = TOKENIZER.decode_stream()
    assert feed(stream, [0xE2]) == ([""], "\ufffd")
    assert feed(stream, [97]) == (["a"], "")


def test_errors_are_as_for_decode():
    assert feed(TOKENIZER.decode_stream("ignore"), [0xFF, 97]) == (["", "a"], "")
    with pytest.raises(UnicodeDecodeError):
        TOKENIZER.decode_stream("strict").feed(0xFF)


def test_an_unknown_id_is_refused_and_changes_nothing():
    stream = TOKENIZER.decode_stream()
    stream.feed(0xC3)
    for unknown in (999, -1, None, [], 1.0, True):
        with pytest.raises(UsageError, match=r"not in the vocabulary|must be a whole number"):
            stream.feed(unknown)
    assert stream.feed(0xA9) == "é"


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.one_of(
            st.integers(0, 257),
            st.sampled_from(b"a\x80\xa0\xbf\xc3\xe0\xed\xe2\x82\xac\xf0\x9f\x90\xf4\x8f"),
        ),
        max_size=16,
    )
)
def test_the_stream_gives_what_decode_gives_and_as_early_as_it_can(ids):
    stream = TOKENIZER.decode_stream()
    given_out = ""
    for index, number in enumerate(ids):
        given_out += stream.feed(number)
        data = TOKENIZER.decode_bytes(ids[: index + 1])
        certain = decode_text(data)
        assert certain.startswith(given_out)
        # What is kept back is one character at most, and it is not complete.
        assert len(certain) - len(given_out) <= 3
        try:
            data.decode()
        except UnicodeDecodeError:
            continue
        assert given_out == certain
    assert given_out + stream.flush() == TOKENIZER.decode(ids)


@pytest.mark.parametrize(
    ("ids", "parts", "rest"),
    [
        ([0, 1, 0, 1], ["lo", "w", " lo", "w"], ""),
        ([0, 1, 2, 3], ["lo", "w", " e", "r"], ""),
        ([0, 1, 6, 7, 2], ["lo", "w", " ", "é", " e"], ""),
        ([0, 4, 5, 0], ["lo", "", "", " lo"], ""),
        ([0, 4, 0], ["lo", "", "<lo"], ""),
        ([8, 9, 4], ["<", "", "</w"], "<"),
        ([1, 1, 1], ["w", " w", " w"], ""),
    ],
)
def test_end_of_word_markers_become_spaces_between_words(ids, parts, rest):
    assert feed(DecodeStream(WORDS, end_of_word="</w>"), ids) == (parts, rest)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 9), max_size=12))
def test_marked_streams_give_what_joining_gives(ids):
    joined = b"".join(WORDS[number] for number in ids)
    joined = joined.removesuffix(b"</w>").replace(b"</w>", b" ")
    stream = DecodeStream(WORDS, end_of_word="</w>")
    assert "".join(stream.decode(ids)) == joined.decode("utf-8", "replace")
