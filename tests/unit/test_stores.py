"""URIs that cannot be used are refused with one clear error, whatever they are given for."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import raybpe
from raybpe.cli.app import run
from raybpe.errors import TransientError, UsageError
from raybpe.filesystems import explain, local_path, resolve
from raybpe.stores import fsspec_filesystem

COUNTS = raybpe.Counts.from_mapping({"ab": 2})
QUIET: dict[str, Any] = {"progress": "none", "executor": "local"}
CALLS: dict[str, Callable[[str], Any]] = {
    "input": lambda uri: raybpe.count(uri, **QUIET),
    "output": lambda uri: raybpe.train_from_counts({"ab": 2}, 257, output=uri, **QUIET),
    "Counts.save": COUNTS.save,
    "Counts.load": raybpe.Counts.load,
    "Tokenizer.load": raybpe.Tokenizer.load,
    "resolve": resolve,
}
NAMELESS = {
    "s3://": "names no bucket; s3://, gs://, .* work",
    "S3://": "names no bucket",
    "s3:///key": "names no bucket",
    "s3://?region=x": "names no bucket",
    "gs://": "names no bucket",
    "abfs://": "names no container",
    "https://": "names no host",
    "hf://": "names no repository; write hf://OWNER/NAME",
    "hf://datasets/": "names no repository",
    "hf://a": "names no repository",
    "hdfs://": "names nothing",
    "ftp://": "names nothing",
    "github://": "names nothing",
    "file://": "names no file or folder",
    "file://host/a": "write file:///host/a with three slashes",
    "data://x": "holds its own content",
}
UNOPENED = {
    "ftp://host/a": "needs host for it, which a URI does not give; s3://, .* work",
    "github://a/b": "needs org and repo for it",
    "jupyter://host/a": "needs url for it",
    "webhdfs://host/a": "needs host for it",
    "reference://a": "needs fo for it",
    "dbfs://a": "needs instance and token for it",
    "dir://a": "AttributeError: .* work",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("uri", [*NAMELESS, *UNOPENED])
def test_what_cannot_be_used_is_refused(uri: str, call: str, elsewhere: Path) -> None:
    with pytest.raises(UsageError, match={**NAMELESS, **UNOPENED}[uri]) as caught:
        CALLS[call](uri)
    assert uri.partition("?")[0] in str(caught.value)
    assert not list(elsewhere.iterdir())  # such as a folder "s3:"


@pytest.mark.parametrize("uri", ["s3://", "file://"])
def test_the_command_line_refuses_it_too(
    uri: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "a.txt").write_text("abab")
    assert run(["count", uri, "-o", "counts"]) == 2
    assert run(["count", "a.txt", "-o", uri]) == 2
    assert run(["train", "a.txt", "-o", uri, "--vocab-size", "257"]) == 2
    assert capsys.readouterr().err.count(f"error: {uri} names no") == 3
    assert os.listdir() == ["a.txt"]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.sftp", raising=False)
    with pytest.raises(UsageError, match=r'sftp://host/a: .*"paramiko".*; install') as caught:
        resolve("sftp://host/a")
    assert "raybpe[" not in str(caught.value)


def test_hadoop_without_java_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow.fs import FileSystem

    def fail(_: str) -> None:
        raise OSError("Unable to load libjvm\ndlopen(a) failed: No such file\ndlopen(b) failed")

    monkeypatch.setattr("pyarrow.fs.FileSystem", type("F", (FileSystem,), {"from_uri": fail}))
    with pytest.raises(UsageError, match=r"libjvm; hdfs:// needs Java") as caught:
        resolve("hdfs://host/a")
    assert "dlopen" not in str(caught.value)


def test_capitals_are_the_same_scheme() -> None:
    assert resolve("S3://bucket/a?region=eu-west-1") == resolve("s3://bucket/a?region=eu-west-1")


def test_what_fsspec_knows_is_opened() -> None:
    assert fsspec_filesystem("memory").protocol == "memory"


def test_http_is_not_called_ssl() -> None:
    told = explain("http://h/a", ConnectionError("Cannot connect to host h:9 ssl:default [x]"))
    assert isinstance(told, TransientError)
    assert "ssl" not in str(told)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c", "/a/b c"),
        ("file:///a/b%23c.txt", "/a/b#c.txt"),
        ("file:///a/q%3F.txt", "/a/q?.txt"),
        ("file:///a/b#c.txt", "/a/b#c.txt"),
        ("file:///a/q?.txt", "/a/q?.txt"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("/a/b%23c?#", "/a/b%23c?#"),
    ],
)
def test_paths_of_file_uris(uri: str, path: str) -> None:
    assert local_path(uri) == path


@pytest.mark.parametrize("name", ["a#b.txt", "q?.txt"])
def test_files_of_odd_names_are_read(name: str, elsewhere: Path) -> None:
    (elsewhere / name).write_text("abab")
    for written in (name, name.replace("#", "%23").replace("?", "%3F")):
        assert raybpe.count(f"file://{elsewhere}/{written}", **QUIET).total == 1


@pytest.mark.parametrize("call", [name for name in CALLS if name != "resolve"])
@pytest.mark.parametrize("name", ["a\0b", "file:///a%00", "x" * 100_000, "x" * 256, "x/" * 2500])
def test_names_that_no_file_can_have(name: str, call: str) -> None:
    with pytest.raises(UsageError, match="no file can have") as caught:
        CALLS[call](name)
    assert len(str(caught.value)) < 250


DELETED = """
import os, sys, tempfile
from raybpe.cli.app import run
folder = tempfile.mkdtemp()
os.chdir(folder)
os.rmdir(folder)
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "command",
    [
        ["count", "a.txt", "-o", "/dev/null"],
        ["count", "/dev/null", "-o", "counts"],
        ["train", "/dev/null", "--vocab-size", "257", "-o", "out"],
        ["counts", "show", "counts"],
        ["counts", "add", "/dev/null", "-o", "counts"],
        ["inspect", "tokenizer"],
    ],
)
def test_a_current_folder_that_was_deleted(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", DELETED, *command], capture_output=True, text=True)
    assert "which was deleted; change to a folder" in done.stderr
    assert done.returncode == 2
