"""Tokenizer files: faults that people reported of other tools, and what is right here, in turn."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from format_helpers import SPECIALS, TEXT, of_merges, trained

import raybpe
from raybpe.cli import app as cli
from raybpe.errors import FormatError, PatternError
from raybpe.evaluate.compare import compare
from raybpe.formats import export_tokenizer, read_tokenizer, write_tokenizer
from raybpe.pretokenize import PATTERNS
from raybpe.tokenizer import Tokenizer

tokenizers = pytest.importorskip("tokenizers")
QUIET: dict[str, Any] = {"progress": "none", "executor": "local"}
BYTES = {byte: bytes([byte]) for byte in range(256)}
FILES = ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer.tiktoken")


def never() -> Iterator[str]:
    """An input that must not be read."""
    yield pytest.fail("read")


# -- merges --------------------------------------------------------------------------------------


def test_merges_with_spaces_are_read_back(tmp_path: Path) -> None:
    """huggingface/tokenizers #645, #566, #1475, PR #909: they do not, where nothing is split."""
    text = "a b a b"
    tokenizer = raybpe.train_from_iterator([text], 300, pattern="none", output=tmp_path, **QUIET)
    assert any(b" " in left and b" " in left + right for left, right in tokenizer.merges)
    pairs = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["merges"]
    assert all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    lines = (tmp_path / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert all(line.count(" ") == 1 for line in lines)  # a token's own are written Ġ
    for name in FILES:
        assert read_tokenizer(tmp_path / name) == tokenizer, name
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode(text).ids == tokenizer.encode(text)


def test_merges_with_newlines_are_read_back(tmp_path: Path) -> None:
    r"""huggingface/tokenizers #588, #482: a token `\n\n` breaks merges.txt."""
    merges = [(b"\n", b"\n"), (b"\n\n", b" "), (b"\r", b"\n"), (b"\xe2", b"\x80")]
    merges.append((b"\xe2\x80", b"\xa8"))
    tokenizer = of_merges(merges, pattern="none")
    write_tokenizer(tokenizer, tmp_path, sample=["a\n\n b\n\n\r\n\u2028"])
    assert len((tmp_path / "merges.txt").read_text(encoding="utf-8").splitlines()) == 1 + 5
    for name in FILES:
        assert read_tokenizer(tmp_path / name) == tokenizer, name


def test_special_tokens_are_in_no_merge(tmp_path: Path) -> None:
    """gautierdag/bpeasy #2: special tokens in the vocabulary break rebuilding the merges."""
    text = "<s>ab ab ab<s>"
    for at in ("start", "end"):
        folder = tmp_path / at
        tokenizer = raybpe.train_from_iterator(
            [text], 300, special_tokens=["<s>"], special_tokens_at=at, output=folder, **QUIET
        )
        assert tokenizer.merges == [(b"a", b"b"), (b" ", b"ab")]
        for name in ("", *FILES):
            loaded = read_tokenizer(folder / name)
            assert loaded.merges == tokenizer.merges
            assert loaded.special_tokens == tokenizer.special_tokens
        ranks = dict(line.split() for line in (folder / FILES[-1]).read_bytes().splitlines())
        assert base64.b64encode(b"<s>") not in ranks
        theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        assert theirs.encode(text).ids == tokenizer.encode(text)


def test_merges_are_saved_as_trained_never_rebuilt(tmp_path: Path) -> None:
    """gautierdag/bpeasy #3, openai/tiktoken #60: of ab, bc, abc ranks cannot say how abc came."""
    for last in ((b"ab", b"c"), (b"a", b"bc")):
        for first in ([(b"a", b"b"), (b"b", b"c")], [(b"b", b"c"), (b"a", b"b")]):
            merges = [*first, last]
            tokenizer = of_merges(merges, pattern="none")
            folder = tmp_path / str(merges)
            left_out = write_tokenizer(tokenizer, folder, sample=["abc ab bc"]).left_out
            for name in ("", "tokenizer.json", "vocab.json"):
                assert read_tokenizer(folder / name).merges == merges
            made_in_turn = first[0][0] + first[0][1] in last
            assert (FILES[-1] in left_out) == (not made_in_turn) != (folder / FILES[-1]).exists()
            if made_in_turn:
                assert read_tokenizer(folder / FILES[-1]).merges == merges
            else:
                with pytest.raises(FormatError, match="abc"):
                    export_tokenizer(tokenizer, "tiktoken", tmp_path / "x.tiktoken")
                assert not (tmp_path / "x.tiktoken").exists()


# -- ids -----------------------------------------------------------------------------------------


def test_two_tokens_with_one_rank_or_id_are_refused(tmp_path: Path) -> None:
    """openai/tiktoken #87, vllm-project/vllm PR #51135: an assertion or a panic when used."""
    rows = [(BYTES[byte], byte) for byte in BYTES] + [(b"ab", 256), (b"cd", 256)]
    path = tmp_path / "x.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in rows))
    with pytest.raises(FormatError, match=r"x\.tiktoken: line 258 has the rank 256 a second time"):
        read_tokenizer(path, pattern="gpt2")
    for specials, reason in (({"<a>": 256}, "gives to b'ab'"), ({"<a>": 9, "<b>": 9}, "same id")):
        with pytest.raises(FormatError, match=reason):
            Tokenizer(BYTES | {256: b"ab"}, [(b"a", b"b")], specials)
    export_tokenizer(of_merges([(b"a", b"b"), (b"c", b"d")]), "hf", tmp_path / "x.json")
    content = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert content.count(": 257") + content.count(":257") == 1
    twice = content.replace(": 257", ": 256").replace(":257", ":256")
    (tmp_path / "x.json").write_text(twice, encoding="utf-8")
    with pytest.raises(FormatError, match="the same id 256"):
        read_tokenizer(tmp_path / "x.json")


def test_a_line_of_ranks_without_a_rank_is_named(tmp_path: Path) -> None:
    """openai/tiktoken #114: `Yg==` alone is an error without a place."""
    path = tmp_path / "x.tiktoken"
    path.write_bytes(base64.b64encode(b"a") + b" 0\nYg==\n")
    with pytest.raises(FormatError, match=r"x\.tiktoken: line 2\b"):
        read_tokenizer(path, pattern="gpt2")


def test_special_tokens_stay_where_they_were_asked_for(tmp_path: Path) -> None:
    """huggingface/transformers #25503: they are moved to the front."""
    for at, first in (("start", 0), ("end", 256 + 120)):
        write_tokenizer(trained(at=at), tmp_path / at)
        expected = [(text, first + i) for i, text in enumerate(SPECIALS)]
        for name in ("", *FILES):
            assert list(read_tokenizer(tmp_path / at / name).special_tokens.items()) == expected
        theirs = tokenizers.Tokenizer.from_file(str(tmp_path / at / "tokenizer.json"))
        assert [(text, theirs.token_to_id(text)) for text in SPECIALS] == expected
        by_option = raybpe.train_from_iterator(
            [TEXT], 256 + 3 + 120, special_tokens=SPECIALS, special_tokens_at=at, **QUIET
        )
        assert list(by_option.special_tokens.items()) == expected


def test_swapped_special_tokens_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """allenai/OLMo #597, PR #537: two files that differ by the ids of <eos> and <pad> alone."""
    vocab = BYTES | {256: b"<eos>", 257: b"<pad>"}
    one = Tokenizer(vocab, [], ["<eos>", "<pad>"])
    other = Tokenizer({**vocab, 256: b"<pad>", 257: b"<eos>"}, [], ["<eos>", "<pad>"])
    found = compare(one, other)
    assert not found.same
    assert found.special_tokens == {"<eos>": (256, 257), "<pad>": (257, 256)}
    assert found.swaps == [(256, 257)]
    assert found.other_ids == [(256, 257), (257, 256)]
    stored = set()
    for name, tokenizer in (("one", one), ("other", other)):
        write_tokenizer(tokenizer, tmp_path / name)
        manifest = json.loads((tmp_path / name / "raybpe.json").read_text())
        assert manifest["tokenizer"]["fingerprint"] == tokenizer.fingerprint()
        stored.add(manifest["tokenizer"]["fingerprint"])
    assert len(stored) == 2
    assert cli.run(["compare", str(tmp_path / "one"), str(tmp_path / "other")]) == 0
    assert "<eos>:256/257 <pad>:257/256" in capsys.readouterr().out


def test_gaps_in_ids_are_filled_with_named_tokens(tmp_path: Path) -> None:
    """mosaicml/llm-foundry PR #761: users of `get_vocab` take its length for the highest id."""
    tokenizer = Tokenizer(BYTES | {300: b"ab"}, [(b"a", b"b")])
    write_tokenizer(tokenizer, tmp_path, sample=["ab ab"])
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert sorted(theirs.get_vocab().values()) == list(range(301))
    assert theirs.encode("ab").ids == tokenizer.encode("ab") == [300]
    named = json.loads((tmp_path / "vocab.json").read_text())
    assert sorted(named.values()) == list(range(301))
    for name in ("", *FILES):
        assert read_tokenizer(tmp_path / name) == tokenizer, name
    assert Tokenizer(BYTES | {300: b"ab"}, [(b"a", b"b")], {"<|end|>": 310}).vocab_size == 258


# -- patterns ------------------------------------------------------------------------------------


def test_whether_a_pattern_is_known_downstream_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ggml-org/llama.cpp #9927, #8649, #7022: conversion stops at an unknown pre-tokenizer."""
    for pattern, name in (("qwen2", "qwen2"), ("gpt2", "gpt-2"), (r"\w+|\W+", None)):
        folder = tmp_path / str(name)
        write_tokenizer(of_merges([(b"a", b"b")], pattern=pattern), folder)
        manifest = json.loads((folder / "raybpe.json").read_text())
        assert manifest["tokenizer"]["llama_cpp"] == name
        assert cli.run(["inspect", str(folder)]) == 0
        assert (name or "llama.cpp cannot run it") in capsys.readouterr().out


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_conversion_keeps_the_pattern(pattern: str, tmp_path: Path) -> None:
    """chonkie-ai/autotiktokenizer #22: another pattern after conversion gives other ids."""
    text = "This is an \nexample"
    tokenizer = raybpe.train_from_iterator([text] * 3, 400, pattern=pattern, **QUIET)
    ids = tokenizer.encode(text)
    write_tokenizer(tokenizer, tmp_path, sample=[text])
    for name in FILES:
        assert read_tokenizer(tmp_path / name).encode(text) == ids, name
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode(text).ids == ids
    assert tokenizer.to_hf().encode(text).ids == ids
    converted = read_tokenizer(tmp_path / "tokenizer.json").to_tiktoken()
    assert converted.encode(text) == ids


@pytest.mark.parametrize("splitter", [str.split, lambda text: text.split()], ids=["method", "own"])
def test_a_python_function_is_no_pattern_and_refused_before_reading(splitter: Any) -> None:
    """huggingface/tokenizers #581, #613, #466: a custom splitter cannot be saved, or hangs."""
    for call in (
        lambda: raybpe.train_from_iterator(never(), 300, pattern=splitter, **QUIET),
        lambda: raybpe.count("/no/such/file", pattern=splitter, **QUIET),
        lambda: Tokenizer(BYTES, [], pattern=splitter),
    ):
        with pytest.raises(PatternError, match="not text; give a name or a regex"):
            call()
