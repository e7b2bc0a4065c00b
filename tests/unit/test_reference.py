"""The textbook implementation itself: worked examples, tie rules, what no merge may do."""

import ast
import doctest
import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe import reference
from raybpe.reference import (
    GPT2_PATTERN,
    apply_merges,
    count_pretokens,
    decode,
    encode,
    merge_pair,
    split_on_special_tokens,
    train,
    train_on_characters,
    vocabulary,
)

END = "<|endoftext|>"


def test_worked_examples_in_the_docstrings():
    assert doctest.testmod(reference).failed == 0


def test_it_stands_alone():
    tree = ast.parse(Path(reference.__file__).read_text())
    modules = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    assert "raybpe" not in modules
    assert "numpy" not in modules


def test_the_article_on_wikipedia():
    merges, _ = train({b"aaabdaaabac": 1}, 3)
    tokens = apply_merges(b"aaabdaaabac", {pair: i for i, pair in enumerate(merges)})
    assert tokens == [b"aaab", b"d", b"aaab", b"a", b"c"]


def test_ties_by_greatest_bytes_compare_the_left_token_first():
    # zb and az tie; as tuples of byte strings (z, b) is greater.
    assert train({b"az": 3, b"zb": 3}, 2, tie_break="greatest-bytes")[0] == [
        (b"z", b"b"),
        (b"a", b"z"),
    ]


def test_ties_do_not_depend_on_the_order_of_the_corpus():
    one = count_pretokens(["dc ba"] * 5, r"\S+")
    two = count_pretokens(["ba dc"] * 5, r"\S+")
    assert list(one) != list(two)
    assert train(one, 2) == train(two, 2) == ([(b"b", b"a"), (b"d", b"c")], [5, 5])


def test_counts_are_recounted_after_each_merge():
    # bc is 1 once abc took the others.
    assert train({b"abc": 3, b"ab": 2, b"bc": 1}, 9)[1] == [5, 3, 1]


def test_overlapping_pairs_of_a_run_all_count():
    assert train({b"aaaaa": 1, b"bc": 3}, 2) == ([(b"a", b"a"), (b"b", b"c")], [4, 3])


def test_documents_do_not_touch():
    merges, _ = train(count_pretokens(["ax", "ya"], r"\S+"), 9)
    assert all(left + right != b"xy" for left, right in merges)


def test_limits():
    words = {b"abab": 2}
    assert train(words, 9, max_token_length=1) == ([], [])
    assert train(words, 9, max_token_length=2) == ([(b"a", b"b")], [4])
    assert train(words, 9, max_token_length=4)[0] == [(b"a", b"b"), (b"ab", b"ab")]
    # At the time of the merge, so `ac` (1) is left out.
    assert train({b"ab": 3, b"ac": 1}, 9, min_frequency=2) == ([(b"a", b"b")], [3])
    assert train({}, 9) == train({b"": 5, b"a": 5}, 9) == ([], [])


def test_an_unknown_tie_rule_is_an_error():
    with pytest.raises(ValueError, match="tie rule"):
        train({b"ab": 1}, 1, tie_break="random")  # type: ignore[arg-type]


def test_special_tokens_are_cut_out_and_the_longest_wins():
    specials = ["<t1>", "<t12>", "<t12><t1>"]
    assert split_on_special_tokens("a<t12><t12><t1>b", specials) == ["a", "<t12>", "<t12><t1>", "b"]
    # No pretoken reaches across one, and its text is not counted.
    assert count_pretokens([f"a {END} b"], special_tokens=[END]) == {b"a": 1, b" ": 1, b" b": 1}


def test_no_two_tokens_have_the_same_bytes_exhaustively():
    words = [bytes(letters) for n in range(2, 6) for letters in itertools.product(b"ab", repeat=n)]
    for one, two in itertools.combinations(words, 2):
        for limit in (None, 3):
            merges, _ = train({one: 3, two: 2}, 99, max_token_length=limit)
            tokens = [left + right for left, right in merges]
            assert len(set(tokens)) == len(tokens)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8),
    st.text("ab", min_size=2, max_size=40),
)
@settings(deadline=None, max_examples=50)
def test_no_choice_of_merges_spells_a_token_twice(choices, text):
    """Whatever pairs are chosen, not only frequent ones: the proof needs no tie rule."""
    words = [list(text.encode()), list(text[::-1].encode())]
    spelled = {i: bytes([i]) for i in range(256)}
    for number, choice in enumerate(choices):
        pairs = sorted({pair for word in words for pair in itertools.pairwise(word)})
        if not pairs:
            break
        pair = pairs[sum(choice) % len(pairs)]
        token = spelled[pair[0]] + spelled[pair[1]]
        assert token not in spelled.values()
        spelled[256 + number] = token
        words = [merge_pair(word, pair, 256 + number) for word in words]


@given(st.text(max_size=60))
@settings(deadline=None, max_examples=50)
def test_decode_undoes_encode(text):
    merges, _ = train(count_pretokens(["the cat, the hat  and\n the bat"]), 20)
    vocab = vocabulary(merges, [END])
    assert decode(encode(text, vocab, merges, {END: 0}), vocab) == text


def test_encoding_equals_the_segmentation_that_training_ends_with():
    words = count_pretokens(["she sells sea shells by the sea shore, surely she sells"])
    merges, _ = train(words, 25)
    ranks = {pair: i for i, pair in enumerate(merges)}
    for word in words:
        symbols = [bytes([byte]) for byte in word]
        for left, right in merges:
            symbols = merge_pair_of_bytes(symbols, left, right)
        assert apply_merges(word, ranks) == symbols


def merge_pair_of_bytes(symbols, left, right):
    result = []
    for symbol in symbols:
        if symbol == right and result and result[-1] == left:
            result[-1] = left + right
        else:
            result.append(symbol)
    return result


def test_special_tokens_at_the_end():
    vocab = vocabulary([(b"a", b"b")], [END], special_tokens_at="end")
    assert vocab[256] == b"ab"
    assert vocab[257] == END.encode()
    assert encode(f"ab{END}", vocab, [(b"a", b"b")], {END: 257}) == [256, 257]


def test_characters_with_an_end_of_word_mark():
    merges = train_on_characters({"banana": 2, "bandana": 2}, 99)
    assert merges[0] == ("a", "n")
    assert merges[-2:] == [("ban", "dana</w>"), ("ban", "ana</w>")]
    assert train_on_characters({"": 3, "x": 5}, 9) == []


def test_the_pattern_is_gpt2s():
    assert reference.pretokenize("I'll  pay 12€", GPT2_PATTERN) == [
        "I", "'ll", " ", " pay", " 12", "€",
    ]  # fmt: skip
