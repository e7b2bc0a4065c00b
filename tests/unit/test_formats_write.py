"""Whole folders: what is in them, all or nothing, and the same tokenizer back."""

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from format_helpers import SPECIALS, TEXT, of_merges, trained

import raybpe.formats.write as writing
from raybpe.errors import FormatError, OutputError, VerifyError
from raybpe.formats import (
    EXPORTS,
    export_tokenizer,
    files_left_out,
    read_tokenizer,
    write_tokenizer,
)
from raybpe.formats.listing import spelled
from raybpe.pretokenize import PATTERNS, resolve_pattern
from raybpe.tokenizer.tokenizer import Tokenizer

FILES = {
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.tiktoken",
    "merges.tsv",
    "raybpe.json",
}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("at", "order"), [("start", "gpt2"), ("end", "value")])
def test_everything_is_written_verified_and_read_back(
    pattern: str, at: str, order: str, tmp_path: Path
) -> None:
    tokenizer = trained(pattern, at=at, order=order)
    found = write_tokenizer(tokenizer, tmp_path / "out", sample=[TEXT])
    assert names(tmp_path / "out") == FILES
    assert names(tmp_path) == {"out"}
    assert found.checked["tokenizer.json"] == ["raybpe", "tokenizers"]
    assert found.checked["tokenizer.tiktoken"] == ["raybpe", "tiktoken"]
    assert not found.left_out
    assert not found.known_differences
    for name in ("", "tokenizer.json", "vocab.json", "merges.txt", "tokenizer.tiktoken"):
        assert read_tokenizer(tmp_path / "out" / name) == tokenizer, name


@pytest.mark.parametrize("pattern", [*PATTERNS, r"(?>\p{N}{1,3})|\p{L}+|[^\p{N}\p{L}]+$|(?s:.)"])
def test_tokenizer_json_alone_gives_the_same_ids(pattern: str, tmp_path: Path) -> None:
    tokenizer = trained(pattern)
    (path,) = export_tokenizer(tokenizer, "hf", tmp_path / "alone.json", [TEXT])
    loaded = read_tokenizer(path)
    assert loaded.encode(TEXT) == tokenizer.encode(TEXT)
    assert loaded.vocabulary == tokenizer.vocabulary
    if pattern in PATTERNS:
        assert loaded.pattern == tokenizer.pattern


def test_the_manifest_describes_the_files(tmp_path: Path) -> None:
    tokenizer = trained("qwen2")
    account = {"totals": {"bytes": 5}, "format": "not to be replaced"}
    write_tokenizer(tokenizer, tmp_path / "out", manifest=account)
    content = json.loads((tmp_path / "out" / "raybpe.json").read_text())
    assert content["format"] == 1
    assert content["totals"] == {"bytes": 5}
    assert content["tokenizer"]["pattern"] == PATTERNS["qwen2"]
    assert content["tokenizer"]["fingerprint"] == tokenizer.fingerprint()
    assert content["tokenizer"]["llama_cpp"] == "qwen2"
    for name, entry in content["files"].items():
        data = (tmp_path / "out" / name).read_bytes()
        assert entry == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert set(content["files"]) == FILES - {"raybpe.json"}


def test_two_writes_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_tokenizer(trained(), tmp_path / name)
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_file_that_is_left_out_does_not_stay_from_before(tmp_path: Path) -> None:
    write_tokenizer(of_merges([(b"a", b"b")]), tmp_path / "out")
    (tmp_path / "out" / "mine.txt").write_text("kept")
    write_tokenizer(of_merges([(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]), tmp_path / "out")
    assert names(tmp_path / "out") == (FILES | {"mine.txt"}) - {"tokenizer.tiktoken"}


def test_a_pattern_that_an_engine_reads_otherwise_leaves_the_file_out(tmp_path: Path) -> None:
    tokenizer = of_merges([(b"a", b"b")], pattern=r"\b\w+\b|\W+")
    found = write_tokenizer(tokenizer, tmp_path / "out")
    assert {"tokenizer.json", "tokenizer_config.json"} <= set(found.left_out)
    assert "boundary" in found.left_out["tokenizer.json"]
    assert read_tokenizer(tmp_path / "out") == tokenizer
    with pytest.raises(FormatError, match="boundary"):
        export_tokenizer(tokenizer, "hf", tmp_path / "x.json")


def test_a_pattern_that_no_engine_shares_leaves_the_files_of_both_out(tmp_path: Path) -> None:
    tokenizer = of_merges([(b"a", b"b")], pattern=r"\X")
    left_out = set(write_tokenizer(tokenizer, tmp_path / "out").left_out)
    assert left_out == {
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "tokenizer.tiktoken",
    }
    assert set(files_left_out(tokenizer.pattern)) == left_out
    assert read_tokenizer(tmp_path / "out") == tokenizer
    with pytest.raises(FormatError, match="escape"):
        export_tokenizer(tokenizer, "tiktoken", tmp_path / "x.tiktoken")


def test_a_byte_that_is_a_special_token_only_is_no_rank(tmp_path: Path) -> None:
    """tiktoken would fail on the byte as ordinary text, and no reader would take the file."""
    plain = of_merges([(b"a", b"b")])
    tokenizer = Tokenizer(plain.vocab, plain.merges, ["\n"])
    assert "tokenizer.tiktoken" in write_tokenizer(tokenizer, tmp_path / "out").left_out
    assert read_tokenizer(tmp_path / "out") == tokenizer
    with pytest.raises(FormatError, match="every byte"):
        export_tokenizer(tokenizer, "tiktoken", tmp_path / "x.tiktoken")


def test_a_folder_may_be_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        assert tmp_path / "out" in source.parents, "moved from another file system"
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    write_tokenizer(trained(), tmp_path / "out")
    assert names(tmp_path / "out") == FILES


def test_a_folder_in_the_way_of_a_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "out" / "vocab.json").mkdir(parents=True)
    (tmp_path / "out" / "tokenizer.json").write_text("old")
    with pytest.raises(OutputError, match=r"vocab\.json: it is a folder"):
        write_tokenizer(trained(), tmp_path / "out")
    assert names(tmp_path / "out") == {"vocab.json", "tokenizer.json"}
    assert (tmp_path / "out" / "tokenizer.json").read_text() == "old"


def test_what_cannot_be_written_is_known_before_training() -> None:
    assert files_left_out(resolve_pattern("cl100k")) == {}
    assert "boundary" in files_left_out(resolve_pattern(r"\b\w+"))["tokenizer.json"]


@pytest.mark.parametrize("specials", [("Ġ",), ("a",), ("ab",), (" x", "Ġx")])
def test_a_special_token_named_as_an_ordinary_one_is_refused(
    specials: tuple[str, ...], tmp_path: Path
) -> None:
    vocab = {i: bytes([i]) for i in range(256)} | {256: b"ab", 257: b" x"}
    merges = [(b"a", b"b"), (b" ", b"x")]
    ids = {text: 300 + i for i, text in enumerate(specials)}
    tokenizer = Tokenizer(vocab, merges, ids)
    with pytest.raises(FormatError):
        export_tokenizer(tokenizer, "hf", tmp_path / "x.json")
    assert names(tmp_path) == set()


def test_ids_with_gaps_are_filled_and_come_back(tmp_path: Path) -> None:
    vocab = {i: bytes([i]) for i in range(256)} | {300: b"ab"}
    tokenizer = Tokenizer(vocab, [(b"a", b"b")], {"<|end|>": 310})
    write_tokenizer(tokenizer, tmp_path / "out", sample=["ab<|end|>ab"])
    named = json.loads((tmp_path / "out" / "vocab.json").read_text())
    assert sorted(named.values()) == list(range(311))
    assert read_tokenizer(tmp_path / "out" / "tokenizer.json") == tokenizer


def test_huge_gaps_are_refused(tmp_path: Path) -> None:
    vocab = {i: bytes([i]) for i in range(256)} | {10**7: b"ab"}
    with pytest.raises(FormatError, match="without a token"):
        write_tokenizer(Tokenizer(vocab, [(b"a", b"b")]), tmp_path / "out")
    assert names(tmp_path) == set()


def test_failed_verification_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tokenizer(trained(), tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def fail(*_: Any) -> None:
        raise VerifyError("other ids")

    monkeypatch.setattr(writing, "verify", fail)
    with pytest.raises(VerifyError):
        write_tokenizer(trained("qwen2"), tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert names(tmp_path) == {"out"}


def test_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tokenizer(trained(), tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    real = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.name == "merges.txt":
            raise OSError(28, "No space left on device")
        return real(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match=r"merges\.txt.*No space left.*untouched"):
        write_tokenizer(trained("qwen2"), tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert names(tmp_path) == {"out"}


def test_a_target_that_is_a_file_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(OutputError, match="out"):
        write_tokenizer(trained(), tmp_path / "out")
    with pytest.raises(OutputError, match="out"):
        write_tokenizer(trained(), tmp_path / "out" / "deeper")
    assert (tmp_path / "out").read_text() == "mine"
    assert names(tmp_path) == {"out"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(OutputError, match="locked"):
        write_tokenizer(trained(), tmp_path / "locked" / "out")


@pytest.mark.parametrize("form", EXPORTS)
def test_each_export(form: str, tmp_path: Path) -> None:
    paths = export_tokenizer(trained(), form, tmp_path / "out", [TEXT])
    assert {Path(path).name for path in paths} == set(EXPORTS[form]) == names(tmp_path / "out")
    header = form == "gpt2"
    if "merges.txt" in EXPORTS[form]:
        merges = (tmp_path / "out" / "merges.txt").read_text()
        assert merges.startswith("#version: 0.2\n") == header
        loaded = read_tokenizer(tmp_path / "out")
        assert loaded.merges == trained().merges
        assert loaded.special_tokens == trained().special_tokens
        assert loaded.encode(TEXT) == trained().encode(TEXT)


def test_the_listing_can_be_read(tmp_path: Path) -> None:
    merges = [(b" ", b"a"), (b"\xe2", b"\x82"), (b"\\", b"n"), (b"\n", b"\t"), (b"\xc2", b"\x80")]
    write_tokenizer(of_merges(merges), tmp_path / "out", merge_counts=[5, 4, 3, 2, 1])
    assert (tmp_path / "out" / "merges.tsv").read_text() == (
        "rank\tleft\tright\ttoken\tcount\n"
        "0\t␠\ta\t␠a\t5\n"
        "1\t\\xe2\t\\x82\t\\xe2\\x82\t4\n"
        "2\t\\\\\tn\t\\\\n\t3\n"
        "3\t\\n\t\\t\t\\n\\t\t2\n"
        "4\t\\xc2\t\\x80\t\\u0080\t1\n"
    )
    tokens = [*trained().vocab.values(), "␠".encode(), b"\\x80", b"\\n"]
    assert len({spelled(token) for token in set(tokens)}) == len(set(tokens))


def test_ranks_are_base64_and_id(tmp_path: Path) -> None:
    tokenizer = trained(at="start")
    export_tokenizer(tokenizer, "tiktoken", tmp_path / "x.tiktoken")
    lines = (tmp_path / "x.tiktoken").read_text().splitlines()
    rows = [(base64.b64decode(line.split()[0]), int(line.split()[1])) for line in lines]
    assert rows == [(t, n) for n, t in tokenizer.vocab.items() if n >= len(SPECIALS)]
