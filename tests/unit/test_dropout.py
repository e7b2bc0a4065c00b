"""BPE-dropout: nothing at 0, bytes at 1, in between as the paper says; the same for a seed."""

import time
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from encode_helpers import encode_plainly, random_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe.errors import UsageError
from raybpe.tokenizer import Tokenizer
from raybpe.tokenizer.dropout import DropoutEncoder

SPECIALS = ["<|end|>", "<|e"]
TOKENIZER = random_tokenizer(Random(8), 60, special_tokens=SPECIALS)
TEXTS = st.one_of(
    st.lists(st.sampled_from(["a", "b", "ab", " ", "é", "<|end|>", "<|e", "\ud800"])).map("".join),
    st.binary(max_size=20),
)


def small(*merges, **options):
    pairs = [tuple(part.encode() for part in merge.split()) for merge in merges]
    vocab = {number: bytes([number]) for number in range(256)}
    vocab |= {256 + rank: left + right for rank, (left, right) in enumerate(pairs)}
    return Tokenizer(vocab, pairs, **options)


HELLO = small("h e", "l l", "he ll", "hell o")


@settings(deadline=None, max_examples=50)
@given(TEXTS)
def test_without_dropout_as_plain_encoding(text):
    plain = TOKENIZER.encode(text)
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    assert plain == encode_plainly(TOKENIZER, data)
    encoder = DropoutEncoder(TOKENIZER.vocabulary, TOKENIZER.pattern)
    assert encoder.encode(text, tuple(SPECIALS), 0.0, None) == plain
    assert TOKENIZER.encode(text, dropout=0, seed=1) == plain


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.floats(0.01, 1), st.integers())
def test_nothing_is_lost_and_a_seed_repeats(text, dropout, seed):
    ids = TOKENIZER.encode(text, dropout=dropout, seed=seed)
    assert ids == TOKENIZER.encode(text, dropout=dropout, seed=seed)
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    assert TOKENIZER.decode_bytes(ids) == data


def test_all_dropped_gives_bytes_and_special_tokens():
    ids = TOKENIZER.encode("abab<|end|>ab", dropout=1.0)
    assert ids == [*b"abab", TOKENIZER.special_tokens["<|end|>"], *b"ab"]
    assert TOKENIZER.encode("ab<|end|>", dropout=1.0, allowed_special=()) == list(b"ab<|end|>")
    with pytest.raises(UsageError, match="disallowed"):
        TOKENIZER.encode("ab<|end|>", dropout=0.5, allowed_special=(), disallowed_special="all")


def test_as_often_as_the_paper_says():
    """Against the paper's algorithm: draw for all candidates, take the best of those that stay."""
    ranks = {pair: rank for rank, pair in enumerate(HELLO.merges)}

    def textbook(parts, random):
        while True:
            kept = [
                (ranks[pair], at)
                for at, pair in enumerate(pairwise(parts))
                if pair in ranks and random.random() >= 0.3
            ]
            if not kept:
                return tuple(parts)
            at = min(kept)[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]

    calls = 4000
    random = Random(1)
    expected = Counter(textbook([b"h", b"e", b"l", b"l", b"o"], random) for _ in range(calls))
    found = Counter(
        tuple(map(HELLO.token_bytes, HELLO.encode("hello", dropout=0.3, seed=seed)))
        for seed in range(calls)
    )
    assert set(found) == set(expected)
    for split, times in expected.items():
        # Five standard deviations of the difference of two such counts.
        assert abs(found[split] - times) < 5 * (2 * times + 1) ** 0.5, split


def test_a_call_without_seed_is_new():
    text = "hello " * 50
    assert len({tuple(HELLO.encode(text, dropout=0.5)) for _ in range(5)}) == 5


def test_long_pretokens_do_not_take_long():
    began = time.process_time()
    for dropout in (0.1, 0.9, 1.0):
        small("a a", "aa aa").encode("a" * 20_000, dropout=dropout, seed=0)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("dropout", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(dropout):
    with pytest.raises(UsageError, match="must be a probability"):
        HELLO.encode("hello", dropout=dropout)


def test_a_token_that_no_merge_makes_is_not_taken_whole():
    vocab = {number: bytes([number]) for number in range(256)} | {256: b"hello"}
    tokenizer = Tokenizer(vocab, [], ignore_merges=True)
    assert tokenizer.encode("hello") == [256]
    assert tokenizer.encode("hello", dropout=0.01, seed=0) == list(b"hello")
