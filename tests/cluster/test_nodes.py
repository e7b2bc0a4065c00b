"""Several Ray nodes on this machine: a head without CPUs, workers that come and go."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raybpe import flow
from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.flow.reduction import Reduction
from raybpe.pretokenize import PATTERNS

pytestmark = [pytest.mark.ray, pytest.mark.cluster]

GPT2 = CountConfig(PATTERNS["gpt2"], "gpt2")
CONFIG = TrainConfig(600, GPT2)
STORE_BYTES = 80 * 2**20


@pytest.fixture
def nodes() -> Iterator[Any]:
    """A head as in cluster.yaml, with a driver attached, and one worker."""
    os.environ.pop("RAY_ADDRESS", None)
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        },
    )
    cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def options(**more: Any) -> RunOptions:
    return RunOptions(
        **{"executor": "ray", "progress": "none", "chunk_bytes": 100_000, "verify": False, **more}
    )


def files(folder: Path) -> dict[str, bytes]:
    names = [path for path in folder.iterdir() if path.is_file() and path.name != "raybpe.json"]
    return {path.name: path.read_bytes() for path in names}


@pytest.fixture
def text(tmp_path: Path, sample_text: Any) -> str:
    path = tmp_path / "text.txt"
    path.write_bytes(sample_text(2_500_000))
    return str(path)


def test_a_node_is_lost_and_another_comes(
    nodes: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = options(executor="local", output=str(tmp_path / "local"))
    flow.train([text], CONFIG, local)
    doomed = nodes.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    nodes.wait_for_nodes()
    calls = 0
    helpers = []
    real = Reduction._wait

    def waiting(self: Reduction, advance: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 6:  # some chunks are counted on each node
            lose = threading.Thread(target=nodes.remove_node, args=(doomed, False))
            lose.start()
            helpers.append(lose)
        if calls == 8:
            nodes.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        real(self, advance)

    monkeypatch.setattr(Reduction, "_wait", waiting)
    # Partials are written by the head, whichever node has the tables.
    result = flow.train(
        [text], CONFIG, options(output=str(tmp_path / "out"), fan_in=3, save_seconds=0.5)
    )
    for helper in helpers:
        helper.join()
    assert calls > 8
    assert files(tmp_path / "out") == files(tmp_path / "local")
    assert result.manifest["run"]["nodes"] >= 2


def test_merging_happens_where_the_driver_is(nodes: Any, text: str) -> None:
    import ray
    from ray._private.state import actors

    seen: list[str] = []
    real = ray.get

    def getting(ref: Any, **more: Any) -> Any:
        value = real(ref, **more)
        if isinstance(value, tuple) and isinstance(value[1], bool):
            seen.extend(a["Address"]["NodeID"] for a in actors().values() if a["Pid"])
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray, "get", getting)
        flow.train([text], CONFIG, options())
    assert set(seen) == {ray.get_runtime_context().get_node_id()}


def test_work_waits_for_the_first_node(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an autoscaling cluster, whose head has no CPUs and no workers yet."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        },
    )
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    real = Reduction._wait

    def waiting(self: Reduction, advance: Any) -> None:
        if len(cluster.worker_nodes) == 0:  # the first tasks are submitted
            cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        real(self, advance)

    taken: list[int] = []
    submit = Reduction._submit_count
    monkeypatch.setattr(Reduction, "_wait", waiting)
    monkeypatch.setattr(
        Reduction, "_submit_count", lambda self, c: taken.append(len(c)) or submit(self, c)
    )
    try:
        result = flow.train([text], CONFIG, options(chunk_bytes=10_000))
        assert result.tokenizer.vocab_size == 600
        assert max(taken) > 1  # once there are nodes to hold it
    finally:
        ray.shutdown()
        cluster.shutdown()
