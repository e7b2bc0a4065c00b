"""Wait for Ray tasks without waiting for ever in silence.

After `WARN_SECONDS` without a result a line says what is awaited, after `STALL_SECONDS` the run
ends with that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import ray

from raybpe.errors import ClusterError

if TYPE_CHECKING:
    from raybpe.flow.progress import Progress

WAIT_SECONDS = 2.0  # between two looks at the clock, and at Ctrl-C
WARN_SECONDS = 60.0
STALL_SECONDS = 1800.0  # an autoscaling cluster may take ten minutes to bring a node


def wait_for_one(refs: Iterable[Any], awaited: Callable[[], str], progress: Progress) -> Any:
    """The first of `refs` that is there; its value stays where it is.

    Args:
        awaited: what is waited for, and what it asked the cluster for; without a full stop.

    Raises:
        ClusterError: nothing ended for `STALL_SECONDS`.
    """
    refs = list(refs)
    began = warned = perf_counter()
    while True:
        done, _ = ray.wait(refs, num_returns=1, timeout=WAIT_SECONDS, fetch_local=False)
        if done:
            return done[0]
        now = perf_counter()
        if now - began > STALL_SECONDS:
            raise ClusterError(f"nothing ended for {now - began:.0f} s: {_told(awaited)}")
        if now - warned > WARN_SECONDS:
            warned = now
            progress.note(f"nothing ended for {now - began:.0f} s: {_told(awaited)}")


def _told(awaited: Callable[[], str]) -> str:
    free = ray.available_resources()
    return (
        f"{awaited()}, and the cluster has {free.get('CPU', 0):.0f} CPUs and "
        f"{free.get('memory', 0) / 1e9:.1f} GB free. `ray status` and `ray list tasks` say more; "
        "finished work is kept with --output"
    )
