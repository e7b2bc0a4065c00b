"""Encoding on Ray gives what threads give, and says what every node is."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import raybpe
from raybpe.config import RunOptions
from raybpe.errors import ClusterError, InputError
from raybpe.flow import task_options
from raybpe.flow.dataset import cluster, encode_dataset
from raybpe.flow.node_facts import cluster_rows
from raybpe.tokenizer.tokenizer import Tokenizer

SEPARATOR = "<|endoftext|>"
pytestmark = pytest.mark.ray


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def tokenizer(sample_text: Callable[[int], bytes]) -> Tokenizer:
    text = sample_text(200_000).decode()
    return raybpe.train_from_iterator(
        text.split(SEPARATOR), 700, progress="none", executor="local"
    )  # fmt: skip


def encode(tokenizer: Tokenizer, path: Path, output: Path, executor: str) -> dict[str, bytes]:
    options = RunOptions(executor=executor, output=str(output), chunk_bytes=50_000,
                         progress="none")  # type: ignore[arg-type]  # fmt: skip
    encode_dataset(tokenizer, [str(path)], options, eot_token=SEPARATOR)
    return {file.name: file.read_bytes() for file in output.iterdir()}


def test_ray_equals_local(tokenizer: Tokenizer, sample_file: Path, tmp_path: Path) -> None:
    import ray

    on_ray = encode(tokenizer, sample_file, tmp_path / "ray", "ray")
    assert len(on_ray) > 4
    assert on_ray == encode(tokenizer, sample_file, tmp_path / "local", "local")
    assert ray.is_initialized()


def test_errors_come_through_as_they_are(tokenizer: Tokenizer, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "good"}\n{"text": 3}\n')
    with pytest.raises(InputError, match=r"bad\.jsonl, line at byte 17"):
        encode(tokenizer, bad, tmp_path / "t", "ray")
    state = json.loads((tmp_path / "t" / ".raybpe" / "run.json").read_text())
    assert state["files"] == "npy"


def test_a_shard_that_only_its_node_has_is_an_error(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.storage, "exists", lambda path: False)
    with pytest.raises(ClusterError, match="share"):
        encode(tokenizer, sample_file, tmp_path / "t", "ray")


def test_a_lost_worker_is_a_cluster_error(
    tokenizer: Tokenizer, sample_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(task_options, "MAX_RETRIES", 0)
    monkeypatch.setattr(cluster, "encode_shard", ray.remote(lambda *_: os._exit(1)))
    with pytest.raises(ClusterError, match=r"sample\.txt.* lost its process again and again"):
        encode(tokenizer, sample_file, tmp_path / "t", "ray")


def test_every_node_answers() -> None:
    rows = cluster_rows("auto")
    assert len(rows) == 2
    assert rows[-1][0] == "this process"
    assert "numba" in rows[0][1]
