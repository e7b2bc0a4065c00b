"""Training: faults that people reported of other trainers, and what is right here, one by one."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from merge_helpers import Merges, fast_train, trainer

import raybpe
from raybpe import flow, reference
from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.errors import ExhaustedError, InputError, PatternError, UsageError
from raybpe.pretokenize import PATTERNS, resolve_pattern

QUIET: dict[str, Any] = {"progress": "none", "executor": "local"}


def learn(words: dict[bytes, int], merges: int, **options: Any) -> tuple[Merges, list[int]]:
    """Merges and their counts, which kernel and textbook must agree on."""
    made = fast_train(words, merges, **options)
    assert made == reference.train(words, merges, **options)
    return made


def config(vocab_size: int, pattern: str = "gpt2", special: tuple[str, ...] = (), **more: Any):
    resolved = resolve_pattern(pattern)
    longest = more.pop("max_pretoken_length", None)
    counting = CountConfig(resolved.regex, resolved.name, special, max_pretoken_length=longest)
    return TrainConfig(vocab_size, counting, **more)


def never() -> Iterator[str]:
    """An input that must not be read."""
    yield pytest.fail("read")


# -- counts --------------------------------------------------------------------------------------


def test_pair_counts_past_31_bits_win() -> None:
    """huggingface/tokenizers #2058: the count wraps below zero, and (x, y) comes first."""
    made = learn({b"s" * 20001: 110_000, b"xy": 330_000}, 1)
    assert made == ([(b"s", b"s")], [2_200_000_000])


def test_word_counts_past_32_bits_are_exact() -> None:
    """huggingface/tokenizers #437, PR #1433: a word's count wraps."""
    words = {b"the": 4_300_000_000, b"thy": 3}
    merges, counts = learn(words, 2)
    assert merges == [(b"t", b"h"), (b"th", b"e")]
    assert counts == [4_300_000_003, 4_300_000_000]
    kept = dict(raybpe.Counts.from_mapping(words).items())
    assert kept == words
    assert {type(count) for count in [*counts, *kept.values()]} == {int}


def test_counts_are_recounted_after_each_merge() -> None:
    """mikemayuare/apetokenizer #2: counts carried over from before a merge give bc(4)."""
    merges, counts = learn({b"abc": 3, b"ab": 2, b"bc": 1}, 9)
    assert merges == [(b"a", b"b"), (b"ab", b"c"), (b"b", b"c")]
    assert counts == [5, 3, 1]


def test_the_end_of_a_document_and_the_start_of_the_next_are_no_pair() -> None:
    """mikemayuare/apetokenizer #2: the last token of a text pairs with the first of the next."""
    tokenizer = raybpe.train_from_iterator(["ax", "ya"], 400, pattern="none", **QUIET)
    assert tokenizer.merges == [(b"a", b"x"), (b"y", b"a")]


def test_overlapping_pairs_of_a_run_all_count() -> None:
    """alexandermorgan/BatchBPE: runs counted without overlap would put (b, c) first."""
    for tie_break in ("lowest-ids", "greatest-bytes"):
        made = learn({b"aaaaa": 1, b"bc": 3}, 2, tie_break=tie_break)
        assert made == ([(b"a", b"a"), (b"b", b"c")], [4, 3])


def test_min_frequency_is_about_the_pair_when_it_is_merged(tmp_path: Path) -> None:
    """huggingface/tokenizers #1041: taken for the count of the finished token."""
    words = {b"ab": 3, b"ac": 1}
    assert learn(words, 9, min_frequency=2) == ([(b"a", b"b")], [3])
    raybpe.train_from_counts(words, 400, min_frequency=2, output=tmp_path / "tok", **QUIET)
    rows = [row.split("\t") for row in (tmp_path / "tok" / "merges.tsv").read_text().splitlines()]
    assert dict(zip(*rows, strict=True))["count"] == "3"  # the one merge, with its count


# -- which of equal pairs ------------------------------------------------------------------------


def test_no_hash_seed_changes_a_merge() -> None:
    """huggingface/tokenizers #1794, #668, PR #2066: the vocabulary changes from run to run."""
    program = (
        "import hashlib, raybpe\n"
        "words = {chr(97 + i) + chr(97 + i * 7 % 26) for i in range(26)}\n"  # any order
        "tok = raybpe.train_from_iterator(words, 300, progress='none', executor='local')\n"
        "assert len(tok.merges) == 26\n"
        "print(hashlib.sha256(repr((tok.vocab, tok.merges)).encode()).hexdigest())\n"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }
    assert len(hashes) == 1


def test_the_order_of_the_corpus_decides_no_tie() -> None:
    """karpathy/minbpe PR #90: of equal pairs the one seen first is merged first."""
    for documents in (["dc ba"] * 5, ["ba dc"] * 5):
        counts = reference.count_pretokens(documents, r"\S+")
        assert learn(counts, 2) == ([(b"b", b"a"), (b"d", b"c")], [5, 5])
        tokenizer = raybpe.train_from_iterator(documents, 259, pattern=r"\S+", **QUIET)
        assert tokenizer.merges == [(b"b", b"a"), (b"d", b"c")]


def test_the_greatest_pair_every_time() -> None:
    """stanford-cs336/assignment1-basics #70: a test that passes sometimes."""
    for words in ({b"az": 3, b"zb": 3}, {b"zb": 3, b"az": 3}):
        for _ in range(5):
            made = learn(words, 2, tie_break="greatest-bytes")
            assert made == ([(b"z", b"b"), (b"a", b"z")], [3, 3])


# -- sizes and limits ----------------------------------------------------------------------------


def test_a_token_length_of_one_allows_no_merge() -> None:
    """huggingface/tokenizers #1461: the limit 1 is ignored."""
    assert learn({b"abab": 2}, 9, max_token_length=1) == ([], [])
    tokenizer = raybpe.train_from_iterator(["abab abab"], 300, max_token_length=1, **QUIET)
    assert tokenizer.merges == []
    assert tokenizer.vocab_size == 257


def test_a_size_below_the_bytes_and_special_tokens_is_refused_before_reading() -> None:
    """huggingface/tokenizers #670, #886, #1514: size 5 for `abcdefghij` gives 10, in silence."""
    for size, special in ((5, []), (256, ["<s>"]), (257, ["<s>", "</s>"])):
        with pytest.raises(UsageError, match=f"need at least {256 + len(special)}"):
            raybpe.train_from_iterator(never(), size, special_tokens=special, **QUIET)
    tokenizer = raybpe.train_from_iterator(["abcdefghij"], 257, special_tokens=["<s>"], **QUIET)
    assert tokenizer.vocab_size == 257


def test_running_out_of_pairs_stops_early_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """google/sentencepiece #730, #965: a size that cannot be reached; some stop in silence."""
    path = tmp_path / "short.txt"
    path.write_text("ab ab")
    local = {"executor": "local"}
    result = flow.train([str(path)], config(500, special=("<s>",)), RunOptions(**local))
    assert result.tokenizer.vocab_size == 259
    assert "the vocabulary ends at 259 of 500 ids" in capsys.readouterr().err
    with pytest.raises(ExhaustedError, match="259 of 500"):
        flow.train([str(path)], config(500, special=("<s>",), strict=True), RunOptions(**QUIET))
    made = trainer({b"abab": 2}, 100)
    assert made.advance() == 2
    assert (made.done, made.exhausted) == (True, True)


def test_text_without_a_pair_is_a_clear_error_or_a_stated_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """karpathy/minbpe #114: an obscure crash on an empty or blank corpus."""
    with pytest.raises(InputError, match="holds no text"):
        raybpe.train_from_iterator([""], 300, **QUIET)
    with pytest.raises(PatternError, match="never matched in 3 bytes"):
        raybpe.train_from_iterator(["   "], 300, pattern=r"\w+", **QUIET)
    blank = raybpe.train_from_iterator(["   "], 300, executor="local")
    assert blank.merges == [(b" ", b" "), (b"  ", b" ")]  # with gpt2, spaces are text
    assert "no pair is left to merge: the vocabulary ends at 259" in capsys.readouterr().err


def test_the_base_alphabet_is_the_bytes_and_anything_else_is_refused() -> None:
    """huggingface/tokenizers #1829: of the alphabet ["abc", "d"] only "a" and "d" are taken."""
    with pytest.raises(TypeError, match="initial_alphabet"):
        raybpe.train_from_iterator(never(), 300, initial_alphabet=["abc", "d"])  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="byte ids"):
        trainer({b"ab": 1}, 1, byte_ids=[0] * 256)


def test_a_larger_vocabulary_begins_with_the_smaller(sample_text: Any) -> None:
    """PythonNut/superbpe #12, #19: more merges change those that were there, and their ids."""
    counts = reference.count_pretokens([sample_text(40_000).decode()])
    first = raybpe.train_from_counts(counts, 400, special_tokens=["<s>"], **QUIET)
    more = raybpe.train_from_counts(counts, 900, special_tokens=["<s>"], **QUIET)
    assert len(more.merges) == 900 - 257
    assert more.merges[: len(first.merges)] == first.merges
    assert {number: more.vocab[number] for number in first.vocab} == first.vocab


# -- special tokens ------------------------------------------------------------------------------


def test_no_token_holds_special_text_or_spans_it() -> None:
    """huggingface/tokenizers #985, #1616: special text in the corpus is learned."""
    for pattern in PATTERNS:
        tokenizer = raybpe.train_from_iterator(
            ["AB<sep>CD"] * 5, 400, special_tokens=["<sep>"], pattern=pattern, **QUIET
        )
        assert tokenizer.merges == [(b"A", b"B"), (b"C", b"D")]


def test_the_name_of_a_special_token_is_not_learned(tmp_path: Path) -> None:
    """karpathy/rustbpe: special tokens in the text are pretokenized, so `endoftext` is learned."""
    path = tmp_path / "a.txt"
    path.write_text("a<|endoftext|>b" * 5)
    for compat in ("hf", "cs336", "rustbpe", "bpeasy"):
        tokenizer = raybpe.train(path, 400, compat=compat, pattern="none", **QUIET)
        assert tokenizer.merges == [(b"b", b"a")]  # of "ba", between two special tokens
        assert dict(raybpe.count(path, pattern="none", **QUIET).items()) == {
            b"a": 1, b"ba": 4, b"b": 1,
        }  # fmt: skip


# -- long pretokens ------------------------------------------------------------------------------


def test_a_megabyte_that_nothing_splits_is_told_of_and_bounded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """huggingface/tokenizers #1313, #1345, #994: time and memory explode on unsplit sequences."""
    line = "".join(random.Random(1).choices("ACGT", k=10**6))
    run = RunOptions(executor="local")
    whole = flow.train_from_iterator([line], config(300, "none"), run)
    assert len(whole.tokenizer.merges) == 44
    assert "the longest pretoken has 1,000,000 bytes" in capsys.readouterr().err
    made = trainer({line.encode(): 1}, 44)
    made.advance()
    assert made.memory_bytes < 50 * 10**6
    capped = config(300, "none", max_pretoken_length=1000)
    result = flow.train_from_iterator([line, "ab ab"], capped, run)
    assert result.manifest["totals"]["long_pretokens_left_out"] == 1
    assert result.tokenizer.vocab[256] == b"ab"
    assert "1 occurrences of pretokens longer than 1,000 bytes" in capsys.readouterr().err


def test_one_huge_word_stalls_nothing_and_can_be_left_out(sample_text: Any) -> None:
    """huggingface/tokenizers #86: one corrupted word of megabytes holds everything up."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    huge = "".join(random.Random(2).choices(alphabet, k=5 * 10**6))
    text = sample_text(50_000).decode()
    run = RunOptions(**QUIET)
    capped = config(400, "whitespace", max_pretoken_length=10_000)
    result = flow.train_from_iterator([text, huge], capped, run)
    alone = flow.train_from_iterator([text], config(400, "whitespace"), run)
    assert result.tokenizer.merges == alone.tokenizer.merges
    assert result.manifest["totals"]["long_pretokens_left_out"] == 1
    uncapped = flow.train_from_iterator([text, huge], config(400, "whitespace"), run)
    assert len(uncapped.tokenizer.merges) == 144
