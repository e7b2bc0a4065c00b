"""Reading text: faults that people reported of other tools, and what is right here, in turn.

That one long line among many short ones costs no memory beyond its bytes (ray-project/ray #46293)
is in `test_inputs_forms.py`, beside the other bounds on memory.
"""

import gzip
from pathlib import Path
from typing import Any

import pytest
import zstandard
from input_forms import json_lines, tar, texts, write

import raybpe
from raybpe import reference
from raybpe.cli import app as cli
from raybpe.inputs import plan_inputs

QUIET: dict[str, Any] = {"progress": "none", "executor": "local"}


def trained(path: Path, size: int = 300, **options: Any) -> raybpe.Tokenizer:
    return raybpe.train(path, size, **QUIET, **options)


def test_bytes_that_are_no_text_are_counted_when_asked_to_be_kept(tmp_path: Path) -> None:
    """huggingface/tokenizers #474: binary input is refused."""
    data = bytes(range(256))
    path = write(tmp_path, "a.txt", data)
    counts = dict(raybpe.count(path, pattern="none", invalid_utf8="keep", **QUIET).items())
    assert counts == {data[:128]: 1} | {bytes([byte]): 1 for byte in range(128, 256)}
    tokenizer = trained(path, pattern="none", invalid_utf8="keep")
    assert tokenizer.decode_bytes(tokenizer.encode(data)) == data


def test_nul_is_a_byte_as_any_other(tmp_path: Path) -> None:
    """google/sentencepiece #954, #331: a warning, and later a crash."""
    path = write(tmp_path, "a.txt", b"a\x00b")
    assert dict(raybpe.count(path, pattern="none", **QUIET).items()) == {b"a\x00b": 1}
    tokenizer = trained(path, pattern="none")
    assert b"a\x00b" in tokenizer.vocab.values()
    assert tokenizer.decode(tokenizer.encode("a\x00b")) == "a\x00b"


def test_rare_characters_are_not_lost(tmp_path: Path) -> None:
    """google/sentencepiece #175: by default a rare character is decoded to ⁇."""
    text = "ab " * 5000 + "☃"
    tokenizer = trained(write(tmp_path, "a.txt", text.encode()))
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode("☃")) == "☃"


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "whitespace", "none"])
@pytest.mark.parametrize("text", ["a  b", "a\tb", "①ａ", " a ", "e\u0301 é", "ﬁ\u00a0Å"])
def test_nothing_is_normalised(tmp_path: Path, text: str, pattern: str) -> None:
    """sentencepiece's defaults rewrite double spaces, tabs, ① and ａ."""
    data = text.encode()
    path = write(tmp_path, "a.txt", data)
    assert b"".join(texts(plan_inputs([path], chunk_bytes=3))) == data
    counts = dict(raybpe.count(path, pattern=pattern, **QUIET).items())
    assert sum(len(pretoken) * count for pretoken, count in counts.items()) == len(data)
    tokenizer = trained(path, pattern=pattern)
    assert tokenizer.decode_bytes(tokenizer.encode(text)) == data


def test_line_ends_and_empty_lines_are_text(tmp_path: Path) -> None:
    """ray.data.read_text takes off newlines and drops empty lines by default."""
    path = write(tmp_path, "a.txt", b"a\n\n\nb")
    for chunk_bytes in (1, 2, 100):
        assert b"".join(texts(plan_inputs([path], chunk_bytes=chunk_bytes))) == b"a\n\n\nb"
        lines = plan_inputs([path], chunk_bytes=chunk_bytes, documents="lines")
        assert texts(lines) == [b"a", b"", b"", b"b"]
    counts = dict(raybpe.count(path, **QUIET).items())
    assert counts == reference.count_pretokens(["a\n\n\nb"])
    assert sum(pretoken.count(b"\n") * count for pretoken, count in counts.items()) == 3


def test_a_run_that_counted_nothing_fails_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """allenai/dolma #225: the command succeeds, and its output is empty."""
    for name, data in (
        ("one.json.gz", gzip.compress(b'{"text": ""}\n')),
        ("none.json.gz", gzip.compress(b"")),
        ("null.json.gz", gzip.compress(b'{"text": null}\n')),
    ):
        path, output = write(tmp_path, name, data), tmp_path / "counts.arrow"
        assert cli.run(["count", str(path), "-o", str(output), "-q"]) == 1, name
        assert "the input holds no text" in capsys.readouterr().err
        assert not output.exists()
        train = ["train", str(path), "-o", str(tmp_path / "tok"), "--vocab-size", "300", "-q"]
        assert cli.run(train) == 1
        assert not list((tmp_path / "tok").glob("*"))
    path = write(tmp_path, "good.json.gz", gzip.compress(b'{"text": "one document"}\n'))
    assert cli.run(["count", str(path), "-o", str(tmp_path / "counts.arrow"), "-q"]) == 0
    counted = dict(raybpe.Counts.load(tmp_path / "counts.arrow").items())
    assert counted == {b"one": 1, b" document": 1}


def test_packed_files_and_archives_give_the_counts_of_the_plain_file(tmp_path: Path) -> None:
    """marin-community/marin #673, huggingface/tokenizers #153, #1170: only plain files are read."""
    documents = [f"document {i} of some, naïve  text\n" for i in range(50)]
    plain = json_lines(documents)
    forms = {
        "a.jsonl": plain,
        "a.jsonl.gz": gzip.compress(plain),
        "a.jsonl.zst": zstandard.compress(plain),
        "a.tar": tar(
            {"x.jsonl": json_lines(documents[:20]), "y.jsonl": json_lines(documents[20:])}
        ),
        "a.tar.gz": gzip.compress(tar({"x.jsonl": plain})),
    }
    expected = reference.count_pretokens(documents)
    for name, data in forms.items():
        path = write(tmp_path, name, data)
        for chunk_size in (100, 10**6):
            counts = raybpe.count(path, chunk_size=chunk_size, **QUIET)
            assert dict(counts.items()) == expected, name
