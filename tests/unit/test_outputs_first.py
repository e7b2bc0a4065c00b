"""An output that cannot be written is refused before any work, not after it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import raybpe
from raybpe.cli import app as cli
from raybpe.errors import OutputError
from raybpe.flow import local, steps

QUIET: dict[str, Any] = {"progress": "none", "executor": "local"}
Call = Callable[[Path, Path], object]
CALLS: dict[str, Call] = {
    "count": lambda text, output: raybpe.count(text, output=output, **QUIET),
    "count_from_iterator": lambda _, output: raybpe.count_from_iterator(
        ["text"], output=output, progress="none"
    ),
    "train": lambda text, output: raybpe.train(text, 300, output=output, **QUIET),
    "train_from_iterator": lambda _, output: raybpe.train_from_iterator(
        ["text"], 300, output=output, **QUIET
    ),
    "train_from_counts": lambda _, output: raybpe.train_from_counts(
        {"text": 3}, 300, output=output, **QUIET
    ),
}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("some text")
    return path


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*_: object, **__: object) -> NoReturn:
        raise AssertionError("work has begun")

    monkeypatch.setattr(steps, "count_chunk", work)
    monkeypatch.setattr(local, "count_texts", work)
    monkeypatch.setattr(local.LocalExecutor, "merge", work)
    monkeypatch.setattr(raybpe.Counts, "sum", work)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_place_below_a_file(text: Path, call: Call) -> None:
    with pytest.raises(OutputError, match="a file is where a folder is needed"):
        call(text, text / "output")


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", ["count", "count_from_iterator"])
def test_a_folder_for_counts(text: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OutputError, match="it is a folder; name a file with --output"):
        CALLS[name](text, folder)
    assert list(folder.iterdir()) == []
    assert sorted(tmp_path.iterdir()) == [folder, text]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", ["train", "train_from_iterator", "train_from_counts"])
def test_a_file_for_a_tokenizer(text: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="a file is where a folder is needed"):
        CALLS[name](text, tmp_path / "file")


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("command", [["count", "text.txt"], ["counts", "add", "counts.arrow"]])
def test_commands_for_counts(
    text: Path,
    tmp_path: Path,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    raybpe.Counts.from_mapping({"low": 5}).save("counts.arrow")
    assert cli.run([*command, "-o", str(tmp_path)]) == 1
    assert "it is a folder" in capsys.readouterr().err


def test_a_failed_count_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"bad \xff byte")
    with pytest.raises(raybpe.errors.InputError):
        CALLS["count"](tmp_path / "text.txt", tmp_path / "new" / "counts.arrow")
    assert not (tmp_path / "new").exists()
