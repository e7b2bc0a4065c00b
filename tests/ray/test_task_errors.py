"""Failures that the cluster is to blame for come with their cure."""

from typing import Any
from unittest import mock

import pytest

from raybpe.config import RunOptions
from raybpe.errors import ClusterError, InputError
from raybpe.flow.connect import connected
from raybpe.flow.progress import Progress

ray = pytest.importorskip("ray")

from raybpe.flow.task_errors import as_own, explain  # noqa: E402

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
        (task_error(MemoryError()), "nodes with more memory"),
        (ray.exceptions.RuntimeEnvSetupError("no such wheel"), "no such wheel"),
        (ray.exceptions.WorkerCrashedError(), "Run the same command again"),
    ],
)
def test_what_the_cluster_did(error: Any, cure: str) -> None:
    assert cure in str(explain(error))


OWNER_DIED = ray.exceptions.OwnerDiedError("00ffff", b"\x00\x9c\xff", "")


@pytest.mark.parametrize(
    "error",
    [
        OWNER_DIED,
        task_error(OWNER_DIED),
        task_error(task_error(OWNER_DIED)),  # a task whose input could not be computed
        ray.exceptions.ObjectLostError("00ffff", b"\x00\x9c\xff", ""),
        ray.exceptions.LocalRayletDiedError(),
        ray.exceptions.NodeDiedError("it died\nnode 00ffff\nlogs"),
        ray.exceptions.RayActorError("00ffff", "died\n\tactor_id: 00ffff\nits node went away."),
        ray.exceptions.RpcError("the head does not answer"),
    ],
    ids=repr,
)
def test_a_lost_cluster_is_one_readable_line(error: Any) -> None:
    with (
        mock.patch.object(ray, "is_initialized", return_value=True),
        mock.patch.object(ray, "nodes", return_value=[]),
        pytest.raises(ClusterError, match=r"the run .*again to continue") as caught,
        connected(RunOptions(), Progress(), None),
    ):
        raise error
    assert "00ffff" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_errors_of_this_project_come_out_of_tasks_as_they_are() -> None:
    own = InputError("x does not exist")
    assert as_own("counting x", task_error(own)) is own


def test_other_errors_are_not_explained_away() -> None:
    assert explain(task_error(ZeroDivisionError())) is None
