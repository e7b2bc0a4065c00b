"""Training on Ray: the same bytes as in this process, in any shape, and after any fault."""

import contextlib
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from raybpe import flow
from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.errors import (
    CapacityError,
    ClusterError,
    InvalidUtf8Error,
    PatternError,
    RaybpeError,
    UsageError,
)
from raybpe.flow import reduction, steps, task_options, tasks, waiting
from raybpe.flow.reduction import Reduction
from raybpe.flow.run_directory import FOLDER
from raybpe.pretokenize import PATTERNS

pytestmark = pytest.mark.ray

GPT2 = CountConfig(PATTERNS["gpt2"], "gpt2")
CONFIG = TrainConfig(600, GPT2)


def options(**more: Any) -> RunOptions:
    return RunOptions(
        **{"executor": "ray", "progress": "none", "chunk_bytes": 30_000, "verify": False, **more}
    )


def files(folder: Path) -> dict[str, bytes]:
    return {
        p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.name != "raybpe.json"
    }


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, sample_text: Any) -> str:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_bytes(sample_text(500_000)[:500_000].rsplit(b"\n", 1)[0])
    return str(path)


@pytest.fixture(scope="module")
def expected(text: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of the local executor."""
    output = tmp_path_factory.mktemp("local") / "out"
    flow.train([text], CONFIG, options(executor="local", output=str(output)))
    return files(output)


@pytest.mark.parametrize(
    "shape",
    [
        {"workers": 1},
        {"workers": 2, "fan_in": 2},
        {"fan_in": 16, "chunk_bytes": 20_000},
        {"chunk_bytes": 10**6},
    ],
)
def test_same_files_as_locally(
    ray_local: Any, text: str, tmp_path: Path, expected: dict[str, bytes], shape: dict[str, Any]
) -> None:
    result = flow.train([text], CONFIG, options(output=str(tmp_path / "out"), **shape))
    assert files(tmp_path / "out") == expected
    assert result.manifest["run"]["executor"] == "ray"
    assert not (tmp_path / "out" / FOLDER).exists()
    assert ray_local.is_initialized()  # it was running before


def test_totals_and_counts_are_the_same(ray_local: Any, text: str) -> None:
    here = flow.train([text], CONFIG, options(executor="local"))
    there = flow.train([text], CONFIG, options())
    assert there.manifest["totals"] == here.manifest["totals"]
    assert there.manifest["inputs"] == here.manifest["inputs"]
    counts = flow.count([text], GPT2, options())
    assert list(counts.items()) == list(flow.count([text], GPT2, options(executor="local")).items())
    trained = flow.train_from_counts(counts, CONFIG, options())
    assert trained.tokenizer.merges == here.tokenizer.merges


def test_hash_partitions_and_shuffled_arrival(
    ray_local: Any,
    text: str,
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("raybpe.flow.run_directory.BYTES_PER_PARTITION", 150_000)
    real = Reduction._submit_add

    def shuffled(self: Reduction) -> None:
        self._ready.reverse()
        real(self)

    monkeypatch.setattr(Reduction, "_submit_add", shuffled)
    flow.train([text], CONFIG, options(output=str(tmp_path / "out"), fan_in=3))
    assert files(tmp_path / "out") == expected


def test_auto_picks_the_ray_that_is_running(ray_local: Any, text: str) -> None:
    result = flow.train([text], CONFIG, options(executor="auto"))
    assert result.manifest["run"]["executor"] == "ray"


def test_iterator_is_counted_here_and_merged_there(ray_local: Any, text: str) -> None:
    texts = [Path(text).read_text()]
    there = flow.train_from_iterator(texts, CONFIG, options())
    here = flow.train_from_iterator(texts, CONFIG, options(executor="local"))
    assert there.tokenizer.merges == here.tokenizer.merges


def test_few_tasks_are_in_flight_and_tables_stay_away(
    ray_local: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0
    real = Reduction._submit_count

    def counting(self: Reduction, chunk: Any) -> None:
        nonlocal most
        real(self, chunk)
        most = max(most, sum(job.kind == "count" for job in self._jobs()))

    fetched = []
    wait = ray_local.wait
    monkeypatch.setattr(Reduction, "_submit_count", counting)
    monkeypatch.setattr(
        reduction.ray, "wait", lambda *a, **k: fetched.append(k["fetch_local"]) or wait(*a, **k)
    )
    flow.train([text], CONFIG, options(chunk_bytes=10_000, workers=3))
    assert most == 3
    assert not any(fetched)


def test_tasks_take_fewer_chunks_towards_the_end_and_where_memory_is_short(
    ray_local: Any, text: str, expected: dict[str, bytes], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    taken: list[int] = []
    real = Reduction._submit_count

    def counting(self: Reduction, chunks: Any) -> None:
        taken.append(len(chunks))
        real(self, chunks)

    monkeypatch.setattr(Reduction, "_submit_count", counting)
    flow.train([text], CONFIG, options(output=str(tmp_path / "out")))
    assert taken == [4, 4, 3, 2, 1, 1, 1, 1]
    assert files(tmp_path / "out") == expected
    taken.clear()
    monkeypatch.setattr(reduction, "TASK_BYTES", 70_000)
    flow.count([text], GPT2, options())
    assert sum(taken) == 17
    assert max(taken) == 2
    taken.clear()
    monkeypatch.setattr(task_options, "memory_per_cpu", lambda: 10**6)
    flow.count([text], GPT2, options())
    assert taken == [1] * 17


def test_partials_resume_and_nothing_is_counted_twice(
    ray_local: Any,
    text: str,
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = str(tmp_path / "out")
    train_interrupted(monkeypatch, text, 7, output=output, save_seconds=0.0, fan_in=3)
    partials = list((tmp_path / "out" / FOLDER).glob("partial-*"))
    assert partials
    result = flow.train([text], CONFIG, options(output=output, fan_in=3))
    chunks = result.manifest["run"]["chunks"]
    assert chunks["resumed"] > 0
    assert chunks["resumed"] + chunks["counted"] == 17
    assert files(tmp_path / "out") == expected


def test_what_is_counted_is_saved_when_the_run_is_interrupted(
    ray_local: Any,
    text: str,
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = str(tmp_path / "out")
    monkeypatch.setattr(reduction, "STOP_SHARE", 0.0)
    train_interrupted(monkeypatch, text, 4, output=output, fan_in=2)
    result = flow.train([text], CONFIG, options(output=output))
    assert result.manifest["run"]["chunks"]["resumed"] > 1
    assert files(tmp_path / "out") == expected


def test_counting_to_a_file_resumes_too(
    ray_local: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where workers are not
    with monkeypatch.context() as patch:
        patch.setattr(Reduction, "_wait", dying(Reduction._wait, 7))
        with pytest.raises(KeyboardInterrupt):
            flow.count([text], GPT2, options(output="c.arrow", save_seconds=0.0, fan_in=3))
    assert list((tmp_path / f".c.arrow{FOLDER}").glob("partial-*"))
    flow.count([text], GPT2, options(output="c.arrow", fan_in=3))
    assert [path.name for path in tmp_path.iterdir()] == ["c.arrow"]
    flow.count([text], GPT2, options(output="local.arrow", executor="local"))
    assert (tmp_path / "c.arrow").read_bytes() == (tmp_path / "local.arrow").read_bytes()


@pytest.mark.parametrize("first", ["ray", "local"])
def test_other_executor_goes_on(
    ray_local: Any,
    text: str,
    tmp_path: Path,
    expected: dict[str, bytes],
    first: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("raybpe.flow.run_directory.BYTES_PER_PARTITION", 150_000)
    output = str(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(Reduction, "_wait", dying(Reduction._wait, 7))
        patch.setattr(steps, "count_chunk", dying(steps.count_chunk, 7))
        with pytest.raises(KeyboardInterrupt):
            flow.train([text], CONFIG, options(output=output, executor=first, save_seconds=0.0))
    other = {"ray": "local", "local": "ray"}[first]
    result = flow.train([text], CONFIG, options(output=output, executor=other))
    assert result.manifest["run"]["chunks"]["resumed"] > 0
    assert files(tmp_path / "out") == expected


def dying(real: Any, calls: int) -> Any:
    """A function that is interrupted after some calls, as by Ctrl-C."""
    left = calls

    def called(*arguments: Any) -> Any:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        return real(*arguments)

    return called


def train_interrupted(monkeypatch: pytest.MonkeyPatch, text: str, waits: int, **more: Any) -> None:
    """A training on Ray that is interrupted after it has waited some times."""
    with monkeypatch.context() as patch:
        patch.setattr(Reduction, "_wait", dying(Reduction._wait, waits))
        with pytest.raises(KeyboardInterrupt):
            flow.train([text], CONFIG, options(**more))


def wait_until_idle(ray: Any) -> None:
    """Until what tasks had asked for is free again."""
    deadline = time.monotonic() + 20
    while any(
        ray.available_resources().get(name) != ray.cluster_resources()[name]
        for name in ("CPU", "memory")
    ):
        assert time.monotonic() < deadline, "tasks still run"
        time.sleep(0.1)


def slowly(task: Any, seconds: float) -> Any:
    """The task, after a while."""
    import ray

    def run(*arguments: Any) -> Any:
        time.sleep(seconds)
        return task(*arguments)

    return ray.remote(run)


def test_interrupt_lets_what_is_being_saved_be_saved(
    ray_local: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction, "_save_partial", slowly(tasks.save_partial, 0.5))
    real = Reduction._wait

    def waiting(self: Reduction, advance: Any) -> None:
        if any(job.kind == "save" for job in self._jobs()):
            raise KeyboardInterrupt
        real(self, advance)

    monkeypatch.setattr(Reduction, "_wait", waiting)
    with pytest.raises(KeyboardInterrupt):
        flow.train([text], CONFIG, options(output=str(tmp_path / "out"), save_seconds=0.0))
    assert list((tmp_path / "out" / FOLDER).glob("partial-*"))
    # Nothing is cancelled, so this process and its Ray are as they were.
    wait_until_idle(ray_local)


def test_short_object_store_uses_the_run_directory(
    ray_local: Any,
    text: str,
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reduction, "STORE_FRACTION", 0.0)
    saved = []
    real = Reduction._save_ready
    monkeypatch.setattr(Reduction, "_save_ready", lambda self: saved.append(1) or real(self))
    output = str(tmp_path / "out")
    more = {"save_seconds": 1e9, "fan_in": 3, "chunk_bytes": 100_000}
    flow.train([text], CONFIG, options(output=output, **more))
    assert saved
    assert files(tmp_path / "out") == expected


# -- faults ----------------------------------------------------------------------------------------


def test_killed_workers_are_replaced(
    ray_local: Any, text: str, tmp_path: Path, expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """ray-project/ray #59562, PR #65660, marin-community/marin PR #2309: work is lost."""
    monkeypatch.setattr(reduction, "_count_chunks", slowly(tasks.count_chunks, 0.3))
    over = threading.Event()
    killed: list[int] = []
    killer = threading.Thread(target=kill_workers, args=(over, killed))
    killer.start()
    try:
        flow.train([text], CONFIG, options(output=str(tmp_path / "out")))
    finally:
        over.set()
        killer.join()
    assert killed
    assert files(tmp_path / "out") == expected


def kill_workers(over: threading.Event, killed: list[int]) -> None:
    """Kill three of this process's Ray workers while they count."""
    while len(killed) < 3 and not over.wait(0.1):
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if "ray::count" in " ".join(process.cmdline()):
                    process.kill()
                    killed.append(process.pid)
                    break


def test_killed_merge_actor_starts_again(
    ray_local: Any,
    text: str,
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from raybpe.flow import cluster

    real = ray_local.get
    kills = []

    def getting(ref: Any, *rest: Any, **more: Any) -> Any:
        value = real(ref, *rest, **more)
        if isinstance(value, tuple) and isinstance(value[1], bool) and len(kills) < 2:
            (actor,) = [one for one in cluster_actors() if one["State"] == "ALIVE"]
            os.kill(actor["Pid"], signal.SIGKILL)
            kills.append(actor["Pid"])
            return value[0] - 1, False  # as if there were more to merge
        return value

    monkeypatch.setattr(cluster.ray, "get", getting)
    flow.train([text], CONFIG, options(output=str(tmp_path / "out")))
    assert len(kills) == 2
    assert files(tmp_path / "out") == expected


def cluster_actors() -> list[dict[str, Any]]:
    from ray._private.state import actors

    return [
        {"State": info["State"], "Pid": info["Pid"]}
        for info in actors().values()
        if info["ActorClassName"] == "MergeActor" and info["Pid"]
    ]


def test_failed_chunk_fails_the_run_with_its_own_error(
    ray_local: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction, "STOP_SHARE", 0.0)
    path, output = tmp_path / "bad.txt", tmp_path / "out"
    path.write_bytes(b"good text " * 1000 + b"\xff" + b" more" * 1000)
    with pytest.raises(InvalidUtf8Error, match=r"bad\.txt.*10,?000"):
        flow.train([str(path)], CONFIG, options(chunk_bytes=1000, output=str(output)))
    assert not output.exists()  # or the next run, with another policy, would be refused


def test_pattern_that_never_matches(ray_local: Any, text: str) -> None:
    with pytest.raises(PatternError, match="never matched"):
        flow.train([text], TrainConfig(300, CountConfig("xyzzy42")), options())


def test_infeasible_memory_is_refused_before_the_first_task(
    ray_local: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_options, "WORKER_BYTES", 2**50)
    monkeypatch.setattr(Reduction, "_submit_count", lambda *_: pytest.fail("submitted"))
    with pytest.raises(ClusterError, match=r"counting a chunk .* needs about .* GB of memory"):
        flow.train([text], CONFIG, options())


def test_infeasible_merge_is_refused(
    ray_local: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_options, "merge_memory", lambda *_: 2**50)
    with pytest.raises(ClusterError, match=r"merging over [\d,]+ unique pretokens needs about"):
        flow.train([text], CONFIG, options())


def test_merging_that_cannot_start_is_reported_and_given_up(
    ray_local: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Holder:
        pass

    def holding(*_: Any) -> int:  # now counting is over
        nonlocal holder
        wait_until_idle(ray_local)
        free = int(ray_local.available_resources()["memory"])
        holder = ray_local.remote(Holder).options(memory=free - 10**6, num_cpus=0).remote()
        ray_local.get(holder.__ray_ready__.remote())
        return 10**8

    holder = None
    monkeypatch.setattr(task_options, "merge_memory", holding)
    monkeypatch.setattr(waiting, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(waiting, "STALL_SECONDS", 1.0)
    try:
        with pytest.raises(ClusterError, match=r"merging over .* asks for 0\.1 GB of memory"):
            flow.train([text], CONFIG, options())
    finally:
        ray_local.kill(holder)


def test_another_address_than_that_in_use_is_refused(ray_local: Any, text: str) -> None:
    with pytest.raises(ClusterError, match=r"already uses the Ray at .*, not nowhere:1234"):
        flow.count([text], GPT2, options(address="nowhere:1234"))


def test_work_that_cannot_start_is_reported_and_given_up(
    ray_local: Any, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(waiting, "WARN_SECONDS", 0.3)
    monkeypatch.setattr(waiting, "STALL_SECONDS", 1.0)
    hold = ray_local.remote(num_cpus=2)(lambda: time.sleep(30)).remote()
    time.sleep(1.0)
    try:
        with pytest.raises(ClusterError, match=r"nothing ended for \d+ s.*0 CPUs"):
            flow.train([text], CONFIG, options(progress="auto"))
    finally:
        ray_local.cancel(hold, force=True)
    assert "nothing ended" in capsys.readouterr().err


def test_settings_of_an_unfinished_run_hold_here_too(
    ray_local: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = str(tmp_path / "out")
    train_interrupted(monkeypatch, text, 7, output=output, save_seconds=0.0)
    with pytest.raises(UsageError, match="vocab size was 600, is 700"):
        flow.train([text], TrainConfig(700, GPT2), options(output=output))


@pytest.mark.parametrize(
    "error",
    [
        PatternError("bad", 3),
        InvalidUtf8Error("x"),
        CapacityError("y"),
        ClusterError("z"),
        RaybpeError("w"),
    ],
)
def test_errors_travel(ray_local: Any, error: RaybpeError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.__dict__ == error.__dict__
