"""Documents in memory: strings, bytes, and the columns of the libraries that people use."""

import numpy as np
import pyarrow as pa
import pytest
from input_forms import DOCUMENTS, table

from raybpe.block import PADDING_BYTES
from raybpe.errors import InputError
from raybpe.inputs import ReadStats
from raybpe.inputs.memory import iterator_blocks

EXPECTED = [text.encode() for text in DOCUMENTS]


def documents(data, field: str = "text", stats: ReadStats | None = None) -> list[bytes]:
    found = []
    for block in iterator_blocks(data, stats, field):
        assert len(block.data) >= block.ends[-1] + PADDING_BYTES
        assert block.starts.dtype == block.ends.dtype == np.int64
        found += [block.data[s:e].tobytes() for s, e in zip(block.starts, block.ends, strict=True)]
    return found


def test_strings_and_bytes() -> None:
    stats = ReadStats()
    items = ["é", b"\xff", bytearray(b"x"), memoryview(b"y"), None, "", "\ud800"]
    assert documents(iter(items), stats=stats) == [
        "é".encode(),
        b"\xff",
        b"x",
        b"y",
        b"",
        b"\xed\xa0\x80",
    ]
    assert stats.nulls == 1
    assert documents([]) == []


def test_batches_are_of_a_few_megabytes() -> None:
    sizes = [int(b.ends[-1]) for b in iterator_blocks("x" * 100_000 for _ in range(100))]
    assert sum(sizes) == 10_000_000
    assert max(sizes) < 4_400_000


def test_other_items_are_refused_with_their_place() -> None:
    with pytest.raises(InputError, match="item 1 of the iterator is a dict"):
        documents(["a", {"text": "b"}])
    with pytest.raises(InputError, match="a dict is not a list of texts"):
        documents({"train": ["a"]})


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t,
        lambda t: t["text"],
        lambda t: t["text"].combine_chunks(),
        lambda t: t.to_batches()[0],
        lambda t: pa.RecordBatchReader.from_batches(t.schema, t.to_batches(max_chunksize=2)),
    ],
)
def test_arrow(make) -> None:
    assert documents(make(table(DOCUMENTS))) == EXPECTED


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": DOCUMENTS, "n": range(len(DOCUMENTS))})
    assert documents(frame) == EXPECTED
    assert documents(frame["text"]) == EXPECTED
    assert documents(frame.rename(columns={"text": "body"}), "body") == EXPECTED
    stats = ReadStats()
    mixed = pandas.Series(["a", None, float("nan"), "b"], dtype=object)
    assert documents(mixed, stats=stats) == [b"a", b"b"]
    assert stats.nulls == 2
    with pytest.raises(InputError, match="no column 'body'"):
        documents(frame, "body")
    with pytest.raises(InputError, match="not text"):
        documents(frame["n"])
    with pytest.raises(InputError, match="something else than text"):
        documents(pandas.Series(["a", 3], dtype=object))


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"text": DOCUMENTS, "n": range(len(DOCUMENTS))})
    assert documents(frame) == EXPECTED
    assert documents(frame["text"]) == EXPECTED
    assert documents(frame["text"].cast(polars.Categorical)) == EXPECTED
    with pytest.raises(InputError, match="collect"):
        documents(frame.lazy())
    with pytest.raises(InputError, match="no column 'body'; its columns are text, n"):
        documents(frame, "body")


def test_hugging_face_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": DOCUMENTS, "n": list(range(len(DOCUMENTS)))})
    assert documents(dataset) == EXPECTED
    assert documents(dataset.select([3, 1])) == [EXPECTED[3], EXPECTED[1]]
    assert documents(dataset.to_iterable_dataset()) == EXPECTED
    assert documents(dataset.rename_column("text", "body"), "body") == EXPECTED
    with pytest.raises(InputError, match="no column 'body'"):
        documents(dataset, "body")
    with pytest.raises(InputError, match="'train'"):
        documents(datasets.DatasetDict({"train": dataset}))


def test_big_arrays_are_divided_without_copies() -> None:
    rng = np.random.default_rng(2)
    texts = [rng.bytes(rng.integers(0, 40_000)) for _ in range(500)]
    array = pa.array([None, *texts, None])
    values = np.frombuffer(array.buffers()[2], np.uint8)
    blocks = list(iterator_blocks(array))
    assert len(blocks) >= 2
    assert [np.shares_memory(block.data, values) for block in blocks[:-1]] == [True] * (
        len(blocks) - 1
    )
    assert documents(array) == texts
