"""Tokenizers that do not lie on this machine."""

import uuid
from pathlib import Path

import fsspec
import pytest
from format_helpers import trained

from raybpe import storage
from raybpe.errors import FormatError, UsageError
from raybpe.formats import export_tokenizer, read_tokenizer, write_tokenizer


@pytest.fixture
def store(tmp_path: Path):
    write_tokenizer(trained(), tmp_path / "tok", sample=None)
    uri = f"memory://{uuid.uuid4().hex}/tok"
    for path in (tmp_path / "tok").iterdir():
        storage.write(storage.join(uri, path.name), path.read_bytes())
    yield uri
    fsspec.filesystem("memory").store.clear()


@pytest.mark.parametrize(
    "file", ["", "/", "/tokenizer.json", "/tokenizer.tiktoken", "/vocab.json", "/merges.txt"]
)
def test_uris_are_read(store: str, file: str) -> None:
    assert read_tokenizer(store + file) == trained()


def test_files_as_uris(tmp_path: Path) -> None:
    write_tokenizer(trained(), f"file://{tmp_path}/a tok", sample=None)
    assert read_tokenizer(f"file://{tmp_path}/a tok") == trained()


def test_what_is_not_there_is_named(store: str) -> None:
    with pytest.raises(FormatError, match=f"{store}/other"):
        read_tokenizer(f"{store}/other")
    with pytest.raises(FormatError, match=r"gone\.json"):
        read_tokenizer(f"{store}/gone.json")
    storage.write(f"{store}/tokenizer.json", b"{")
    with pytest.raises(FormatError, match=f"{store}/tokenizer.json is not valid JSON"):
        read_tokenizer(store)


def test_writing_to_a_store_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="s3://bucket/tok"):
        write_tokenizer(trained(), "s3://bucket/tok")
    with pytest.raises(UsageError, match="s3://bucket/tok"):
        export_tokenizer(trained(), "hf", "s3://bucket/tok")
    assert list(tmp_path.iterdir()) == []
