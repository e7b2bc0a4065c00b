"""Attach to a Ray, or start one that ends with the run.

In this order: the Ray that this process already uses; the address given; `RAY_ADDRESS`; the
cluster that `ray start` made this machine part of, by the note that it leaves; a small Ray of our
own, bound to the loopback interface, which the address `local` always asks for. Rays that other
programs started for themselves leave no note and are not joined, as `ray.init(address="auto")`
would.
Only what was started here is ended, by disconnecting this process: a cluster that was running
goes on, and so does a Ray that the caller initialised. No process is ever looked up by name.

Token authentication is Ray's: `RAY_AUTH_MODE=token` with the token in `RAY_AUTH_TOKEN`,
`RAY_AUTH_TOKEN_PATH` or `~/.ray/auth_token`. The token is never read or shown here.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from raybpe.config import RunOptions
from raybpe.cores import cores
from raybpe.errors import ClusterError
from raybpe.flow.progress import Progress
from raybpe.flow.signals import held

# Worker logs would come between the lines of progress; what fails comes as an error anyway.
SETTINGS: dict[str, Any] = {
    "namespace": "raybpe",
    "log_to_driver": False,
    "logging_level": logging.ERROR,
}
OBJECT_STORE_BYTES = 2 * 2**30  # tables of counts are small; the rest of memory is for counting
LEAST_OBJECT_STORE_BYTES = 100 * 2**20  # Ray refuses less than 75 MiB
_WITHOUT = "or use --address local for a Ray of this run, or --executor local for none"
ANSWER_SECONDS = 5.0  # that a cluster has to accept a connection


@contextmanager
def connected(options: RunOptions, progress: Progress, reason: str | None) -> Iterator[None]:
    """Ray, for the length of the block.

    Raises:
        ClusterError: Ray cannot be reached, or fails within the block.
    """
    import ray

    why = f" ({reason})" if reason else ""
    if ray.is_initialized():
        if options.address not in (None, "auto"):
            _check_is_in_use(options.address)
        with _own_errors():
            progress.note(f"using the Ray of this process{why}: {_size()}")
            yield
        return
    with _environment():
        yield from _connected(options, progress, why)


def _connected(options: RunOptions, progress: Progress, why: str) -> Iterator[None]:
    import ray

    address = options.address or os.environ.get("RAY_ADDRESS")
    try:
        with held():
            if address and address != "local":
                _attach(address, f"at {address}")
                how = f" at {address}{why}"
            elif address != "local" and (found := _running(progress)):
                # Without an address Ray takes the note again, and the token where there is one.
                _attach(None, f"at {found}, which `ray start` made this machine part of")
                how = f" at {found}, which this machine is part of"
            else:
                _start(options)
                how = ", started for this run and ended with it"
        mode = os.environ.get("RAY_AUTH_MODE")
        with _own_errors():
            progress.note(f"using Ray{how}: {_size()}{f', {mode} authentication' if mode else ''}")
            yield
    finally:
        # Interrupted twice half way through starting, Ray ends what it started when Python exits;
        # shutting it down before that may crash.
        if ray.is_initialized():
            with held():
                ray.shutdown()


def _check_is_in_use(address: str) -> None:
    """Refuse an address when this process uses another Ray already; it can use but one."""
    import ray

    used = ray.get_runtime_context().gcs_address
    if address != used:
        raise ClusterError(
            f"this process already uses the Ray at {used}, not {address}: leave out --address, or "
            "call ray.shutdown() first"
        )


@contextmanager
def _environment() -> Iterator[None]:
    """What Ray reads when it connects, where the user says nothing; taken back afterwards."""
    wanted = {
        "RAY_USAGE_STATS_ENABLED": "0",
        # Tasks beside the one whose error ends the run may fail as well; one error is enough.
        "RAY_IGNORE_UNHANDLED_ERRORS": "1",
        # A task that ran out of memory runs again with more (`reduction`), not for ever as it is.
        "RAY_task_oom_retries": "0",
    }
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _own_errors() -> Iterator[None]:
    """Turn what Ray raises anywhere, as when the cluster dies, into an error that can be read."""
    import ray

    from raybpe.flow.task_errors import as_own

    try:
        yield
    except ray.exceptions.RayError as error:
        raise as_own("the run", error) from error


def _attach(address: str | None, where: str) -> None:
    import ray

    if address is not None:
        try:
            _check_answers(address)
        except OSError as error:
            raise ClusterError(
                f"no Ray answers {where}: {error}. Check --address and RAY_ADDRESS; {_WITHOUT}"
            ) from error
    try:
        ray.init(address=address, **SETTINGS)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise _unreachable(where, error) from error


def _running(progress: Progress) -> str | None:
    """Address of the cluster that `ray start` noted on this machine, if it answers."""
    usual = os.environ.get("TMPDIR", "/tmp") if sys.platform.startswith("linux") else "/tmp"
    note = Path(os.environ.get("RAY_TMPDIR", usual), "ray", "ray_current_cluster")
    try:
        address = note.read_text().strip()
    except OSError:
        return None
    try:
        _check_answers(address)
    except OSError:
        progress.note(f"no Ray answers at {address} any more, which {note} names")
        return None
    return address


def _check_answers(address: str) -> None:
    """Find in seconds that nobody is there, which Ray tries for many minutes.

    Raises:
        OSError: nothing accepts a connection at `host:port`; other addresses are Ray's to judge.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()


def _unreachable(where: str, error: Exception) -> ClusterError:
    return ClusterError(
        f"cannot reach the Ray {where}: {error}. If it asks for a token, as Rays do unless told "
        "otherwise, set RAY_AUTH_MODE=token. Else check --address and RAY_ADDRESS, that `ray "
        "status` answers there, and that both sides run the same versions of Ray and Python; "
        f"{_WITHOUT}"
    )


def _start(options: RunOptions) -> None:
    import ray

    shared: dict[str, Any] = {}
    with suppress(OSError):
        free = shutil.disk_usage("/dev/shm").free
        size = min(OBJECT_STORE_BYTES, int(free * 0.8))
        shared["object_store_memory"] = max(size, LEAST_OBJECT_STORE_BYTES)
    try:
        ray.init(
            address="local",
            num_cpus=options.workers or cores(),
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            **SETTINGS,
            **shared,
        )
    except Exception as error:  # Ray raises no narrower one, as when a busy machine is slow
        raise ClusterError(
            f"a local Ray did not start: {error} Try again, or use --executor local"
        ) from error


def _size() -> str:
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]
    cpus = sum(node["Resources"].get("CPU", 0) for node in nodes)
    several = "s" if len(nodes) != 1 else ""
    return f"{len(nodes)} node{several}, {cpus:.0f} CPUs"
