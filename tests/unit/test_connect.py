"""Attaching to a Ray: which one is taken, and that a refusal says what to check."""

import io
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from raybpe.config import RunOptions
from raybpe.errors import ClusterError
from raybpe.flow.connect import connected
from raybpe.flow.progress import PlainLines, Progress

REFUSALS = [
    RuntimeError("Version mismatch"),
    ray.exceptions.RaySystemError(RuntimeError("authentication failed")),
    TimeoutError("no answer"),
]


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which `ray start` notes its cluster, not there yet."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "ray").mkdir()
    return tmp_path / "ray" / "ray_current_cluster"


@pytest.fixture
def listening() -> Iterator[str]:
    """An address where something answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is asked of Ray."""
    keywords: dict[str, Any] = {}
    monkeypatch.setattr(ray, "init", lambda **given: keywords.update(given))
    monkeypatch.setattr(ray, "nodes", list)
    return keywords


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("refusal", REFUSALS, ids=repr)
def test_refusals_are_cluster_errors(
    named: bool,
    refusal: Exception,
    note: Path,
    listening: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    note.write_text(listening)

    def refuse(**_: Any) -> None:
        raise refusal

    monkeypatch.setattr(ray, "init", refuse)
    with (
        pytest.raises(ClusterError, match=f"cannot reach the Ray at {listening}") as caught,
        connected(RunOptions(address=listening if named else None), Progress(), None),
    ):
        pytest.fail("connected")
    assert caught.value.__cause__ is refusal


@pytest.mark.parametrize("named", ["option", "environment"])
def test_an_address_where_nobody_is_is_told_of_at_once(
    note: Path, listening: str, asked: dict[str, Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    if named == "environment":
        monkeypatch.setenv("RAY_ADDRESS", address)
    options = RunOptions(address=address if named == "option" else None)
    with (
        pytest.raises(ClusterError, match=f"no Ray answers at {address}: .*--executor local"),
        connected(options, Progress(), None),
    ):
        pytest.fail("connected")
    assert not asked  # Ray would try for minutes


def test_a_cluster_of_this_machine_is_joined(
    note: Path, listening: str, asked: dict[str, Any]
) -> None:
    note.write_text(listening)
    told = io.StringIO()
    with connected(RunOptions(), PlainLines(told), None):
        assert asked["address"] is None  # Ray takes the note
        assert "num_cpus" not in asked
    assert f"using Ray at {listening}, which this machine is part of" in told.getvalue()


def test_no_cluster_means_a_ray_of_our_own(note: Path, asked: dict[str, Any]) -> None:
    # Ray's own "auto" would join whatever Ray it finds among all processes.
    with connected(RunOptions(), Progress(), None):
        assert asked["address"] == "local"


def test_a_cluster_that_died_is_named_and_not_waited_for(note: Path, asked: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    note.write_text(address)
    told = io.StringIO()
    with connected(RunOptions(), PlainLines(told), None):
        assert asked["address"] == "local"
    assert f"no Ray answers at {address} any more" in told.getvalue()


def test_the_address_local_starts_as_small_a_ray_as_no_address_does(
    note: Path, listening: str, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    note.write_text(listening)
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with connected(RunOptions(), Progress(), None):
        assert asked["address"] == "local"
        assert asked["include_dashboard"] is False


def test_sigterm_while_ray_starts_gets_the_answer_of_the_caller(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told(Exception):
        pass

    def tell(*_: Any) -> None:
        raise Told

    def start(**_: Any) -> None:
        signal.signal(signal.SIGTERM, lambda number, _: exit(number))  # as Ray does
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(ray, "init", start)
    before = signal.signal(signal.SIGTERM, tell)
    try:
        with pytest.raises(Told), connected(RunOptions(), Progress(), None):
            pytest.fail("connected")
        assert signal.getsignal(signal.SIGTERM) is tell
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ctrl_c_while_ray_starts_waits_until_it_can_be_ended(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def start(**_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        told.append("started")

    monkeypatch.setattr(ray, "init", start)
    monkeypatch.setattr(ray, "is_initialized", lambda: bool(told))
    monkeypatch.setattr(ray, "shutdown", lambda: told.append("ended"))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), connected(RunOptions(), Progress(), None):
        pytest.fail("connected")
    assert told == ["started", "ended"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_does_not_wait(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(**_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("went on")

    monkeypatch.setattr(ray, "init", start)
    with pytest.raises(KeyboardInterrupt), connected(RunOptions(), Progress(), None):
        pytest.fail("connected")
