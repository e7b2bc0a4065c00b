"""Keywords and options that would do nothing are refused."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import raybpe
from raybpe.cli import app as cli
from raybpe.errors import ArgumentTypeError
from raybpe.keywords import CountsKeywords, TextsKeywords

OF_FILES: dict[str, Any] = {
    "documents": "lines",
    "chunk_size": "1k",
    "fan_in": 99,
    "resume": False,
}


@pytest.mark.parametrize("name", [*OF_FILES, "field"])
def test_counts_take_no_keyword_about_reading(name: str) -> None:
    given = {name: OF_FILES.get(name, "zzz")}
    with pytest.raises(ArgumentTypeError, match=f"train_from_counts takes no {name}, .*leave it"):
        raybpe.train_from_counts({"ab": 2}, 257, progress="none", **given)


@pytest.mark.parametrize("name", OF_FILES)
def test_texts_take_no_keyword_about_files(name: str) -> None:
    given = {name: OF_FILES[name]}
    with pytest.raises(ArgumentTypeError, match=f"train_from_iterator takes no {name}, .*leave it"):
        raybpe.train_from_iterator(["ab"], 257, progress="none", **given)
    with pytest.raises(TypeError, match=name):
        raybpe.count_from_iterator(["ab"], progress="none", **given)


def test_unknown_keywords_are_named_with_those_there_are() -> None:
    for function, data in (("train_from_iterator", ["ab"]), ("train_from_counts", {"ab": 2})):
        said = f"{function} has no keyword 'patern'; it takes .*, pattern, "
        with pytest.raises(ArgumentTypeError, match=said):
            getattr(raybpe, function)(data, 257, patern="gpt2")


def test_all_others_of_train_are_taken() -> None:
    of_train = inspect.signature(raybpe.train).parameters.keys() - {"inputs", "vocab_size"}
    assert TextsKeywords.__optional_keys__ == of_train - OF_FILES.keys()
    assert CountsKeywords.__optional_keys__ == of_train - OF_FILES.keys() - {"field"}


@pytest.mark.parametrize(
    "option",
    [
        ["--documents", "lines"],
        ["--documents", "text"],
        ["--field", "zzz"],
        ["--chunk-size", "1k"],
        ["--fan-in", "99"],
        ["--no-resume"],
    ],
    ids=lambda option: " ".join(option),
)
def test_command_lines_with_counts_and_options_of_reading(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts, output = str(tmp_path / "counts.arrow"), str(tmp_path / "tok")
    raybpe.Counts.from_mapping({"low": 5}).save(counts)
    command = ["train", "--from-counts", counts, "--vocab-size", "257", "-q", "-o", output]
    assert cli.run([*command, *option]) == 2
    said = capsys.readouterr().err
    assert option[0] in said
    assert "--from-counts" in said
    assert not (tmp_path / "tok").exists()
