"""Tables that are ambiguous or damaged: an error that names the file, and no text out of bounds."""

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from input_forms import SpaceCutter, texts, write

import raybpe
from raybpe.block import PADDING_BYTES
from raybpe.errors import InputError, InvalidUtf8Error
from raybpe.inputs import plan_inputs, read_blocks
from raybpe.inputs.memory import iterator_blocks

ROWS = ["hello world", None, "x" * 50, "", "é"] * 4
QUIET: dict[str, Any] = {"progress": "none", "executor": "local"}


def arrow(table: pa.Table, opener: Any) -> bytes:
    sink = io.BytesIO()
    with opener(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=20):
            writer.write_batch(batch)
    return sink.getvalue()


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=20)
    return sink.getvalue()


def save(folder: Path, table: pa.Table) -> list[Path]:
    return [
        write(folder, "t.parquet", parquet(table)),
        write(folder, "s.arrow", arrow(table, pa.ipc.new_stream)),
        write(folder, "f.arrow", arrow(table, pa.ipc.new_file)),
    ]


@pytest.mark.parametrize("chunk_bytes", [10, 10**6])
def test_two_columns_of_one_name(tmp_path: Path, chunk_bytes: int) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"])
    for path in save(tmp_path, table):
        message = rf"{path.name} has 2 columns 'text', .*; rename or drop the others"
        with pytest.raises(InputError, match=message):
            texts(plan_inputs([path], chunk_bytes=chunk_bytes))
    for data in (table, table.to_batches()[0]):
        with pytest.raises(InputError, match="has 2 columns 'text'"):
            list(iterator_blocks(data))
    frame = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(InputError, match="has 2 columns 'text'"):
        list(iterator_blocks(frame))


def test_two_columns_of_one_name_that_is_not_asked_for(tmp_path: Path) -> None:
    table = pa.Table.from_arrays(
        [pa.array(["a"]), pa.array([1]), pa.array([2])], ["text", "n", "n"]
    )
    for path in save(tmp_path, table):
        assert texts(plan_inputs([path], chunk_bytes=10**6)) == [b"a"]


@pytest.mark.parametrize("opener", [pa.ipc.new_stream, pa.ipc.new_file])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(ROWS),
        pa.array(ROWS, pa.large_string()),
        pa.array(ROWS).dictionary_encode(),
    ],
    ids=["string", "large_string", "dictionary"],
)
def test_no_flipped_byte_leads_out_of_the_text(tmp_path: Path, opener: Any, column: Any) -> None:
    data = arrow(pa.table({"text": column}), opener)
    refused = 0
    for place in range(len(data)):
        damaged = data[:place] + bytes([data[place] ^ 0x81]) + data[place + 1 :]
        path = write(tmp_path, "t.arrow", damaged)
        try:
            for block in read_blocks(
                plan_inputs([path], chunk_bytes=10**6).chunks[0], SpaceCutter()
            ):
                assert (block.ends >= block.starts).all()
                assert (block.starts[1:] >= block.ends[:-1]).all()
                assert block.starts[0] >= 0
                assert block.ends[-1] + PADDING_BYTES <= len(block.data)
        except InputError as error:
            assert "t.arrow" in str(error)  # noqa: PT017
            refused += 1
    assert refused > 50


def test_views_that_lead_out_of_the_text(tmp_path: Path) -> None:
    data = arrow(pa.table({"text": pa.array(["x" * 50], pa.string_view())}), pa.ipc.new_stream)
    place = data.index(b"2\0\0\0xxxx")  # 50, and how the text begins
    path = write(tmp_path, "t.arrow", data[:place] + b"2\0\0\x70" + data[place + 4 :])
    with pytest.raises(InputError, match=r"t\.arrow, record batch 0 is corrupt: .*; copy it again"):
        texts(plan_inputs([path], chunk_bytes=10**6))


def test_bytes_that_are_not_utf8_are_placed_in_the_table(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array([b"good"] * 25 + [b"\xffbad"] + [b"good"] * 14)})
    places = ("row group 1, rows 0 to 20", "record batch 1", "record batch 1")
    for path, place in zip(save(tmp_path, table), places, strict=True):
        with pytest.raises(InvalidUtf8Error, match=rf"{path.name}, {place}: byte 0 of a record"):
            raybpe.count(path, invalid_utf8="error", **QUIET)
