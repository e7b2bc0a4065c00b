"""A file that gives other ids is found; newer Unicode is listed and not held against it."""

import json
from pathlib import Path

import pytest
from format_helpers import TEXT, trained

from raybpe.errors import VerifyError
from raybpe.formats import write_tokenizer
from raybpe.formats.verify import PROBES, SAMPLE_CHARACTERS, unknown_characters, verify
from raybpe.tokenizer.tokenizer import Tokenizer

pytest.importorskip("tokenizers")
pytest.importorskip("tiktoken")

NEWER = "\u088f"  # a letter of Unicode 17


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokenizer(trained(), tmp_path / "out", sample=[TEXT])
    return tmp_path / "out"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_each_file_is_loaded_by_whom_it_is_for(folder: Path) -> None:
    found = verify(folder, trained(), [TEXT])
    assert found.checked == {
        "tokenizer.json": ["raybpe", "tokenizers"],
        "vocab.json": ["raybpe"],
        "tokenizer.tiktoken": ["raybpe", "tiktoken"],
    }
    assert found.texts >= len(PROBES) + 1


def test_another_tokenizers_files_are_found_out(folder: Path) -> None:
    with pytest.raises(VerifyError, match="differs in the vocabulary"):
        verify(folder, trained(merges=60))
    with pytest.raises(VerifyError, match="differs in the"):
        verify(folder, trained(at="end"))


def test_another_pattern_is_found_out_by_ids(folder: Path) -> None:
    same = trained()
    other = Tokenizer(same.vocab, same.merges, same.special_tokens, pattern="none")
    with pytest.raises(VerifyError, match="tokenizers gives other ids than raybpe after byte"):
        verify(folder, other, [TEXT])


def test_a_damaged_file_is_found_out(folder: Path) -> None:
    edit(folder / "tokenizer.json", '["Ġ","#"]', '["#","Ġ"]')
    with pytest.raises(VerifyError, match=r"tokenizer\.json cannot be read back: .*'#Ġ'"):
        verify(folder, trained())
    edit(folder / "tokenizer.json", '["#","Ġ"]', '["Ġ","#"]')
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"]["merges"].reverse()
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(VerifyError, match=r"tokenizer\.json, read back, differs in the merges"):
        verify(folder, trained())


def test_what_only_the_library_refuses_is_found_out(folder: Path) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    content["version"] = "9.0"
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(VerifyError, match=r"tokenizers cannot load the tokenizer\.json"):
        verify(folder, trained())


def test_swapped_ranks_are_found_out(folder: Path) -> None:
    path = folder / "tokenizer.tiktoken"
    lines = path.read_text().split("\n")
    one, other = lines[-3].split(" "), lines[-2].split(" ")
    lines[-3:-1] = [f"{other[0]} {one[1]}", f"{one[0]} {other[1]}"]
    path.write_text("\n".join(lines))
    with pytest.raises(VerifyError, match=r"tokenizer\.tiktoken"):
        verify(folder, trained())


def test_newer_letters_are_listed_as_a_known_difference(tmp_path: Path) -> None:
    if not unknown_characters(NEWER, "tokenizers"):
        pytest.skip("this release of tokenizers knows the letter")
    merges = [(b"\xe0", b"\xa2"), (b"\xe0\xa2", b"\x8f"), (b"\xe0\xa2\x8f", b"a")]
    vocab = {i: bytes([i]) for i in range(256)}
    vocab |= {256 + i: left + right for i, (left, right) in enumerate(merges)}
    tokenizer = Tokenizer(vocab, merges)
    text = f"a{NEWER}a {NEWER}a"
    assert 258 in tokenizer.encode(text)
    found = write_tokenizer(tokenizer, tmp_path / "out", sample=[text])
    assert "U+088F" in found.known_differences["tokenizers"]
    content = json.loads((tmp_path / "out" / "raybpe.json").read_text())
    assert content["verified"]["known_differences"] == found.known_differences


def test_a_fault_beside_a_newer_letter_is_still_found(folder: Path) -> None:
    same = trained()
    other = Tokenizer(same.vocab, same.merges, same.special_tokens, pattern="none")
    with pytest.raises(VerifyError):
        verify(folder, other, [NEWER + TEXT])


def test_long_samples_are_cut_and_bad_ones_survive(folder: Path) -> None:
    sample = ["x" * (SAMPLE_CHARACTERS - 5), "\udc80 lone", "never looked at" * 10**6]
    assert verify(folder, trained(), sample).texts >= 2


def test_libraries_that_are_missing_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raybpe.formats.verify.find_spec", lambda name: None)
    found = verify(folder, trained())
    assert found.checked["tokenizer.json"] == ["raybpe"]
    assert "pip install tiktoken" in found.skipped["tiktoken"]
