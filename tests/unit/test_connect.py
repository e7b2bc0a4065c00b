"""Attaching to a Ray: whatever it refuses with is one error that says what to check."""

from typing import Any

import pytest
import ray

from raybpe.config import RunOptions
from raybpe.errors import ClusterError
from raybpe.flow.connect import connected
from raybpe.flow.progress import Progress

REFUSALS = [
    RuntimeError("Version mismatch"),
    ray.exceptions.RaySystemError(RuntimeError("authentication failed")),
    TimeoutError("no answer"),
]


@pytest.mark.parametrize("address", [None, "host:6379"])
@pytest.mark.parametrize("refusal", REFUSALS, ids=repr)
def test_refusals_are_cluster_errors(
    address: str | None, refusal: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise refusal

    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with (
        pytest.raises(ClusterError, match="cannot reach the Ray") as caught,
        connected(RunOptions(address=address), Progress(), None),
    ):
        pytest.fail("connected")
    assert caught.value.__cause__ is refusal


def test_the_address_local_starts_as_small_a_ray_as_no_address_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(ray, "init", lambda **keywords: asked.update(keywords))
    monkeypatch.setattr(ray, "nodes", list)
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with connected(RunOptions(), Progress(), None):
        assert asked["address"] == "local"
        assert asked["include_dashboard"] is False
