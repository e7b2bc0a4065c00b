"""Pretokenizing: faults that people reported of other tools, and what is right here, one by one."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import regex

import raybpe
from raybpe.errors import FormatError, PatternError, UsageError
from raybpe.formats.verify import unknown_characters
from raybpe.pretokenize import PATTERNS, Pattern, Pretokenizer, resolve_pattern

QUIET: dict[str, Any] = {"progress": "none", "executor": "local"}
Pieces = Callable[[str, str], list[str]]
ONE_OR_TWO = r"\p{N}{1,2}|\P{N}+"
UP_TO_THREE = r"\p{N}{1,3}|\P{N}+"


@pytest.fixture
def pieces() -> Pieces:
    """Pieces of a text by a named pattern or a regex."""

    def cut(pattern: str, text: str) -> list[str]:
        return [p.decode() for p in Pretokenizer(resolve_pattern(pattern)).pretokens(text.encode())]

    return cut


def never() -> Iterator[str]:
    """An input that must not be read."""
    yield pytest.fail("read")


def test_marks_stay_with_their_letters_where_the_pattern_says_so(pieces: Pieces) -> None:
    """openai/tiktoken #292, karpathy/minbpe #73, gnp/minbpe-rs PR #4: marks cut words."""
    assert pieces("cl100k", "नमस्ते") == ["नमस", "्त", "े"]  # GPT-4's own, for good or ill
    assert pieces("gpt2-marks", "नमस्ते") == ["नमस्ते"]
    assert pieces("gpt2-marks", "नमस्ते दुनिया") == ["नमस्ते", " दुनिया"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_chunks_of_any_size_give_the_counts_of_the_whole(pattern: str, tmp_path: Path) -> None:
    """wind-wing234/cs336-assignment1-basics #1: where a chunk ends changes the pretokens."""
    text = "a  b\n\n  c 12345 don't"
    path = tmp_path / "a.txt"
    path.write_text(text, newline="")

    def by_regex(piece: str) -> list[bytes]:
        return [match.group().encode() for match in regex.finditer(PATTERNS[pattern], piece)]

    whole = Counter(by_regex(text))
    for size in range(1, len(text) + 1):
        counts = raybpe.count(path, pattern=pattern, chunk_size=size, **QUIET)
        assert dict(counts.items()) == whole, size
    if pattern == "gpt2":  # the text is one that cuts anywhere do change
        cut = [by_regex(text[:at]) + by_regex(text[at:]) for at in range(1, len(text))]
        assert sum(Counter(found) != whole for found in cut) == 13  # of 20


def test_a_pattern_in_a_plain_string_is_a_regex_and_one_that_never_matches_is_refused() -> None:
    r"""catie-aq/flashT5 #10: `\w+` given as a plain string is searched for as it is written."""
    tokenizer = raybpe.train_from_iterator(["to be or to be"], 300, pattern=r"\w+", **QUIET)
    assert {b"to", b"be", b"or"} <= set(tokenizer.vocab.values())
    assert not any(b" " in left + right for left, right in tokenizer.merges)
    with pytest.raises(PatternError, match="never matched in 14 bytes"):
        raybpe.train_from_iterator(["to be or to be"], 300, pattern=re.escape(r"\w+"), **QUIET)


def test_what_was_trained_with_a_pattern_encodes_with_it(tmp_path: Path) -> None:
    """karpathy/nanochat #291: trained with {1,2} digits, used with {1,3}."""
    text = ["12345"] * 9
    tokenizer = raybpe.train_from_iterator(text, 300, pattern=ONE_OR_TWO, output=tmp_path, **QUIET)
    assert tokenizer.merges == [(b"1", b"2"), (b"3", b"4")]
    for name in ("", "tokenizer.json", "vocab.json", "tokenizer.tiktoken"):
        loaded = raybpe.Tokenizer.load(tmp_path / name)
        assert loaded.pattern.regex == ONE_OR_TWO
        assert loaded.encode("12345") == tokenizer.encode("12345")
        same = raybpe.Tokenizer.load(tmp_path / name, pattern=ONE_OR_TWO)
        assert same == tokenizer
        with pytest.raises(FormatError, match="made with the pattern"):
            raybpe.Tokenizer.load(tmp_path / name, pattern=UP_TO_THREE)


def test_counts_made_with_a_pattern_train_with_it(tmp_path: Path) -> None:
    """karpathy/nanochat #291: trained with {1,2} digits, used with {1,3}."""
    path = tmp_path / "a.txt"
    path.write_text("12345" * 9)
    counts = raybpe.count(path, pattern=ONE_OR_TWO, **QUIET)
    assert raybpe.train_from_counts(counts, 260, **QUIET).pattern.regex == ONE_OR_TWO
    with pytest.raises(UsageError, match="pattern"):
        raybpe.train_from_counts(counts, 260, pattern=UP_TO_THREE, **QUIET)


def test_letters_newer_than_another_librarys_unicode_are_a_known_difference(
    tmp_path: Path,
) -> None:
    """huggingface/tokenizers PR #1586, src-d/enry #225: engines of several Unicode versions."""
    text = "a\u088fa"
    tokenizer = raybpe.train_from_iterator([text] * 5, 300, output=tmp_path, **QUIET)
    listed = json.loads((tmp_path / "raybpe.json").read_text())["verified"]["known_differences"]
    for library, theirs in (
        ("tokenizers", lambda: tokenizer.to_hf().encode(text).ids),
        ("tiktoken", lambda: tokenizer.to_tiktoken().encode(text)),
    ):
        if unknown_characters(text, library):
            assert "U+088F" in listed[library]
        else:
            assert theirs() == tokenizer.encode(text)
            assert library not in listed


def test_a_pattern_that_engines_read_in_two_ways_is_refused() -> None:
    """huggingface/tokenizers.js PR #24: `{1,3}+` is possessive for some, repeated for others."""
    with pytest.raises(PatternError, match=r"engines read \{1,3\}\+ in two ways"):
        Pretokenizer(Pattern(None, r"\p{N}{1,3}+"))
    with pytest.raises(PatternError, match="two ways"):
        raybpe.train_from_iterator(never(), 300, pattern=r"\p{N}{1,3}+", **QUIET)
    repeated = raybpe.train_from_iterator(["1234567"], 400, pattern=r"(?:\p{N}{1,3})+", **QUIET)
    assert b"1234567" in repeated.vocab.values()


def test_only_regex_decides_what_is_white_space(pieces: Pieces) -> None:
    """`str.split`, `str.isspace` and `re` take U+001C to U+001F as space; patterns do not."""
    assert "\x1c".isspace()
    assert re.findall(r"\S+", "a\x1cb") == ["a", "b"]
    assert pieces("whitespace", "a\x1cb") == ["a\x1cb"]
    assert pieces(r"\S+", "a\x1cb") == ["a\x1cb"]
    assert pieces("gpt2", "a\x1cb") == ["a", "\x1c", "b"]


def test_every_named_pattern_has_fixtures_of_text_and_pieces() -> None:
    """keras-team/keras-hub #1435, ggml-org/llama.cpp PR #6920: ports write patterns by hand.

    `test_patterns.py` holds the pieces to be right; here, that there are some for every pattern.
    """
    fixtures = json.loads((Path(__file__).parent / "data" / "pretokens.json").read_text("utf-8"))
    assert {case["pattern"] for case in fixtures} == set(PATTERNS)
    for case in fixtures:
        assert "".join(case["pieces"]) == case["text"]
