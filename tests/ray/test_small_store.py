"""Counts that are many times larger than the object store pass through the run directory.

ray-project/ray #14788, #60097, marin-community/marin #1562: spilled objects fill a disk, or hang.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raybpe import flow
from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.flow.reduction import Reduction
from raybpe.pretokenize import PATTERNS

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]

CONFIG = TrainConfig(500, CountConfig(PATTERNS["gpt2"], "gpt2"))
STORE_BYTES = 80 * 2**20
PARTIALS_BYTES = 500 * 10**6
CHUNK_BYTES = 4 * 10**6
WORDS = 1_000_000  # distinct
LETTERS = 12


@pytest.fixture
def small_store() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=STORE_BYTES,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    yield ray
    ray.shutdown()


def write_text(path: Path, chunks: int) -> None:
    """Words of random letters, most of them seen once in a chunk."""
    random = np.random.default_rng(0)
    words = np.full((WORDS, LETTERS + 1), ord(" "), np.uint8)
    words[:, 1:] = random.integers(ord("a"), ord("z") + 1, (WORDS, LETTERS), np.uint8)
    with path.open("wb") as file:
        for _ in range(chunks):
            rows = random.integers(0, WORDS, CHUNK_BYTES // (LETTERS + 1))
            file.write(words[rows].tobytes())


def test_partial_counts_of_many_stores(
    small_store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    real = Reduction._wait

    def waiting(self: Reduction, advance: Any) -> None:
        before = [task.job for task in self._pending.values() if task.job.kind == "count"]
        real(self, advance)
        after = [task.job for task in self._pending.values()]
        made.extend(job.node.size for job in before if job not in after)

    monkeypatch.setattr(Reduction, "_wait", waiting)
    text = tmp_path / "text.txt"
    write_text(text, 110)
    given: dict[str, Any] = {"chunk_bytes": CHUNK_BYTES, "verify": False, "progress": "none"}
    result = flow.train(
        [str(text)], CONFIG, RunOptions("ray", output=str(tmp_path / "out"), **given)
    )
    assert sum(made) > PARTIALS_BYTES
    peaks = result.manifest["run"]["peak_memory_bytes"]
    print(f"{sum(made) / 1e6:.0f} MB of partial counts; peaks {peaks}")
    here = flow.train([str(text)], CONFIG, RunOptions("local", **given))
    assert result.tokenizer.merges == here.tokenizer.merges
    assert result.manifest["totals"] == here.manifest["totals"]
