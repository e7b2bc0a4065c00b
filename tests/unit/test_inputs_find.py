"""Which files are read: folders, globs, twins, and clear refusals."""

import os
import uuid
from pathlib import Path

import fsspec
import pytest
from input_forms import texts, write

from raybpe import storage
from raybpe.errors import InputError, UsageError
from raybpe.inputs import plan_inputs
from raybpe.inputs.find import find_files
from raybpe.inputs.forms import form_of


def names(inputs, **options) -> list[str]:
    plan = plan_inputs(inputs, chunk_bytes=options.pop("chunk_bytes", 10**6), **options)
    return [Path(source.uri).name for source in plan.sources]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in {
        "b.txt": b"b",
        "a.md": b"a",
        "code/x.py": b"x",
        "code/noext": b"text without a suffix",
        "code/[1].txt": b"brackets",
        ".hidden.txt": b"no",
        ".git/config.txt": b"no",
        "image.PNG": b"no",
        "blob.xyz": b"\x00\x01",
        "nul.txt": b"a\x00b",
        "deep/er/z.jsonl": b'{"text": "z"}',
    }.items():
        write(tmp_path, name, data)
    return tmp_path


def test_folders(folder: Path) -> None:
    expected = ["a.md", "b.txt", "[1].txt", "noext", "x.py", "z.jsonl", "nul.txt"]
    assert names([folder]) == expected
    plan = plan_inputs([str(folder)], chunk_bytes=10)
    assert "3 file(s) in folders are not read, for example " in plan.notes[0]
    assert plan.notes[0].endswith(".hidden.txt (hidden)")
    (folder / ".hidden.txt").unlink()
    (note,) = plan_inputs([str(folder)], chunk_bytes=10).notes
    assert note.endswith("blob.xyz (binary: a NUL byte near its start)")
    (folder / "blob.xyz").unlink()
    (note,) = plan_inputs([str(folder)], chunk_bytes=10).notes
    assert note.endswith("image.PNG (binary: .png)")


def test_a_named_file_is_read_whatever_it_is(folder: Path) -> None:
    assert names([folder / "blob.xyz"]) == ["blob.xyz"]
    assert texts(plan_inputs([folder / ".hidden.txt"], chunk_bytes=9)) == [b"no"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["b.txt", "nul.txt"]),
        ("?.*", ["a.md", "b.txt"]),
        ("**/*.txt", ["b.txt", "[1].txt", "nul.txt"]),
        ("co*", ["[1].txt", "noext", "x.py"]),
        ("code/[1].txt", ["[1].txt"]),
        ("code/*[[]1].txt", ["[1].txt"]),
        (".h*", [".hidden.txt"]),
        ("**/co*", ["[1].txt", "noext", "x.py"]),
    ],
)
def test_globs(folder: Path, pattern: str, expected: list[str]) -> None:
    assert names([str(folder / pattern)]) == expected


def test_relative_paths_and_uris_of_files(folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    expected = plan_inputs([folder / "b.txt"], chunk_bytes=10)
    assert plan_inputs(["b.txt"], chunk_bytes=10) == expected
    assert plan_inputs(["./code/../b.txt"], chunk_bytes=10) == expected
    assert plan_inputs([f"file://{folder}/b.txt"], chunk_bytes=10) == expected
    assert plan_inputs("b.txt", chunk_bytes=10) == expected


def test_order_and_number_of_mentions_do_not_matter(folder: Path) -> None:
    first = plan_inputs([folder, folder / "b.txt"], chunk_bytes=3)
    again = plan_inputs([folder / "b.txt", str(folder / "*.txt"), folder], chunk_bytes=3)
    assert first.chunks == again.chunks
    assert first.fingerprint() == again.fingerprint()
    assert "named more than once" in first.notes[0]
    assert len(first.sources) == 7


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["gone.txt"], "gone.txt does not exist"),
        (["*.nothing"], "matches nothing"),
        (["empty"], "no text in empty"),
        (["images"], "holds only hidden and binary"),
        (["empty.txt"], r"empty\.txt is empty"),
        ([""], "empty name"),
        (["-x.txt"], "does not exist"),
        (["pipe.txt"], "pipe.txt is a pipe or device"),
        (["*.link"], "no text"),
    ],
)
def test_refusals(tmp_path: Path, monkeypatch, inputs: list[str], message: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "dangling.link").symlink_to("nowhere")
    write(tmp_path, "images/a.png", b"x")
    write(tmp_path, "empty.txt", b"")
    with pytest.raises(InputError, match=message):
        plan_inputs(inputs, chunk_bytes=10)


def test_wrong_options(folder: Path) -> None:
    with pytest.raises(UsageError, match="no input"):
        plan_inputs([], chunk_bytes=10)
    with pytest.raises(UsageError, match="chunk-size"):
        plan_inputs([folder], chunk_bytes=0)
    with pytest.raises(UsageError, match="documents"):
        plan_inputs([folder], chunk_bytes=1, documents="words")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(folder: Path) -> None:
    (folder / "b.txt").chmod(0)
    with pytest.raises(InputError, match="may not be read"):
        texts(plan_inputs([folder / "b.txt"], chunk_bytes=10))


def test_links_are_followed_to_files_and_not_to_folders(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    (folder / "link.txt").symlink_to(folder / "b.txt")
    (folder / "dangling.txt").symlink_to(folder / "gone")
    found = names([folder])
    assert found.count("b.txt") == 1
    assert "link.txt" in found
    assert "dangling.txt" not in found


def test_an_empty_file_among_others_is_fine(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", b"")
    write(tmp_path, "b.txt", b"text")
    write(tmp_path, "c.jsonl.gz", b"")
    plan = plan_inputs([tmp_path], chunk_bytes=3)
    assert texts(plan) == [b"text"]
    assert len(plan.sources) == 3


def test_many_tiny_files_share_chunks(tmp_path: Path) -> None:
    for i in range(1000):
        (tmp_path / f"{i:04d}.txt").write_bytes(b"tiny %d " % i)
    plan = plan_inputs([tmp_path], chunk_bytes=64 * 10**6)
    assert len(plan.sources) == 1000
    assert 2 <= len(plan.chunks) <= 8
    assert len(texts(plan)) == 1000


def test_most_work_comes_first_and_chunks_are_numbered(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", b"x" * 10)
    write(tmp_path, "b.txt", b"x" * 5_000_000)
    write(tmp_path, "c.txt.gz", b"x" * 2_000_000)
    plan = plan_inputs([tmp_path], chunk_bytes=3_000_000)
    order = [[Path(part.uri).name[0] for part in chunk.parts] for chunk in plan.chunks]
    assert order == [["c"], ["b"], ["b"], ["a"]]
    assert [chunk.index for chunk in plan.chunks] == [0, 1, 2, 3]
    assert plan.chunks[2].name == "chunk-00000002"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", ("text", None)),
        ("a", ("text", None)),
        ("A.JSONL.GZ", ("jsonl", "gz")),
        ("a.json.zst", ("json", "zst")),
        ("a.tar.xz", ("tar", "xz")),
        ("a.tgz", ("tar", "gz")),
        ("x.y.bz2", ("text", "bz2")),
        (".gz", ("text", None)),
        ("a.parquet", ("parquet", None)),
    ],
)
def test_forms(name: str, expected: tuple[str, str | None]) -> None:
    form = form_of(f"folder.tar/{name}")
    assert (form.format, form.compression) == expected


@pytest.fixture
def store(folder: Path):
    """The folder's files in an object store, by URI."""
    memory = fsspec.filesystem("memory")
    bucket = uuid.uuid4().hex
    memory.put(str(folder), f"/{bucket}/data", recursive=True)
    yield f"memory://{bucket}/data"
    memory.store.clear()


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("", ["a.md", "b.txt", "[1].txt", "noext", "x.py", "z.jsonl", "nul.txt"]),
        ("/code", ["[1].txt", "noext", "x.py"]),
        ("/*.txt", ["b.txt", "nul.txt"]),
        ("/**/*.txt", ["b.txt", "[1].txt", "nul.txt"]),
        ("/*/*.py", ["x.py"]),
        ("/[ab].*", ["a.md", "b.txt"]),
        ("/b.txt", ["b.txt"]),
        ("/co*", ["[1].txt", "noext", "x.py"]),
        ("/**/co*", ["[1].txt", "noext", "x.py"]),
    ],
)
def test_object_stores(store: str, folder: Path, inside: str, expected: list[str]) -> None:
    plan = plan_inputs([store + inside], chunk_bytes=10**6)
    assert [Path(source.uri).name for source in plan.sources] == expected
    beside = [folder / source.uri.removeprefix(f"{store}/") for source in plan.sources]
    local = plan_inputs(beside, chunk_bytes=10**6)
    assert sorted(texts(plan)) == sorted(texts(local))


def test_versions_change_with_content(store: str, folder: Path) -> None:
    def versions(name: str) -> list[str]:
        return [found.version for found in find_files([name]).files]

    for place in (f"{store}/b.txt", f"{store}/*.txt", str(folder / "b.txt"), str(folder)):
        assert all(versions(place))
        assert versions(place) == versions(place)
    before = versions(str(folder / "b.txt")), versions(f"{store}/b.txt")
    data = (folder / "b.txt").read_bytes()
    storage.write(str(folder / "b.txt"), data[::-1])
    storage.write(f"{store}/b.txt", data[::-1])
    after = versions(str(folder / "b.txt")), versions(f"{store}/b.txt")
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_object_stores_without_what_is_asked_for(store: str) -> None:
    with pytest.raises(InputError, match="matches nothing"):
        plan_inputs([f"{store}/*.gone"], chunk_bytes=10)
    with pytest.raises(InputError, match="does not exist"):
        plan_inputs([f"{store}/gone"], chunk_bytes=10)


def test_unknown_schemes_name_the_cure() -> None:
    with pytest.raises(UsageError, match=r"not known: nonsense; s3://, .* work"):
        plan_inputs(["nonsense://a/b"], chunk_bytes=10)
