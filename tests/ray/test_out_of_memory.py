"""A task that runs out of memory runs again and asks for more, as far as a node goes."""

import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raybpe import flow
from raybpe.config import CountConfig, RunOptions
from raybpe.errors import ClusterError
from raybpe.flow import tasks
from raybpe.flow.dataset import encode_dataset
from raybpe.pretokenize import PATTERNS
from raybpe.tokenizer.tokenizer import Tokenizer

ray = pytest.importorskip("ray")

from raybpe.flow import reduction, task_options  # noqa: E402
from raybpe.flow.dataset import cluster  # noqa: E402

pytestmark = pytest.mark.ray

CONFIG = CountConfig(PATTERNS["gpt2"], "gpt2")
OPTIONS = RunOptions(executor="ray", chunk_bytes=100_000, fan_in=2)


def needing(task: Any, size: int) -> Any:
    """The task, but out of memory unless it asked for so many bytes."""

    def run(*arguments: Any) -> Any:
        if ray.get_runtime_context().get_assigned_resources().get("memory", 0) < size:
            raise MemoryError
        return task(*arguments)

    return ray.remote(run)


@pytest.fixture
def text(tmp_path: Path, sample_text: Any) -> str:
    path = tmp_path / "text.txt"
    path.write_bytes(sample_text(300_000))
    return str(path)


def test_more_is_asked_for(ray_local: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = flow.count([text], CONFIG, RunOptions(executor="local", progress="none"))
    size = 3 * task_options.WORKER_BYTES  # reached when doubled twice
    monkeypatch.setattr(reduction, "_count_chunks", needing(tasks.count_chunks, size))
    monkeypatch.setattr(reduction, "_add_counts", needing(tasks.add_counts, size))
    told = io.StringIO()
    monkeypatch.setattr("sys.stderr", told)
    counts = flow.count([text], CONFIG, OPTIONS)
    assert dict(counts.items()) == dict(expected.items())
    told_of = Counter(re.findall("(.*) ran out of memory; it runs again", told.getvalue()))
    assert any("text.txt" in name for name in told_of)
    assert any("adding the counts" in name for name in told_of)
    assert not any(times % 2 for times in told_of.values())  # two additions have one name


@pytest.mark.parametrize(
    ("name", "cure"), [("count_chunks", "--chunk-size"), ("add_counts", "nodes with more memory")]
)
def test_all_of_a_node_is_the_most(
    ray_local: Any, text: str, name: str, cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction, f"_{name}", needing(getattr(tasks, name), 2**62))
    with pytest.raises(ClusterError, match=f"ran out of memory with all .* GB of a node.*{cure}"):
        flow.count([text], CONFIG, OPTIONS)


def test_encoding_asks_for_more_too(
    ray_local: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = Tokenizer({i: bytes([i]) for i in range(256)}, [])
    encode_dataset(tokenizer, [text], replace(OPTIONS, executor="local", output=f"{tmp_path}/a"))
    size = 2**31
    shard = cluster.encode_shard._function
    monkeypatch.setattr(cluster, "encode_shard", needing(shard, size))
    encode_dataset(tokenizer, [text], replace(OPTIONS, output=f"{tmp_path}/b"))
    a, b = (sorted((tmp_path / name).glob("*")) for name in "ab")
    assert [path.read_bytes() for path in a] == [path.read_bytes() for path in b]


def test_saving_begins_with_what_a_worker_needs(ray_local: Any) -> None:
    more = task_options.more_memory("saving", 0, "")
    assert more == task_options.WORKER_BYTES
