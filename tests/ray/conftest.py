"""One small Ray per module."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ.pop("RAY_ADDRESS", None)


@pytest.fixture(scope="module")
def ray_local() -> Iterator[Any]:
    """A Ray of two CPUs, as a caller would have initialised it."""
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    yield ray
    ray.shutdown()
