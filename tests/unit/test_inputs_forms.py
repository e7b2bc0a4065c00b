"""Every input form gives the same documents as plain text, also when cut at every byte."""

import gzip
import json
import os
import resource
from pathlib import Path

import input_forms
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from input_forms import (
    COMPRESSIONS,
    DOCUMENTS,
    SpaceCutter,
    all_forms,
    json_lines,
    lines,
    texts,
    write,
)

from raybpe.errors import ChangedInputError, InputError
from raybpe.inputs import ReadStats, plan_inputs, read_blocks, streams

EXPECTED = [text.encode() for text in DOCUMENTS]
FORMS = all_forms(DOCUMENTS)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_same_documents_in_every_form(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, FORMS[name])
    for chunk_bytes in (1, 7, 64, 10**6):
        plan = plan_inputs([path], chunk_bytes=chunk_bytes)
        assert texts(plan) == EXPECTED, chunk_bytes
        assert sum(chunk.bytes for chunk in plan.chunks) == path.stat().st_size == plan.total_bytes


def test_json_lines_cut_at_every_byte(tmp_path: Path) -> None:
    data = b"\r\n".join(json_lines(DOCUMENTS).split(b"\n"))
    path = write(tmp_path, "a.jsonl", data)
    for chunk_bytes in range(1, len(data), 5):
        assert texts(plan_inputs([path], chunk_bytes=chunk_bytes)) == EXPECTED


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressed_text_and_lines(tmp_path: Path, compression: str) -> None:
    documents = [text for text in DOCUMENTS if "\x00" not in text]
    data = lines(documents)
    path = write(tmp_path, f"a.txt.{compression}", COMPRESSIONS[compression](data))
    assert b"".join(texts(plan_inputs([path], chunk_bytes=5))) == data
    found = texts(plan_inputs([path], chunk_bytes=5, documents="lines"))
    assert found == [text.encode() for text in documents]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_files_of_several_members(tmp_path: Path, compression: str) -> None:
    compress = COMPRESSIONS[compression]
    data = compress(b"first ") + compress(b"") + compress(b"second")
    path = write(tmp_path, f"a.{compression}", data)
    assert b"".join(texts(plan_inputs([path], chunk_bytes=5))) == b"first second"


def _long_window(data: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(data) + packer.flush()


def test_long_zstandard_windows_give_little_at_a_time() -> None:
    packed, frame = _long_window(bytes(50 * 10**6)), streams._ZstandardFrame()
    sizes = [len(frame.decompress(packed + b"more", 0))]
    assert len(packed) < 10_000
    while not frame.needs_input and not frame.eof:
        sizes.append(len(frame.decompress(b"", 0)))
    assert sum(sizes) == 50 * 10**6
    assert max(sizes) <= 2**23
    assert frame.unused_data == b"more"


def test_long_zstandard_windows(tmp_path: Path) -> None:
    packed = _long_window(b"some text " * 50_000)
    path = write(tmp_path, "a.zst", packed + packed)
    assert b"".join(texts(plan_inputs([path], chunk_bytes=5))) == b"some text " * 100_000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((f"a.{name}", compress(os.urandom(5000))) for name, compress in COMPRESSIONS.items()),
        ("long.zst", _long_window(os.urandom(50_000))),
        ("a.tar", input_forms.tar({"a.txt": b"some words " * 9000})),
        ("a.parquet", input_forms.parquet(DOCUMENTS)),
        ("a.arrow", input_forms.arrow(DOCUMENTS)),
    ],
)
def test_cut_off_files_are_refused(tmp_path: Path, name: str, data: bytes) -> None:
    for length in (len(data) // 2, 3 * len(data) // 4):
        path = write(tmp_path, name, data[:length])
        with pytest.raises(InputError, match=name):
            texts(plan_inputs([path], chunk_bytes=10**6))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_follows_the_last_member_is_refused(tmp_path: Path, compression: str) -> None:
    data = COMPRESSIONS[compression](b"some text") + b"trailing rubbish, not compressed"
    path = write(tmp_path, f"a.{compression}", data)
    with pytest.raises(InputError, match="corrupt"):
        texts(plan_inputs([path], chunk_bytes=10))


def test_compressed_text_is_read_in_constant_memory(tmp_path: Path) -> None:
    line = b"many words on a line that is repeated " * 30 + b"\n"
    path = tmp_path / "a.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(line * 800)  # 190 MB in all
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = 0
    plan = plan_inputs([path], chunk_bytes=10**6, documents="lines")
    for block in read_blocks(plan.chunks[0], SpaceCutter()):
        total += len(block.starts)
    assert total == 200 * 800
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # KB


# -- JSON lines ------------------------------------------------------------------------------


def _documents(tmp_path: Path, data: bytes, field: str = "text", stats: ReadStats | None = None):
    path = write(tmp_path, "a.jsonl", data)
    return texts(plan_inputs([path], chunk_bytes=10**6, field=field), stats)


def test_blank_lines_nulls_and_marks(tmp_path: Path) -> None:
    stats = ReadStats()
    data = b'\xef\xbb\xbf{"text": "a"}\n\n  \r\n{"text": null}\n{"text": "b", "x": [1, {"y": 2}]}'
    assert _documents(tmp_path, data, stats=stats) == [b"a", b"b"]
    assert stats.nulls == 1


def test_dotted_fields_and_fields_with_dots(tmp_path: Path) -> None:
    data = b'{"a.b": "whole name", "a": {"b": "path"}}\n{"a": {"b": "path"}}'
    assert _documents(tmp_path, data, "a.b") == [b"whole name", b"path"]


def test_bytes_are_counted_with_the_byte_order_mark(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line at byte 16"):
        _documents(tmp_path, b'\xef\xbb\xbf{"text": ""}\nnothing')


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"txt": "a"}', r"no field 'text' in this record \(its fields: 'txt'\).*--field"),
        (b'{"text": 3}', "holds a int, not a string"),
        (b'["text"]', "must be a JSON object"),
        (b'{"text": "a"', "not a JSON record"),
        (b"plain text", "not a JSON record"),
        (b'{"text": "a"} {"text": "b"}', "not a JSON record"),
    ],
)
def test_bad_records_name_file_and_byte(tmp_path: Path, line: bytes, message: str) -> None:
    data = b'{"text": "fine"}\n' + line + b"\n"
    with pytest.raises(InputError, match=rf"a\.jsonl, line at byte 17: .*{message}"):
        _documents(tmp_path, data)


def test_bytes_that_are_not_utf8_come_out_as_they_are(tmp_path: Path) -> None:
    data = b'{"text": "a\xffb"}\n{"text": "c\\ud800d"}\n'
    assert _documents(tmp_path, data) == [b"a\xffb", "c\ud800d".encode("utf-8", "surrogatepass")]


def test_json_that_is_not_lines_is_text(tmp_path: Path) -> None:
    data = json.dumps({"name": "x", "list": [1]}, indent=2).encode()
    plan = plan_inputs([write(tmp_path, "package.json", data)], chunk_bytes=10**6)
    assert texts(plan) == [data]
    assert "read as text" in plan.notes[0]


# -- tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, "bc", ""]),
        pa.array(["a", None, "bc", ""], pa.large_string()),
        pa.array([b"a", None, b"bc", b""]),
        pa.array([b"a", None, b"bc", b""], pa.large_binary()),
        pa.array(["a", None, "bc", ""], pa.string_view()),
        pa.array([b"a", None, b"bc", b""], pa.binary_view()),
        pa.array(["a", None, "bc", ""]).dictionary_encode(),
        pa.array(["x", "a", None, "bc", "", "y"])[1:5],
    ],
)
def test_every_layout_of_text(tmp_path: Path, array: pa.Array) -> None:
    rows = pa.table({"text": array})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, rows.schema) as writer:
        writer.write_table(rows)
    stats = ReadStats()
    assert texts(plan_inputs([path], chunk_bytes=10**6), stats) == [b"a", b"bc", b""]
    assert stats.nulls == 1


def test_only_nulls_and_no_rows(tmp_path: Path) -> None:
    for column, nulls in ((pa.array([None, None], pa.string()), 2), (pa.array([], pa.string()), 0)):
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": column}), path)
        stats = ReadStats()
        assert texts(plan_inputs([path], chunk_bytes=10**6), stats) == []
        assert stats.nulls == nulls


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_fields_inside_structs(tmp_path: Path, name: str) -> None:
    rows = pa.table({"data": [{"text": "a", "n": 1}, None, {"text": "b", "n": 2}]})
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(rows, path)
    else:
        with pa.ipc.new_file(path, rows.schema) as writer:
            writer.write_table(rows)
    stats = ReadStats()
    plan = plan_inputs([path], chunk_bytes=10**6, field="data.text")
    assert texts(plan, stats) == [b"a", b"b"]
    assert stats.nulls == 1


@pytest.mark.parametrize("chunk_bytes", [1, 10**6])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "stream.arrow"])
def test_missing_and_unfit_columns(tmp_path: Path, name: str, chunk_bytes: int) -> None:
    data = {
        "a.parquet": input_forms.parquet(DOCUMENTS),
        "a.arrow": input_forms.arrow(DOCUMENTS),
        "stream.arrow": input_forms.arrow(DOCUMENTS, stream=True),
    }[name]
    path = write(tmp_path, name, data)
    with pytest.raises(InputError, match=r"no column 'content'; its columns are id, text"):
        texts(plan_inputs([path], chunk_bytes=chunk_bytes, field="content"))
    with pytest.raises(InputError, match="the column holds int64, not text"):
        texts(plan_inputs([path], chunk_bytes=chunk_bytes, field="id"))


def test_one_huge_row_group_is_read_in_bounded_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    words = [rng.bytes(40).hex() for _ in range(1000)]
    rows = [" ".join(words[j] for j in rng.integers(0, 1000, 12)) for _ in range(150_000)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": rows}), path, row_group_size=10**7, use_dictionary=False)
    expected = sum(map(len, rows))
    del rows
    assert pq.ParquetFile(path).num_row_groups == 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pool = pa.default_memory_pool().bytes_allocated()
    total, peak = 0, 0
    for chunk in plan_inputs([path], chunk_bytes=10**6).chunks:
        for block in read_blocks(chunk, SpaceCutter()):
            total += int((block.ends - block.starts).sum())
            peak = max(peak, pa.default_memory_pool().bytes_allocated() - pool)
    assert total == expected
    assert peak < 40_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80_000  # KB


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.txt"])
def test_one_long_line_among_short_ones(tmp_path: Path, name: str) -> None:
    """Memory is bounded by bytes, not by the widest line times the rows: ray-project/ray #46293."""
    rows = ["x" * 5_000_000, *(f"short line {i}" for i in range(50_000))]
    data = {
        "a.parquet": lambda: input_forms.parquet(rows),
        "a.jsonl": lambda: json_lines(rows),
        "a.txt": lambda: lines(rows),
    }[name]()
    plan = plan_inputs([write(tmp_path, name, data)], chunk_bytes=10**7, documents="lines")
    count = 0
    for chunk in plan.chunks:
        for block in read_blocks(chunk, SpaceCutter()):
            assert len(block.data) < 15_000_000
            count += len(block.starts)
    assert count == len(rows)


def test_a_compressed_table_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.parquet.gz", gzip.compress(input_forms.parquet(DOCUMENTS)))
    with pytest.raises(InputError, match="compressed table"):
        plan_inputs([path], chunk_bytes=10)


# -- tar shards ------------------------------------------------------------------------------


def test_members_that_are_left_out_are_counted(tmp_path: Path) -> None:
    data = input_forms.tar(
        {
            "./a.txt": b"text",
            "./.hidden": b"no",
            "b/.git/c.txt": b"no",
            "p.png": b"no",
            "blob": b"\x00\x01",
            "README": b" and more",
        }
    )
    stats = ReadStats()
    found = texts(plan_inputs([write(tmp_path, "a.tar", data)], chunk_bytes=9), stats)
    assert found == [b"text", b" and more"]
    assert stats.members_not_read == 4


def test_errors_name_the_member(tmp_path: Path) -> None:
    data = input_forms.tar({"good.jsonl": json_lines(["a"]), "bad.jsonl": b"{"})
    path = write(tmp_path, "a.tar", data)
    with pytest.raises(InputError, match=r"a\.tar: bad\.jsonl, line at byte 0"):
        texts(plan_inputs([path], chunk_bytes=9))


def test_changed_tables_are_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, "a.parquet", input_forms.parquet(DOCUMENTS))
    plan = plan_inputs([path], chunk_bytes=10**6)
    write(tmp_path, "a.parquet", input_forms.parquet(DOCUMENTS * 2))
    with pytest.raises(ChangedInputError, match=r"a\.parquet"):
        texts(plan)
