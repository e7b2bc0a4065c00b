"""Failures that the cluster is to blame for come with their cure."""

from typing import Any

import pytest

ray = pytest.importorskip("ray")

from raybpe.flow.task_errors import explain  # noqa: E402

pytestmark = pytest.mark.ray


def task_error(cause: Exception) -> Any:
    return ray.exceptions.RayTaskError("count", "the traceback", cause)


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        # The words that Ray 2.60 puts around what the worker could not import.
        (
            task_error(
                RuntimeError("The remote function failed to import\nNo module named 'raybpe'")
            ),
            "found no raybpe on its node",
        ),
        (task_error(ray.exceptions.OwnerDiedError("ab", b"", "")), "RAY_AUTH_MODE"),
        (task_error(MemoryError()), "--chunk-size"),
        (ray.exceptions.RuntimeEnvSetupError("no such wheel"), "no such wheel"),
        (ray.exceptions.WorkerCrashedError(), "Run the same command again"),
    ],
)
def test_what_the_cluster_did(error: Any, cure: str) -> None:
    assert cure in str(explain(error))


def test_other_errors_are_not_explained_away() -> None:
    assert explain(task_error(ZeroDivisionError())) is None
