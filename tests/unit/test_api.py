"""The Python functions: all ways to the same tokenizer."""

from pathlib import Path

import pytest

import raybpe
from raybpe import reference
from raybpe.errors import RaybpeError, UsageError

SEPARATOR = "<|endoftext|>"
QUIET = {"progress": "none", "executor": "local"}


def documents(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split(SEPARATOR)


def test_files_iterator_and_counts_agree(sample_file: Path, tmp_path: Path) -> None:
    by_file = raybpe.train(sample_file, 700, **QUIET)
    assert raybpe.train([str(sample_file)], 700, **QUIET) == by_file
    assert raybpe.train_from_iterator(iter(documents(sample_file)), 700, progress="none") == by_file
    as_bytes = (text.encode() for text in documents(sample_file))
    assert raybpe.train_from_iterator(as_bytes, 700, progress="none") == by_file
    counts = raybpe.count(sample_file, **QUIET)
    assert raybpe.train_from_counts(counts, 700, progress="none") == by_file
    output = tmp_path / "from-texts.arrow"
    again = raybpe.count_from_iterator(documents(sample_file), output=output, progress="none")
    assert dict(again.items()) == dict(counts.items()) == dict(raybpe.Counts.load(output).items())
    counts.save(tmp_path / "counts.arrow")
    assert raybpe.train_from_counts(tmp_path / "counts.arrow", 700, progress="none") == by_file
    mapping = dict(counts.items())
    assert raybpe.train_from_counts(mapping, 700, progress="none") == by_file


def test_train_equals_the_reference(sample_file: Path) -> None:
    counted = reference.count_pretokens(documents(sample_file)[:6])
    for compat, tie in (("hf", "lowest-ids"), ("cs336", "greatest-bytes")):
        tokenizer = raybpe.train_from_counts(counted, 400, compat=compat, progress="none")
        shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
        order = shown + [byte for byte in range(256) if byte not in shown]
        ids = [order.index(byte) for byte in range(256)]
        merges, _ = reference.train(counted, 400 - 257, tie_break=tie, byte_ids=ids)  # type: ignore[arg-type]
        assert tokenizer.merges == merges


def test_train_bpe_follows_cs336(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("low low low low low lower lower widest widest widest newest newest newest "
                    "newest newest newest")  # fmt: skip
    vocab, merges = raybpe.train_bpe(text, 256 + 1 + 6, [SEPARATOR])
    assert vocab[0] == SEPARATOR.encode()
    assert sorted(vocab.values())[:2] == [b"\x00", b"\x01"]
    assert len(vocab) == 256 + 1 + 6
    # The handout's example, with a space before each word but the first.
    assert merges[:3] == [(b"s", b"t"), (b"e", b"st"), (b"o", b"w")]


def test_special_tokens_are_never_learned() -> None:
    tokenizer = raybpe.train_from_iterator(
        [f"AB{SEPARATOR}CD"] * 5, 270, special_tokens=[SEPARATOR], progress="none"
    )
    learned = [left + right for left, right in tokenizer.merges]
    assert learned == [b"AB", b"CD"]


def test_several_counts_add_up(sample_file: Path, tmp_path: Path) -> None:
    halves = documents(sample_file)
    one = raybpe.count(_write(tmp_path / "a.txt", halves[:5]), **QUIET)
    two = raybpe.count(_write(tmp_path / "b.txt", halves[5:]), **QUIET)
    both = raybpe.train_from_counts([one, two], 600, progress="none")
    assert both == raybpe.train([tmp_path / "a.txt", tmp_path / "b.txt"], 600, **QUIET)


def _write(path: Path, texts: list[str]) -> Path:
    path.write_text(SEPARATOR.join(texts), encoding="utf-8", newline="")
    return path


def test_keywords_that_contradict_the_counts(sample_file: Path) -> None:
    counts = raybpe.count(sample_file, pattern="cl100k", **QUIET)
    assert raybpe.train_from_counts(counts, 300, progress="none").pattern.name == "cl100k"
    same = raybpe.train_from_counts(counts, 300, pattern="cl100k", progress="none")
    assert same.pattern.name == "cl100k"
    with pytest.raises(UsageError, match="pattern"):
        raybpe.train_from_counts(counts, 300, pattern="gpt2")
    with pytest.raises(UsageError, match="special"):
        raybpe.train_from_counts(counts, 300, special_tokens=["<s>"])


def test_wrong_arguments() -> None:
    with pytest.raises(UsageError, match="iterable"):
        raybpe.train_from_iterator("one text", 300)
    with pytest.raises(UsageError, match="one text"):
        raybpe.count_from_iterator(b"one text")
    with pytest.raises(UsageError):
        raybpe.train([], 300)
    with pytest.raises(UsageError):
        raybpe.train_from_counts([], 300)
    with pytest.raises(TypeError):
        raybpe.train(["x"], 300, patern="gpt2")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        raybpe.train_from_iterator(["x"], 300, patern="gpt2")  # type: ignore[call-arg]


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_nothing_to_count_is_an_error_or_base_bytes(texts: list[str]) -> None:
    with pytest.raises(RaybpeError):
        raybpe.train_from_iterator(texts, 300, progress="none")


def test_output_is_written_from_python(sample_file: Path, tmp_path: Path) -> None:
    tokenizer = raybpe.train(sample_file, 400, output=tmp_path / "tok", **QUIET)
    assert raybpe.Tokenizer.load(tmp_path / "tok") == tokenizer
