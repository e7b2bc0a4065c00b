"""The tokenizer as an object: what it refuses, its specials, equality, pickles."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe.errors import FormatError, PatternError, UsageError
from raybpe.tokenizer import Tokenizer
from raybpe.tokenizer.vocabulary import Vocabulary

BYTES = {value: bytes([value]) for value in range(256)}


def tokenizer(*merges, special_tokens=None, **options):
    """All bytes by value, and merges given as 'left right'."""
    pairs = [tuple(part.encode() for part in merge.split(" ")) for merge in merges]
    vocab = BYTES | {256 + rank: left + right for rank, (left, right) in enumerate(pairs)}
    return Tokenizer(vocab, pairs, special_tokens, **options)


def test_missing_bytes_are_refused_by_name():  # row 49
    with pytest.raises(FormatError, match=r"no token for the single bytes 0x00, 0x01, .* and 239"):
        Tokenizer({0: b"a", 1: "“".encode()}, [])
    lacking = {number: token for number, token in BYTES.items() if number != 0x7F}
    with pytest.raises(FormatError, match=r"bytes 0x7f, so"):
        Tokenizer(lacking, [])


def test_a_merge_listed_twice_is_refused():  # row 50
    with pytest.raises(FormatError, match=r"merge 2 .* repetition of merge 0"):
        tokenizer("a b", "x y", "a b")


@pytest.mark.parametrize(
    "vocab",
    [
        {-1: b"a"},
        {1 << 24: b"a"},
        {"a": b"a"},
        {256.0: b"a"},
        {None: b"a"},
        {256: b""},
        {256: "a"},
        {256: bytearray(b"a")},
    ],
)
def test_unusable_vocabularies_are_refused(vocab):
    with pytest.raises(FormatError, match=r"has the id|gives .* for id"):
        Tokenizer(BYTES | vocab, [])


def test_an_empty_vocabulary_is_refused():
    with pytest.raises(FormatError, match="empty"):
        Tokenizer({}, [])


@pytest.mark.parametrize(
    "merge",
    [(b"a", b"b"), (b"zz", b"y"), (b"a",), (b"a", b"b", b"c"), ("a", "b"), ([], b"b"), "ab"],
)
def test_unusable_merges_are_refused(merge):
    with pytest.raises(FormatError, match="merge 0"):
        Tokenizer(BYTES, [merge])


@pytest.mark.parametrize(
    "special_tokens",
    [
        [""],
        ["<a>", "<a>"],
        ["\ud800"],
        [b"<a>"],
        "<a>",
        {"<a>": 97},
        {"<a>": 300, "<b>": 300},
        {"<a>": -1},
    ],
)
def test_unusable_special_tokens_are_refused(special_tokens):
    with pytest.raises(FormatError):
        Tokenizer(BYTES, [], special_tokens)


def test_an_unreadable_pattern_is_refused():
    with pytest.raises(PatternError):
        tokenizer("a b", pattern="(a")


def test_special_tokens_take_the_ids_that_the_vocabulary_gives_them_or_the_next():
    vocab = {0: b"<|a|>"} | {1 + value: bytes([value]) for value in range(256)}
    made = Tokenizer(vocab, [], ["<|b|>", "<|a|>", "<|c|>"])
    assert made.special_tokens == {"<|a|>": 0, "<|b|>": 257, "<|c|>": 258}
    assert list(made.special_tokens) == ["<|a|>", "<|b|>", "<|c|>"]
    assert made.vocab[258] == b"<|c|>"
    assert made.vocab_size == 259
    assert vocab.get(257) is None  # the caller's dictionary is untouched


def test_without_special_tokens_all_text_is_ordinary():
    vocab = BYTES | {256: b"<|a|>"}
    assert Tokenizer(vocab, []).encode("<|a|>") == list(b"<|a|>")
    assert Tokenizer(vocab, [], []).encode("<|a|>") == list(b"<|a|>")
    assert Tokenizer(vocab, [], ["<|a|>"]).encode("<|a|>") == [256]


def test_special_tokens_with_ids_of_their_own_leave_ordinary_tokens_alone():
    made = tokenizer("a b", special_tokens={"ab": 300})
    assert made.encode("xab aab") == [120, 300, 32, 97, 300]
    assert made.encode("xab", allowed_special=()) == [120, 256]
    assert made.vocab[256] == made.vocab[300] == b"ab"


def test_one_id_may_be_special_and_what_merges_make():
    made = tokenizer("a b", "ab c", special_tokens=["ab"])
    assert made.special_tokens == {"ab": 256}
    assert made.encode("abc") == [256, 99]
    assert made.encode("abc", allowed_special=()) == [257]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<t12><t1>", [257, 256]),  # row 47
        ("<t1><t12>", [256, 257]),
        ("<t1", [60, 116, 49]),
        ("x<t12", [120, 60, 116, 49, 50]),
        ("<|a|><|a|>", [259]),
        ("<|a|><|a|><|a|>", [259, 258]),
        ("<|a|>-<|a|>", [258, 45, 258]),
    ],
)
def test_the_longest_special_token_wins(text, expected):
    made = Tokenizer(BYTES, [], ["<t1>", "<t12>", "<|a|>", "<|a|><|a|>"])
    assert made.encode(text) == expected
    assert made.decode(expected) == text


def test_allowed_and_disallowed_special_tokens_are_tiktokens():
    made = Tokenizer(BYTES, [], ["<a>", "<b>"])
    plain_a = list(b"<a>")
    assert made.encode("<a><b>", allowed_special={"<b>"}) == [*plain_a, 257]
    assert made.encode("<a><b>", allowed_special=set()) == [*plain_a, *b"<b>"]
    assert made.encode("<a><b>", allowed_special="all", disallowed_special="all") == [256, 257]
    assert made.encode_ordinary("<a>") == plain_a
    for choice in ("all", {"<a>"}):
        with pytest.raises(UsageError, match="'<a>'"):
            made.encode("x<a>", allowed_special={"<b>"}, disallowed_special=choice)
        with pytest.raises(UsageError, match="'<a>'"):
            made.encode(b"x<a>", allowed_special={"<b>"}, disallowed_special=choice)
    assert made.encode("x", allowed_special=set(), disallowed_special="all") == [120]
    assert made.encode(b"<b>", allowed_special=iter(["<a>", "<b>"])) == [257]
    with pytest.raises(UsageError, match="allowed_special='<a>'"):
        made.encode("x", allowed_special="<a>")


def test_equality_and_fingerprint_see_everything_that_changes_ids():
    one = tokenizer("a b", "c d")
    same = tokenizer("a b", "c d")
    assert one == same
    assert one.fingerprint() == same.fingerprint()
    others = [
        tokenizer("c d", "a b"),
        tokenizer("a b"),
        tokenizer("a b", "c d", special_tokens=["<a>"]),
        tokenizer("a b", "c d", pattern="cl100k"),
        tokenizer("a b", "c d", ignore_merges=True),
    ]
    assert all(one != other for other in others)
    assert len({t.fingerprint() for t in (one, *others)}) == 1 + len(others)
    assert one != "tokenizer"


def test_a_pickle_is_small_and_gives_an_equal_tokenizer():
    made = tokenizer(*(f"{a} {b}" for a in "abcdefgh" for b in "ijklmnop"), special_tokens=["<a>"])
    made.encode("abc")
    data = pickle.dumps(made)
    assert len(data) < 10_000
    again = pickle.loads(data)
    assert again == made
    assert again.encode("ai<a>") == made.encode("ai<a>")


def test_representations_name_size_and_pattern():
    made = tokenizer("a b", special_tokens=["<a>"])
    assert repr(made) == "Tokenizer(vocab_size=258, special_tokens=1, pattern='gpt2')"
    assert "&lt;a&gt;" in made._repr_html_()


def test_two_ids_with_the_same_bytes_are_both_decoded_and_the_lowest_is_used():
    made = Tokenizer(BYTES | {500: b"ab", 400: b"ab", 9999: b"x"}, [(b"a", b"b")])
    assert made.encode("abx") == [400, 120]
    assert made.decode([500, 400, 9999]) == "ababx"


def test_making_a_tokenizer_imports_no_numba():
    code = (
        "import sys; from raybpe.tokenizer import Tokenizer;"
        "t = Tokenizer({i: bytes([i]) for i in range(256)}, []);"
        "t.decode([97]); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 400), min_size=256, max_size=256, unique=True))
def test_ids_may_have_any_order_and_gaps(ids):
    made = Vocabulary({number: bytes([value]) for value, number in enumerate(ids)}, [])
    assert made.byte_ids.tolist() == ids
    assert list(made.tokens) == sorted(ids)
    assert made.id_limit == max(ids) + 1
    assert made.merge_ids.shape == (0, 3)
    assert made.merge_ids.dtype == np.int32


def test_merges_may_be_rows_of_ids():
    one = tokenizer("a b", "ab c")
    same = Tokenizer(one.vocab, one.vocabulary.merge_ids, pattern=one.pattern)
    assert same == one
    assert same.merges == one.merges == [(b"a", b"b"), (b"ab", b"c")]
    for row, reason in (
        ([97, 98, 97], "cannot make"),
        ([97, 98, 9999], "9999"),
        ([97, 98], "rows of three"),
    ):
        with pytest.raises(FormatError, match=reason):
            Tokenizer(one.vocab, np.array([row]))
    with pytest.raises(FormatError, match="repetition of merge 0"):
        Tokenizer(one.vocab, one.vocabulary.merge_ids[[0, 1, 0]])
    with pytest.raises(FormatError, match="rows of three"):
        Tokenizer(one.vocab, np.zeros((2, 3, 3), int))


def test_of_ids_with_the_same_bytes_rows_use_the_lowest():
    vocab = {number: bytes([number]) for number in range(256)} | {256: b"ab", 257: b"ab"}
    made = Tokenizer(vocab, np.array([[97, 98, 257]]))
    assert made == Tokenizer(vocab, [(b"a", b"b")])
    assert made.encode("ab") == [256]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["<a>", "<a", "a", "b", ">", "é"]), max_size=8).map("".join))
def test_short_text_without_special_tokens_is_the_same_whichever_count(text):
    made = tokenizer("a b", "< a", special_tokens=["<a>", "b>"])
    plain = tokenizer("a b", "< a")
    assert made.encode_ordinary(text) == plain.encode(text)
    only = tokenizer("a b", "< a", special_tokens={"<a>": 258})
    assert made.encode(text, allowed_special={"<a>"}) == only.encode(text)
