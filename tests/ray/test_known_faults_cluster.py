"""Clusters and notebooks: faults that people reported of other tools, and what is right here.

That a lost node changes nothing (ray-project/ray #59562, PR #65660, marin-community/marin PR #2309)
is in `tests/cluster/test_nodes.py` and `test_ray_train.py`; that counts larger than the object
store go to the run directory (ray-project/ray #14788, #60097, marin-community/marin #1562) in
`test_small_store.py`.
"""

from pathlib import Path
from typing import Any

import psutil
import pytest

import raybpe

pytestmark = pytest.mark.ray


def ray_processes() -> set[int]:
    """The servers of a Ray that this process started."""
    children = psutil.Process().children(recursive=True)
    return {child.pid for child in children if child.name() in ("raylet", "gcs_server")}


@pytest.fixture
def train(sample_file: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The cell of a notebook that trains on Ray."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return lambda **more: raybpe.train(
        sample_file, 400, **{"executor": "ray", "progress": "none", **more}
    )


def test_a_cell_ends_the_ray_that_it_started(train: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """ray-project/ray #34431, #4595, huggingface/tokenizers #157, flwrlabs/flower PR #832.

    Once only, since a Ray takes long to start; the next test starts another where this one was.
    """
    import ray

    ray.shutdown()
    before = ray_processes()
    tokenizer = train(address="local", workers=2, progress="auto")
    assert not ray.is_initialized()
    assert ray_processes() == before
    said = capfd.readouterr().err
    assert "started for this run and ended with it" in said
    assert not {"\r", "\x1b"} & set(said)  # plain lines, where there is no terminal
    assert tokenizer == train(executor="local")


def test_a_cell_run_twice_uses_the_callers_ray_and_leaves_it(train: Any, ray_local: Any) -> None:
    """ray-project/ray #34431, #4595, huggingface/tokenizers #157, flwrlabs/flower PR #832."""
    before = (ray_local.get_runtime_context().gcs_address, ray_processes())
    kept = ray_local.put("the caller's own")
    assert train() == train()
    assert ray_local.is_initialized()
    assert (ray_local.get_runtime_context().gcs_address, ray_processes()) == before
    assert ray_local.get(kept) == "the caller's own"
