"""What `inspect` finds."""

import pytest
from format_helpers import SPECIALS, TEXT, of_merges, trained

from raybpe.evaluate.audit import audit
from raybpe.evaluate.reachable import unreachable_tokens
from raybpe.evaluate.scripts import NEITHER, PARTIAL, count_scripts
from raybpe.formats.downstream import llama_cpp_name
from raybpe.pretokenize import resolve_pattern
from raybpe.reference import apply_merges
from raybpe.tokenizer.tokenizer import Tokenizer

BYTES = {byte: bytes([byte]) for byte in range(256)}


def test_a_trained_tokenizer_is_clean() -> None:
    tokenizer = trained()
    found = audit(tokenizer)
    assert (found.ids, found.merges) == (256 + 3 + 120, 120)
    assert found.special_tokens == {text: i for i, text in enumerate(SPECIALS)}
    assert found.unreachable == found.missing_ids == found.special_inside == []
    assert found.duplicates == {}
    assert sum(found.lengths.values()) == 256 + 120
    assert found.fingerprint == tokenizer.fingerprint()
    longest = [len(tokenizer.vocab[number]) for number in found.longest]
    assert longest == sorted(longest, reverse=True)
    assert longest[0] == max(found.lengths)
    assert audit(tokenizer, -1).longest == []
    assert found.llama_cpp == "gpt-2"


def test_a_token_that_other_merges_take_apart_is_listed() -> None:
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    tokenizer = of_merges(merges, pattern="none")
    assert audit(tokenizer).unreachable == [258]
    assert 258 not in tokenizer.encode("abc")


def test_each_token_is_tried_when_merges_are_in_no_usual_order() -> None:
    merges = [(b"ab", b"c"), (b"a", b"b"), (b"b", b"c"), (b"a", b"bc"), (b"bc", b"d")]
    vocab = BYTES | {300: b"ab", 301: b"abc", 302: b"bc", 303: b"bcd", 304: b"xx"}
    vocabulary = Tokenizer(vocab, merges, pattern="none").vocabulary
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    expected = [n for n, t in vocab.items() if n >= 300 and apply_merges(t, ranks) != [t]]
    assert unreachable_tokens(vocabulary) == expected == [304]


@pytest.mark.parametrize("seed", range(30))
def test_unreachable_equals_the_textbook(seed: int) -> None:
    import random

    rng = random.Random(seed)
    tokens = [b"a", b"b", b"c"]
    merges: list[tuple[bytes, bytes]] = []
    for _ in range(12):
        pair = rng.choice(tokens), rng.choice(tokens)
        if len(b"".join(pair)) < 10 and pair not in merges:
            merges.append(pair)
            tokens += [b"".join(pair)] if b"".join(pair) not in tokens else []
    if seed % 3 == 0:
        rng.shuffle(merges)
    vocab = BYTES | {256 + i: token for i, token in enumerate(tokens[3:])}
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    expected = [n for n, t in vocab.items() if n > 255 and apply_merges(t, ranks) != [t]]
    assert unreachable_tokens(Tokenizer(vocab, merges).vocabulary) == expected


def test_gaps_duplicates_and_special_text_are_listed() -> None:
    merges = [(b"<", b"t"), (b"<t", b"1"), (b"<t1", b">"), (b"<t1>", b"x")]
    vocab = BYTES | {257: b"<t", 258: b"<t1", 260: b"<t1>", 261: b"<t1>x", 270: b"<t"}
    found = audit(Tokenizer(vocab, merges, {"<t1>": 280}))
    assert found.missing_ids == [256, 259, *range(262, 270), *range(271, 280)]
    assert found.duplicates == {b"<t": [257, 270]}
    assert found.special_inside == [260, 261]


def test_huge_gaps_do_not_fill_memory() -> None:
    found = audit(Tokenizer(BYTES | {2**24 - 1: b"ab"}, [(b"a", b"b")]))
    assert len(found.missing_ids) == 100_000


def test_tokens_by_script() -> None:
    tokens = ["the", " Привет", "1日", "मन", " \n", "1.", "ᚠ"]
    assert count_scripts([text.encode() for text in tokens] + [b"\xe2\x82", b"\xff"]) == {
        "Latin": 1,
        "Cyrillic": 1,
        "Han": 1,
        "Devanagari": 1,
        NEITHER: 2,
        "other scripts": 1,
        PARTIAL: 2,
    }
    assert sum(audit(trained()).scripts.values()) == 256 + 120
    assert TEXT  # what it was trained on


def test_patterns_known_downstream() -> None:
    assert llama_cpp_name(resolve_pattern("qwen2")) == "qwen2"
    assert llama_cpp_name(resolve_pattern("gpt2-marks")) is None
    assert llama_cpp_name(resolve_pattern(r"\w+|\W+")) is None
