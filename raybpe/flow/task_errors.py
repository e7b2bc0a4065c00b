"""What became of a task that failed for reasons of the cluster, as a sentence with the cure."""

from __future__ import annotations

import re

import ray

_NO_MODULE = re.compile(r"No module named '([\w.]+)'")  # Ray hands the error on as text


def explain(error: ray.exceptions.RayError) -> str | None:
    """The end of a sentence such as `counting x ...`; None if the cluster is not to blame."""
    cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
    if missing := _NO_MODULE.search(str(cause)):
        return (
            f"found no {missing[1]} on its node: install the same raybpe on every node, or send it "
            'along with the job, as --runtime-env-json \'{"py_modules": ["raybpe.whl"]}\''
        )
    if isinstance(cause, ray.exceptions.RuntimeEnvSetupError):
        return f"got no environment to run in: {cause}"
    if isinstance(cause, ray.exceptions.OwnerDiedError):
        return (
            "could not reach this process. If it is running, the cluster and it may not agree on "
            "authentication: set RAY_AUTH_MODE to what the cluster was started with, token or "
            "disabled"
        )
    if isinstance(cause, MemoryError):
        return "ran out of memory; give a smaller --chunk-size, or nodes with more memory"
    if isinstance(cause, ray.exceptions.RayError):
        return (
            f"failed again and again: {cause}. Run the same command again to continue from what is "
            "saved"
        )
    return None
