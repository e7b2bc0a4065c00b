"""Storage: whole files or none, locally and in an object store."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import fsspec
import pytest

from raybpe import storage
from raybpe.errors import InputError, OutputError, TransientError, UsageError
from raybpe.filesystems import attempt, explain, shown, split_query


@pytest.fixture(params=["local", "file", "memory"])
def folder(request, tmp_path: Path):
    if request.param == "memory":
        yield f"memory://{uuid.uuid4().hex}/run"
        fsspec.filesystem("memory").store.clear()
    else:
        yield f"file://{tmp_path}/a run" if request.param == "file" else str(tmp_path / "a run")


def test_write_read_list_delete(folder: str) -> None:
    path = storage.join(folder, "counts", "part.arrow")
    assert not storage.exists(path)
    assert storage.names(storage.join(folder, "counts")) == []
    storage.write(path, b"first")
    storage.write(path, b"second")
    storage.write_stream(storage.join(folder, "counts", "b"), lambda sink: sink.write(b"streamed"))
    assert storage.exists(path)
    assert storage.read(path).to_pybytes() == b"second"
    assert storage.names(storage.join(folder, "counts")) == ["b", "part.arrow"]
    storage.delete(path)
    storage.delete(path)
    assert not storage.exists(path)
    storage.delete(folder)
    assert not storage.exists(storage.join(folder, "counts", "b"))


def test_empty_files(folder: str) -> None:
    storage.write(storage.join(folder, "marker"), b"")
    assert storage.read(storage.join(folder, "marker")).to_pybytes() == b""


def test_names_do_not_compress(folder: str) -> None:
    storage.write(storage.join(folder, "a.gz"), b"plain")
    assert storage.read(storage.join(folder, "a.gz")).to_pybytes() == b"plain"


def test_missing(folder: str) -> None:
    with pytest.raises(InputError, match="does not exist"):
        storage.read(storage.join(folder, "nothing"))


def test_check_writable_leaves_nothing(folder: str) -> None:
    storage.check_writable(folder)
    assert storage.names(folder) == []


def test_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(OutputError, match="cannot write"):
        storage.check_writable(str(tmp_path / "file"))
    with pytest.raises(OutputError, match="cannot write"):
        storage.write("/proc/nowhere/file", b"x")


def test_interrupted_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    storage.write(str(path), b"before")

    def interrupted(sink) -> None:
        sink.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        storage.write_stream(str(path), interrupted)
    assert path.read_bytes() == b"before"
    assert storage.names(str(tmp_path)) == ["a"]
    assert len(list(tmp_path.iterdir())) == 1


def test_options_stay_at_the_end_and_keys_are_not_shown() -> None:
    uri = "s3://key:secret@bucket/run?region=eu-west-1"
    assert storage.join(uri, "a", "b") == "s3://key:secret@bucket/run/a/b?region=eu-west-1"
    assert shown(uri) == "s3://bucket/run"
    assert split_query("https://host/a?b=c") == ("https://host/a?b=c", "")
    assert shown("https://me:secret@host/a?signature=secret") == "https://host/a"


@pytest.mark.parametrize("uri", ["https://host/a?signature=secret", "s3://me:secret@bucket/a"])
def test_errors_of_libraries_do_not_show_keys(uri: str) -> None:
    assert "secret" not in str(explain(uri, OSError(f"403 forbidden, url={uri}")))
    assert "secret" not in str(explain(uri, OSError(f"cannot parse {uri}")))


def test_options_that_nothing_would_read_are_refused() -> None:
    with pytest.raises(UsageError, match="no options"):
        storage.read("memory://folder/a?version=2")


def test_trouble_that_passes_is_tried_again(monkeypatch) -> None:
    monkeypatch.setattr("raybpe.filesystems.FIRST_PAUSE_SECONDS", 0.0)
    calls = []

    def flaky() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("AWS Error SLOW_DOWN: please reduce your request rate")
        return "done"

    assert attempt("s3://bucket/a", flaky) == "done"

    def down() -> str:
        calls.append(1)
        raise ConnectionResetError("connection reset by peer")

    calls.clear()
    with pytest.raises(TransientError, match="s3://bucket/a"):
        attempt("s3://bucket/a", down)
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("uri", "error", "kind"),
    [
        ("a.txt", FileNotFoundError(2, "No such file"), InputError),
        ("a.txt", PermissionError(13, "Permission denied"), InputError),
        ("a.txt", OSError(5, "Input/output error"), TransientError),
        ("a.txt", OSError("503 is in the name of this file"), InputError),
        ("s3://b/a", OSError("When reading: AWS Error ACCESS_DENIED"), InputError),
        ("s3://b/a", OSError("AWS Error NETWORK_CONNECTION: timeout"), TransientError),
        ("s3://b/a", OSError("HTTP 503 Service Unavailable"), TransientError),
        ("s3://b/a", OSError("AWS Error NO_SUCH_BUCKET"), InputError),
    ],
)
def test_errors_are_sorted(uri: str, error: Exception, kind: type) -> None:
    assert type(explain(uri, error)) is kind


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_pipes_and_links_are_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    storage.check_replaceable(str(pipe))
    storage.write(str(pipe), b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()
    (tmp_path / "link").symlink_to("target")
    storage.check_replaceable(str(tmp_path / "link"))
    storage.write(str(tmp_path / "link"), b"one")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"one"
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe", "target"]


def test_check_replaceable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    for path in ("file", "new"):
        storage.check_replaceable(str(tmp_path / path))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]
    for path in (str(tmp_path), str(tmp_path / "file" / "x"), ""):
        with pytest.raises(OutputError, match="folder"):
            storage.check_replaceable(path)


def test_trying_to_write_leaves_nothing_and_clears_what_a_killed_try_left(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / f".write-test-0a1b2c3d.{dead.pid}.0a1b2c3d.tmp").write_bytes(b"ray")
    (tmp_path / "kept.txt").write_bytes(b"kept")
    storage.check_writable(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
