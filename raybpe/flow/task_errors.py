"""What became of work that failed for reasons of the cluster, as a sentence with the cure.

Ray's own words are paragraphs of ids and log files, and the `repr` of some errors is binary: one
line is taken of the words, and the rest stays in the traceback that `--debug` shows.
"""

from __future__ import annotations

import re
from contextlib import suppress

import ray

from raybpe.errors import ClusterError, RaybpeError
from raybpe.flow.task_options import LARGER_NODES, SMALLER_CHUNKS

_NO_MODULE = re.compile(r"No module named '([\w.]+)'")  # Ray hands the error on as text
_CONTINUE = "Run the same command again to continue from what is saved"


def explain(error: ray.exceptions.RayError) -> str | None:
    """The end of a sentence such as `counting x ...`; None if the cluster is not to blame."""
    cause = _cause(error)
    if missing := _NO_MODULE.search(str(cause)):
        return (
            f"found no {missing[1]} on its node: install the same raybpe on every node, or send it "
            'along with the job, as --runtime-env-json \'{"py_modules": ["raybpe.whl"]}\''
        )
    if isinstance(cause, ray.exceptions.RuntimeEnvSetupError):
        return f"got no environment to run in: {cause}"
    if isinstance(cause, ray.exceptions.OwnerDiedError):
        return (
            f"could not reach this process from another node of {_cluster()}. Either nodes died: "
            "run the same command again to continue from what is saved. Or the cluster and this "
            "process do not agree on authentication: set RAY_AUTH_MODE to what the cluster was "
            "started with, token or disabled. Or it is not the cluster that was meant: name one "
            "with --address, where `local` starts one for this run"
        )
    if isinstance(cause, ray.exceptions.ObjectLostError):
        return f"lost what it works on, because the nodes that held it died. {_CONTINUE}"
    if ran_out_of_memory(error):
        return f"ran out of memory; {LARGER_NODES}"
    if isinstance(cause, ray.exceptions.WorkerCrashedError):
        return (
            "lost its process again and again. If the system killed it for want of memory, "
            f"{SMALLER_CHUNKS}. {_CONTINUE}"
        )
    if isinstance(cause, ray.exceptions.RayError):
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        # An actor's begins with its ids and ends with what happened.
        told = lines[-1 if isinstance(cause, ray.exceptions.RayActorError) else 0]
        return f"failed again and again: {told.strip().rstrip('.')}. {_CONTINUE}"
    return None


def ran_out_of_memory(error: ray.exceptions.RayError) -> bool:
    """Whether Ray ended the process, or it got no more memory."""
    return isinstance(_cause(error), (MemoryError, ray.exceptions.OutOfMemoryError))


def as_own(name: str, error: ray.exceptions.RayError) -> RaybpeError:
    """The error of this project for work, such as `counting x`, that Ray says has failed."""
    cause = _cause(error)
    if isinstance(cause, RaybpeError):
        return cause
    if explained := explain(error):
        return ClusterError(f"{name} {explained}")
    return RaybpeError(f"{name} failed: {cause!r}")


def _cluster() -> str:
    """The cluster, by its address while this process is attached to it."""
    if ray.is_initialized():
        with suppress(AttributeError, ray.exceptions.RaySystemError):
            return f"the Ray at {ray.get_runtime_context().gcs_address}"
    return "the cluster"


def _cause(error: BaseException) -> BaseException:
    """What a task failed with; tasks hand on the failures of those whose results they take."""
    while isinstance(error, ray.exceptions.RayTaskError) and error.cause is not None:
        error = error.cause
    return error
