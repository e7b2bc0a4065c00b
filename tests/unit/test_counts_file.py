"""The counts file: equal counts are equal bytes; anything else than a counts file is refused."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from raybpe.config import CountConfig
from raybpe.counts.arrow import SCHEMA
from raybpe.counts.counts import CountedSource, Counts
from raybpe.errors import CountsError, InputError, OutputError

CONFIG = CountConfig("a pattern", "gpt2", ("<|endoftext|>", "<s>"), "keep", 99)
SOURCES = (CountedSource("b.txt", 7), CountedSource("a.txt", -1))


def some_counts(order: int = 1) -> Counts:
    mapping = {"low": 5, " lower": 2, "new": 2, b"\xff\x00": 1, "": 1}
    return Counts(
        Counts.from_mapping(dict(list(mapping.items())[::order])).table, CONFIG, SOURCES[::order]
    )


def test_round_trip(tmp_path: Path) -> None:
    some_counts().save(tmp_path / "a.arrow")
    loaded = Counts.load(tmp_path / "a.arrow")
    assert loaded == some_counts()
    assert loaded.config == CONFIG
    assert loaded.sources == SOURCES[::-1]
    assert loaded.unicode == some_counts().unicode


def test_equal_counts_are_equal_files(tmp_path: Path) -> None:
    some_counts(1).save(tmp_path / "a.arrow")
    some_counts(-1).save(str(tmp_path / "b.arrow"))
    Counts.load(tmp_path / "a.arrow").save(tmp_path / "c.arrow")
    first = (tmp_path / "a.arrow").read_bytes()
    assert first == (tmp_path / "b.arrow").read_bytes()
    assert first == (tmp_path / "c.arrow").read_bytes()


def test_any_arrow_library_reads_it(tmp_path: Path) -> None:
    some_counts().save(tmp_path / "a.arrow")
    table = pa.ipc.open_file(tmp_path / "a.arrow").read_all()
    assert table.column_names == ["pretoken", "count"]
    assert table.to_pylist()[0] == {"pretoken": b"low", "count": 5}
    assert table["pretoken"].to_pylist() == [b"low", b" lower", b"new", b"", b"\xff\x00"]
    metadata = json.loads(table.schema.metadata[b"raybpe"])
    assert metadata["pattern"] == "a pattern"
    assert metadata["total"] == 11


@pytest.mark.parametrize("counts", [Counts.from_mapping({}), Counts.from_mapping({"a": 1})])
def test_counts_without_settings(tmp_path: Path, counts: Counts) -> None:
    counts.save(tmp_path / "a.arrow")
    assert Counts.load(tmp_path / "a.arrow") == counts
    assert Counts.load(tmp_path / "a.arrow").config is None


def test_every_changed_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    some_counts().save(path)
    data = path.read_bytes()
    refused = 0
    for place in range(0, len(data), 3):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        try:
            assert dict(Counts.load(path).items()) == dict(some_counts().items())
        except CountsError:
            refused += 1
    assert refused > len(data) / 12


@pytest.mark.parametrize("name", [b"pretoken", b"count"])
def test_names_that_are_not_utf8_are_refused(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / "a.arrow"
    some_counts().save(path)
    path.write_bytes(path.read_bytes().replace(name, name[:-1] + b"\xff"))
    with pytest.raises(CountsError, match="not a counts file"):
        Counts.load(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    some_counts().save(path)
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(CountsError, match=r"a\.arrow"):
            Counts.load(path)


def _arrow(path: Path, table: pa.Table, metadata: dict[bytes, bytes] | None) -> None:
    table = table.replace_schema_metadata(metadata)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(b"not Arrow at all" * 100)
    with pytest.raises(CountsError, match="not a counts file"):
        Counts.load(path)
    _arrow(path, pa.table({"text": ["a"]}), None)
    with pytest.raises(CountsError, match="its columns are text"):
        Counts.load(path)
    _arrow(path, Counts.from_mapping({"a": 1}).table, None)
    with pytest.raises(CountsError, match="not a counts file"):
        Counts.load(path)


@pytest.mark.parametrize(
    "metadata",
    [b"", b"{", b"[]", b"{}", b'{"format": 1}', b'{"format": 2}', b'{"format": "1"}', b"\xff"],
)
def test_broken_metadata_is_refused(tmp_path: Path, metadata: bytes) -> None:
    _arrow(tmp_path / "a.arrow", Counts.from_mapping({"a": 1}).table, {b"raybpe": metadata})
    with pytest.raises(CountsError, match=r"a\.arrow"):
        Counts.load(tmp_path / "a.arrow")


@pytest.mark.parametrize("values", [[-1], [None]])
def test_impossible_counts_are_refused(tmp_path: Path, values) -> None:
    table = pa.table([[b"a"], values], schema=SCHEMA)
    metadata = {"format": 1, "sources": [], "unicode": "17.0", "rows": 1, "total": values[0]}
    _arrow(tmp_path / "a.arrow", table, {b"raybpe": json.dumps(metadata).encode()})
    with pytest.raises(CountsError, match="corrupt"):
        Counts.load(tmp_path / "a.arrow")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.arrow does not exist"):
        Counts.load(tmp_path / "gone.arrow")


def test_failed_save_leaves_what_was_there(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.arrow"
    some_counts().save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match="disk is full"):
        Counts.from_mapping({"x": 1}).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.arrow"]
