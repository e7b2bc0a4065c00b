"""Data sets to shards: same bytes for any workers, order kept, resumed after a kill, and back."""

import json
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import raybpe
from raybpe.config import RunOptions
from raybpe.errors import InputError, OutputError, UsageError
from raybpe.flow.dataset import encode_dataset
from raybpe.flow.dataset import local as local_module
from raybpe.flow.dataset.decode import ids_of
from raybpe.flow.dataset.shards import npy_header
from raybpe.tokenizer.tokenizer import Tokenizer

SEPARATOR = "<|endoftext|>"


@pytest.fixture(scope="module")
def tokenizer(sample_text: Callable[[int], bytes]) -> Tokenizer:
    text = sample_text(200_000).decode()
    return raybpe.train_from_iterator(text.split(SEPARATOR), 700, progress="none")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    names = [thread.name for thread in threading.enumerate() if thread.name.startswith("Thread-")]
    assert not names


def encode(
    tokenizer: Tokenizer, inputs: object, output: Path, *, chunk: int = 64 * 10**6, **more: object
) -> Path:
    run = {key: more.pop(key) for key in ("workers", "resume", "documents", "field") if key in more}
    inputs = inputs if isinstance(inputs, list) else [inputs]
    options = RunOptions(
        executor="local", output=str(output), chunk_bytes=chunk, progress="none", **run
    )  # type: ignore[arg-type]
    encode_dataset(tokenizer, [str(one) for one in inputs], options, **more)  # type: ignore[arg-type]
    return output


def flat(tokenizer: Tokenizer, folder: Path) -> list[int]:
    return [int(i) for ids in ids_of(str(folder), tokenizer, None) for i in ids]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_one_file_gives_its_own_ids(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path
) -> None:
    folder = encode(tokenizer, sample_file, tmp_path / "t", eot_token=SEPARATOR)
    assert flat(tokenizer, folder) == tokenizer.encode(sample_file.read_bytes())
    index = json.loads((folder / "index.json").read_text())
    assert index["tokens"] == sum(shard["tokens"] for shard in index["shards"])
    documents = sample_file.read_text().count(SEPARATOR) + 1
    assert sum(shard["documents"] for shard in index["shards"]) == documents
    assert not (folder / ".raybpe").exists()


@pytest.mark.parametrize("form", ["npy", "bin", "parquet"])
def test_same_bytes_for_any_workers(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path, form: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    reference = encode(tokenizer, sample_file, tmp_path / "1", chunk=70_000, workers=1,
                       format=form, eot_token=SEPARATOR)  # fmt: skip
    monkeypatch.setattr("raybpe.flow.dataset.steps.UNIT_BYTES", 9_000)
    for workers in (2, 8):
        again = encode(tokenizer, sample_file, tmp_path / str(workers), chunk=70_000,
                       workers=workers, format=form, eot_token=SEPARATOR)  # fmt: skip
        if form == "parquet":  # row groups follow units
            assert flat(tokenizer, again) == flat(tokenizer, reference)
        else:
            assert contents(again) == contents(reference)


@pytest.mark.parametrize("chunk", [1, 7, 1000, 10**6])
@pytest.mark.parametrize("form", ["npy", "bin", "parquet"])
def test_chunk_size_changes_shards_not_ids(
    tokenizer: Tokenizer, tmp_path: Path, chunk: int, form: str
) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(f"a  b\n\n  c 12345{SEPARATOR}don't नमस्ते{SEPARATOR}\n\xff".encode() + b"\xff")
    folder = encode(tokenizer, text, tmp_path / "t", chunk=chunk, format=form,
                    eot_token=SEPARATOR)  # fmt: skip
    data = b"".join(tokenizer.decode_bytes(ids) for ids in ids_of(str(folder), tokenizer, None))
    assert data == text.read_bytes()
    assert flat(tokenizer, folder) == tokenizer.encode(text.read_bytes())


def test_documents_keep_their_order_with_eot_between(tokenizer: Tokenizer, tmp_path: Path) -> None:
    texts = ["first document", "", "third\nwith two lines", "last"]
    (tmp_path / "in").mkdir()
    for name, text in zip("cabd", texts, strict=True):
        (tmp_path / "in" / f"{name}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    folder = encode(tokenizer, tmp_path / "in", tmp_path / "t", eot_token=SEPARATOR)
    eot = tokenizer.special_tokens[SEPARATOR]
    in_order = ["", "third\nwith two lines", "first document", "last"]  # a, b, c, d
    expected: list[int] = []
    for number, text in enumerate(in_order):
        expected += ([eot] if number else []) + tokenizer.encode(text)
    assert flat(tokenizer, folder) == expected
    nothing = encode(tokenizer, tmp_path / "in", tmp_path / "n", eot_token=None)
    assert flat(tokenizer, nothing) == [i for text in in_order for i in tokenizer.encode(text)]


@pytest.mark.parametrize(
    "text",
    [
        f"one{SEPARATOR}two, 2{SEPARATOR}",
        f"{SEPARATOR}one {SEPARATOR} two{SEPARATOR}\n",
        f"a{SEPARATOR}{SEPARATOR}{SEPARATOR}b{SEPARATOR}{SEPARATOR}",
        SEPARATOR,
    ],
)
@pytest.mark.parametrize("chunk", [1, 3, 11, 10**6])
def test_documents_are_counted_alike_in_every_form(
    tokenizer: Tokenizer, tmp_path: Path, text: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raybpe.inputs.pieces.READ_BYTES", 16)
    path = tmp_path / "text.txt"
    path.write_text(text)
    counted = set()
    for form in ("npy", "bin", "parquet"):
        folder = encode(tokenizer, path, tmp_path / form, chunk=chunk, format=form,
                        eot_token=SEPARATOR)  # fmt: skip
        index = json.loads((folder / "index.json").read_text())
        counted.add(sum(shard["documents"] for shard in index["shards"]))
        ids = tokenizer.encode(text)
        ends_in_one = form == "parquet" and text.endswith(SEPARATOR)  # rows have it between them
        assert flat(tokenizer, folder) == (ids[:-1] if ends_in_one else ids)
    documents = text.split(SEPARATOR)
    assert counted == {len(documents) - (documents[-1] == "")}


@pytest.mark.parametrize("chunk", [1, 5, 10**6])
def test_lines(tokenizer: Tokenizer, tmp_path: Path, chunk: int) -> None:
    text = tmp_path / "lines.txt"
    text.write_text("one\ntwo words\n\nfour\n")
    folder = encode(tokenizer, text, tmp_path / "t", chunk=chunk, documents="lines",
                    eot_token=SEPARATOR)  # fmt: skip
    decoded = tokenizer.decode(flat(tokenizer, folder))
    assert decoded == SEPARATOR.join(["one", "two words", "", "four"])


def test_parquet_has_a_row_per_document(tokenizer: Tokenizer, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    text = tmp_path / "text.txt"
    text.write_text(f"one{SEPARATOR}two two{SEPARATOR}{SEPARATOR}four")
    folder = encode(tokenizer, text, tmp_path / "t", format="parquet", eot_token=SEPARATOR)
    rows = pq.read_table(folder / "shard-00000.parquet")["ids"].to_pylist()
    assert [tokenizer.decode(row) for row in rows] == ["one", "two two", "", "four"]


def test_a_killed_run_goes_on(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = encode(tokenizer, sample_file, tmp_path / "whole", chunk=50_000, eot_token=SEPARATOR)
    written: list[str] = []
    write = local_module.write_shard

    def dying(folder: str, name: str, *rest: object) -> object:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(name)
        return write(folder, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(local_module, "write_shard", dying)
    with pytest.raises(KeyboardInterrupt):
        encode(tokenizer, sample_file, tmp_path / "t", chunk=50_000, eot_token=SEPARATOR)
    assert not (tmp_path / "t" / "index.json").exists()
    with pytest.raises(InputError, match="not finished"):
        flat(tokenizer, tmp_path / "t")
    with pytest.raises(UsageError, match="dtype"):
        encode(tokenizer, sample_file, tmp_path / "t", chunk=50_000, eot_token=SEPARATOR,
               dtype="uint32")  # fmt: skip
    again: list[str] = []
    monkeypatch.setattr(
        local_module, "write_shard",
        lambda folder, name, *rest: (again.append(name), write(folder, name, *rest))[1],
    )  # fmt: skip
    (tmp_path / "t" / ".shard-00002.npy.99999999.0a1b2c3d.tmp").touch()  # of a kill -9
    encode(tokenizer, sample_file, tmp_path / "t", chunk=50_000, eot_token=SEPARATOR)
    assert not set(written) & set(again)
    assert contents(tmp_path / "t") == contents(whole)


def test_a_finished_data_set_is_left_alone(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path
) -> None:
    folder = encode(tokenizer, sample_file, tmp_path / "t", chunk=50_000)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    encode(tokenizer, sample_file, folder, chunk=50_000)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    with pytest.raises(UsageError, match="chunk bytes was 50000, is 60000"):
        encode(tokenizer, sample_file, folder, chunk=60_000)
    encode(tokenizer, sample_file, folder, chunk=10**9, resume=False)
    assert sorted(contents(folder)) == ["index.json", "shard-00000.npy"]


def test_an_input_that_changed_within_its_size_is_refused(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{name}.txt" for name in "abc"]
    for path in paths:
        path.write_text("some text " * 3000)
    folder = encode(tokenizer, list(paths), tmp_path / "t", chunk=5000)
    text = "SOME text " * 3000
    paths[1].write_text(text)
    said = rf"input {re.escape(str(paths[1]))} was {{.*30000.*, is {{.*30000.*--no-resume"
    with pytest.raises(UsageError, match=said) as no:
        encode(tokenizer, list(paths), folder, chunk=5000)
    assert "a.txt" not in str(no.value)
    encode(tokenizer, list(paths), folder, chunk=5000, resume=False)
    assert text in tokenizer.decode(flat(tokenizer, folder))

    write = local_module.write_shard
    monkeypatch.setattr(local_module, "write_shard", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        encode(tokenizer, list(paths), folder, chunk=5000, resume=False)
    monkeypatch.setattr(local_module, "write_shard", write)
    paths[2].write_text(text)
    with pytest.raises(UsageError, match=r"input .*c\.txt was"):
        encode(tokenizer, list(paths), folder, chunk=5000)


def test_dtypes(tokenizer: Tokenizer, sample_file: Path, tmp_path: Path) -> None:
    small = encode(tokenizer, sample_file, tmp_path / "a")
    assert np.load(small / "shard-00000.npy").dtype == np.uint16
    wide = encode(tokenizer, sample_file, tmp_path / "b", dtype="uint32", format="bin")
    ids = np.fromfile(wide / "shard-00000.bin", np.uint32)
    assert (ids == np.load(small / "shard-00000.npy")).all()
    high = dict(tokenizer.vocab) | {70_000: b"rare enough"}
    big = Tokenizer(high, tokenizer.merges, pattern="gpt2")
    assert np.load(encode(big, sample_file, tmp_path / "c") / "shard-00000.npy").dtype == np.uint32
    with pytest.raises(UsageError, match="uint16"):
        encode(big, sample_file, tmp_path / "d", dtype="uint16")


def test_what_is_refused(tokenizer: Tokenizer, sample_file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="special token"):
        encode(tokenizer, sample_file, tmp_path / "t", eot_token="<eot>")
    with pytest.raises(UsageError, match="format"):
        encode(tokenizer, sample_file, tmp_path / "t", format="csv")
    with pytest.raises(InputError):
        encode(tokenizer, tmp_path / "missing.txt", tmp_path / "t")
    with pytest.raises(OutputError):
        encode(tokenizer, sample_file, sample_file / "t")
    assert not (tmp_path / "t").exists()
    with pytest.raises(UsageError, match="within the input"):  # the next run would read its index
        encode(tokenizer, tmp_path, tmp_path / "t")
    for name, content in (("x.npy", b"no"), ("x.parquet", b"no"), ("x.txt", b"\xff")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            flat(tokenizer, tmp_path / name)


@pytest.mark.parametrize("format", ["npy", "bin", "parquet"])
def test_a_damaged_data_set_is_not_decoded_quietly(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path, format: str
) -> None:
    form = {"format": format, "eot_token": SEPARATOR}
    folder = encode(tokenizer, sample_file, tmp_path / "t", **form)
    other = encode(tokenizer, sample_file, tmp_path / "o", chunk=50_000, **form)
    (folder / f"shard-00000.{format}").write_bytes((other / f"shard-00000.{format}").read_bytes())
    with pytest.raises(InputError, match="the index says"):
        flat(tokenizer, folder)
    (folder / f"shard-00000.{format}").write_bytes(b"odd")
    with pytest.raises(InputError, match="shard-00000"):
        flat(tokenizer, folder)


@pytest.mark.parametrize("ids", [[1, 2], [[1, None]], [[1], None], [[1.5]], [["a"]]])
def test_tables_of_anything_but_ids_are_refused(
    tokenizer: Tokenizer, tmp_path: Path, ids: list[object]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"ids": ids}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="no shard of a data set"):
        flat(tokenizer, tmp_path / "x.parquet")


def test_reading_trouble_stops_all_threads(tokenizer: Tokenizer, tmp_path: Path) -> None:
    good, bad = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    good.write_text('{"text": "fine"}\n' * 1000)
    bad.write_text('{"text": 3}\n')
    with pytest.raises(InputError, match=r"b\.jsonl"):
        encode(tokenizer, [good, bad], tmp_path / "t", chunk=1000, workers=3)


def test_npy_header_is_what_numpy_writes(tmp_path: Path) -> None:
    ids = np.arange(12345, dtype="<u2")
    file = tmp_path / "x.npy"
    file.write_bytes(npy_header("uint16", len(ids)) + ids.tobytes())
    assert (np.load(file) == ids).all()
    np.save(tmp_path / "y.npy", ids)
    assert (tmp_path / "y.npy").read_bytes() == file.read_bytes()


def test_small_files_of_shared(tokenizer: Tokenizer, shared: Path, tmp_path: Path) -> None:
    for path in sorted((shared / "corpora" / "small").iterdir()):
        if path.stat().st_size == 0 or path.suffix == ".bin":
            continue
        folder = encode(tokenizer, path, tmp_path / path.name, chunk=5000, eot_token=SEPARATOR)
        assert flat(tokenizer, folder) == tokenizer.encode(path.read_bytes()), path.name


def test_a_foreign_index_is_neither_used_nor_deleted(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "precious").mkdir()
    folder = tmp_path / "t"
    shard = {"file": "shard-00000.npy", "documents": 1, "tokens": 1, "text_bytes": 1}
    foreign: list[object] = [
        [],
        {"name": "somebody's"},
        {"format": 1, "shards": [shard | {"file": "../precious"}]},
        {"format": 1, "shards": [shard | {"file": str(tmp_path / "precious")}]},
        {"format": 1, "shards": [shard | {"file": ""}, 3]},
        {"format": 1, "shards": [shard | {"tokens": "many"}]},
        {"format": 1, "shards": [shard | {"more": 1}]},
        {"format": 2, "shards": [shard]},
    ]
    folder.mkdir()
    for content in foreign:
        (folder / "index.json").write_text(json.dumps(content))
        for resume in (False, True):
            with pytest.raises(InputError, match=r"index\.json"):
                encode(tokenizer, sample_file, folder, resume=resume)
        with pytest.raises(InputError, match=r"index\.json"):
            flat(tokenizer, folder)
    assert [path.name for path in folder.iterdir()] == ["index.json"]
    assert (tmp_path / "precious").is_dir()


def test_a_foreign_index_beside_ids_does_not_matter(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text("[]")
    (tmp_path / "ids.txt").write_text("[1, 2]", encoding="utf-8")
    assert flat(tokenizer, tmp_path / "ids.txt") == [1, 2]


def test_ids_of_another_tokenizer_are_not_decoded(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path
) -> None:
    folder = encode(tokenizer, sample_file, tmp_path / "t")
    other = raybpe.train_from_iterator(["aa bb"] * 9, 260, progress="none")
    for source in (folder, folder / "shard-00000.npy"):
        with pytest.raises(UsageError, match=other.fingerprint()) as caught:
            flat(other, source)
        assert tokenizer.fingerprint() in str(caught.value)


def test_a_tokenizer_that_merges_otherwise_is_another(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path
) -> None:
    folder = encode(tokenizer, sample_file, tmp_path / "t")
    other = Tokenizer(
        dict(tokenizer.vocab), tokenizer.merges, tokenizer.special_tokens,
        pattern=tokenizer.pattern, ignore_merges=True,
    )  # fmt: skip
    with pytest.raises(UsageError, match="tokenizer was"):
        encode(other, sample_file, folder)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_lines_longer_than_a_buffer(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    line = "many words on a line " * 300
    text = tmp_path / "a.txt"
    text.write_text(f"one\n{line}\nthree\n")
    more = {"format": kind, "eot_token": SEPARATOR, "documents": "lines"}
    whole = encode(tokenizer, text, tmp_path / "whole", **more)
    monkeypatch.setattr("raybpe.inputs.pieces.READ_BYTES", 500)
    assert contents(encode(tokenizer, text, tmp_path / "t", **more)) == contents(whole)


@pytest.mark.parametrize("form", ["npy", "bin", "parquet"])
def test_what_is_passed_over_is_told(
    tokenizer: Tokenizer, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"text": "one"}\n{"text": null}\n')
    with tarfile.open(tmp_path / "in" / "b.tar", "w") as tar:
        for name in (".hidden.txt", "c.txt"):
            tar.addfile(tarfile.TarInfo(name))
    options = RunOptions(executor="local", output=str(tmp_path / "out"))
    encode_dataset(tokenizer, [str(tmp_path / "in")], options, format=form)  # type: ignore[arg-type]
    told = capsys.readouterr().err
    assert "1 records have no text" in told
    assert "1 members of tar files" in told
    assert flat(tokenizer, tmp_path / "out") == tokenizer.encode("one")
