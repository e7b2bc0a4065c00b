"""Ray Data as input: its columns are documents, its nulls are counted, its blocks are streamed."""

from typing import Any

import pyarrow as pa
import pytest

import raybpe
from raybpe.errors import InputError
from raybpe.inputs import ReadStats
from raybpe.inputs.memory import iterator_blocks

pytestmark = pytest.mark.ray
TEXTS = [f"some words, number {number}, and 漢字" for number in range(5000)]


def documents(data: Any, field: str = "text", stats: ReadStats | None = None) -> list[str]:
    return [
        block.data[start:end].tobytes().decode()
        for block in iterator_blocks(data, stats, field)
        for start, end in zip(block.starts, block.ends, strict=True)
    ]


@pytest.mark.parametrize("made_of", ["items", "arrow", "pandas", "mapped"])
def test_documents_are_those_of_the_column(ray_local: Any, made_of: str) -> None:
    from ray import data

    rows = [{"text": text, "n": number} for number, text in enumerate([*TEXTS, None])]
    if made_of == "arrow":
        dataset = data.from_arrow(pa.Table.from_pylist(rows))
    elif made_of == "pandas":
        pandas = pytest.importorskip("pandas")
        dataset = data.from_pandas(pandas.DataFrame(rows))
    else:
        dataset = data.from_items(rows, override_num_blocks=7)
    if made_of == "mapped":
        dataset = dataset.map_batches(lambda batch: batch, batch_format="pyarrow")
    stats = ReadStats()
    assert sorted(documents(dataset, stats=stats)) == sorted(TEXTS)
    assert stats.nulls == 1
    with pytest.raises(InputError, match="no column 'body'; its columns are text, n"):
        documents(dataset, "body")
    with pytest.raises(InputError, match="int64, not text"):
        documents(dataset, "n")


def test_training_on_it(ray_local: Any) -> None:
    from ray import data

    dataset = data.from_items([{"text": text} for text in TEXTS])
    there = raybpe.train_from_iterator(dataset, 400, progress="none")
    here = raybpe.train_from_iterator(TEXTS, 400, progress="none", executor="local")
    assert there.merges == here.merges


def test_blocks_are_pulled_one_by_one(ray_local: Any) -> None:
    from ray import data

    @ray_local.remote(num_cpus=0)
    class Seen:
        def __init__(self) -> None:
            self.blocks = 0

        def add(self) -> None:
            self.blocks += 1

        def get(self) -> int:
            return self.blocks

    seen = Seen.remote()

    def make(batch: Any) -> Any:
        ray_local.get(seen.add.remote())
        return pa.table({"text": ["x" * 4_000_000] * len(batch["id"])})

    dataset = data.range(60, override_num_blocks=60).map_batches(make, batch_size=None)
    blocks = iterator_blocks(dataset)
    assert next(blocks).ends[-1] == 4_000_000
    assert ray_local.get(seen.get.remote()) < 60  # of 240 MB in a store of 100 MB
    assert sum(1 for _ in blocks) == 59
