"""Keywords are those of `train`; options that would do nothing are refused."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import raybpe
from raybpe.cli import app as cli
from raybpe.errors import ArgumentTypeError
from raybpe.keywords import TrainKeywords

OF_FILES: dict[str, Any] = {
    "documents": "lines",
    "chunk_size": "1k",
    "fan_in": 99,
    "resume": False,
}


def test_one_set_of_keywords_serves_every_function_that_trains(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("low lower")
    given: dict[str, Any] = {**OF_FILES, "field": "zzz", "progress": "none", "pattern": "gpt2"}
    trained = [
        raybpe.train(tmp_path / "a.txt", 258, **given),
        raybpe.train_from_iterator(["low lower"], 258, **given),
        raybpe.train_from_counts({"low": 1, " lower": 1}, 258, **given),
    ]
    assert [tokenizer.vocab_size for tokenizer in trained] == [258] * 3


def test_unknown_keywords_are_named_with_those_there_are() -> None:
    for function, data in (("train_from_iterator", ["ab"]), ("train_from_counts", {"ab": 2})):
        said = f"{function} has no keyword 'patern'; it takes .*, pattern, "
        with pytest.raises(ArgumentTypeError, match=said):
            getattr(raybpe, function)(data, 257, patern="gpt2")


def test_all_of_train_are_taken() -> None:
    of_train = inspect.signature(raybpe.train).parameters.keys() - {"inputs", "vocab_size"}
    assert TrainKeywords.__optional_keys__ == of_train


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
