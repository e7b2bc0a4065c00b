"""Data sets encoded again: nothing of an earlier one stays, and nothing else goes."""

from pathlib import Path

import numpy as np
import pytest

from raybpe import storage
from raybpe.config import RunOptions
from raybpe.errors import OutputError, UsageError
from raybpe.flow.dataset import encode_dataset
from raybpe.flow.dataset import local as local_module
from raybpe.tokenizer.tokenizer import Tokenizer

BYTES = Tokenizer({number: bytes([number]) for number in range(256)}, [])
TEXT = b"some text\n" * 2000


def encode(source: Path, folder: Path, chunk: int = 10**6, resume: bool = True, **more: str) -> int:
    options = RunOptions(
        executor="local", output=str(folder), chunk_bytes=chunk, resume=resume, progress="none"
    )
    return len(encode_dataset(BYTES, [str(source)], options, **more).shards)  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def encode_killed(
    monkeypatch: pytest.MonkeyPatch, after: int, source: Path, folder: Path, **more: str
) -> None:
    """Encode in chunks of 2,000 bytes, and die after some shards."""
    write, written = local_module.write_shard, []

    def dying(folder: str, name: str, *rest: object) -> object:
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(name)
        return write(folder, name, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(local_module, "write_shard", dying)
        with pytest.raises(KeyboardInterrupt):
            encode(source, folder, 2000, **more)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT)
    return path


def test_starting_over_leaves_no_shard_of_an_unfinished_run(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t"
    encode_killed(monkeypatch, 8, text, folder, format="bin", dtype="uint16")
    assert len(list(folder.glob("*.bin"))) == 8
    assert encode(text, folder, 7000, resume=False, format="bin", dtype="uint16") == 3
    assert names(folder) == ["index.json", *(f"shard-0000{number}.bin" for number in range(3))]
    joined = b"".join(path.read_bytes() for path in sorted(folder.glob("*.bin")))
    assert np.frombuffer(joined, np.uint16).astype(np.uint8).tobytes() == TEXT


def test_starting_over_in_another_format_keeps_what_is_no_shard(text: Path, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    encode(text, folder, 2000)
    others = ["README", "shard-1.npy", "shard-00000.npy.bak", "shard-00000.txt", "my-shard-00000"]
    for name in others:
        (folder / name).write_text("precious")
    encode(text, folder, resume=False, format="bin")
    assert names(folder) == sorted(["index.json", "shard-00000.bin", *others])


@pytest.mark.parametrize("deletions", [1, 2, 4])
def test_a_kill_while_starting_over_is_noticed(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletions: int
) -> None:
    folder = tmp_path / "t"
    encode_killed(monkeypatch, 8, text, folder)
    delete, deleted = storage.delete, []

    def dying(path: str) -> None:
        if len(deleted) == deletions:
            raise KeyboardInterrupt
        deleted.append(path)
        delete(path)

    with monkeypatch.context() as patched:
        patched.setattr(storage, "delete", dying)
        with pytest.raises(KeyboardInterrupt):
            encode(text, folder, 7000, resume=False)
    for chunk in (2000, 7000):
        with pytest.raises(UsageError, match=r"holds shard-0000.\.npy, and no record.*--no-resume"):
            encode(text, folder, chunk)
    assert encode(text, folder, 7000, resume=False) == 3
    assert len(names(folder)) == 4


def test_shards_without_a_record_are_not_mixed_with_new_ones(text: Path, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    encode(text, folder, 2000)
    (folder / "index.json").unlink()
    before = names(folder)
    with pytest.raises(UsageError, match="--no-resume"):
        encode(text, folder)
    assert names(folder) == before


@pytest.mark.parametrize("resume", [True, False])
def test_inputs_that_are_named_as_shards_are_not_lost(tmp_path: Path, resume: bool) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"text": ["some text"]}), tmp_path / "shard-00000.parquet")
    before = (tmp_path / "shard-00000.parquet").read_bytes()
    with pytest.raises(UsageError, match=r"the input .*shard-00000\.parquet .*--output"):
        encode(tmp_path / "*.parquet", tmp_path, resume=resume, format="parquet")
    assert names(tmp_path) == ["shard-00000.parquet"]
    assert (tmp_path / "shard-00000.parquet").read_bytes() == before


def test_an_output_that_cannot_be_written_any_more_is_refused_before_the_work(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t"
    encode_killed(monkeypatch, 3, text, folder)

    def full(path: str, data: bytes) -> None:
        raise OutputError("the disk is full")

    worked: list[object] = []
    monkeypatch.setattr(local_module, "encode_shards", lambda *rest: worked.append(rest))
    monkeypatch.setattr(storage, "write", full)
    with pytest.raises(OutputError, match="full"):
        encode(text, folder, 2000)
    assert not worked
