"""Kill parts of short runs at random: every run must end, or resume, with the same files.

    python benchmarks/kill_runs.py --kills 100 --seed 1
    python benchmarks/kill_runs.py --kills 20 --only actor node

One signal per run, at a random moment of it; SIGKILL to one of

* worker: a Ray worker that counts, adds, saves, or is between two such tasks
* actor: the merge loop
* node: the raylet of a second node
* raylet: the only raylet, of a Ray that the run started
* driver: the process that a user started, on a cluster; `driver-own` on a Ray that it started,
  `driver-local` without Ray
* ctrl-c: no SIGKILL, but SIGINT to all processes of the terminal, as Ctrl-C gives

Each is run again, where the kill ended it, until it is through. Checked are all files against
those of an unharmed local run; that chunks counted and chunks resumed make up the plan, and that
every chunk found saved after the kill was resumed, not counted again; that runs on no cluster
leave no process behind. Ends with a table, and with 1 if anything was wrong.

Runs are slow only by what users can ask for: many small chunks, saved often.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from raybpe import flow
from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.pretokenize import PATTERNS

CONFIG = TrainConfig(3000, CountConfig(PATTERNS["gpt2"], "gpt2"))
CHUNK_BYTES = {"local": 200_000, "ray": 50_000}
CHUNKS = {"local": 400, "ray": 30}
SAVE_SECONDS = 0.3
STORE_BYTES = 80 * 2**20
ATTEMPTS = 4
PATIENCE = 180.0  # seconds for one attempt; Ray takes some ten to notice a lost node
GRACE = 60.0  # seconds until what a dead driver has started notices
TAG = "RAYBPE_KILL_RUN"  # in the environment of all that a run starts

ALONE = ("raylet", "driver-own", "driver-local", "ctrl-c-own", "ctrl-c-local")  # on no cluster
KINDS = ("worker", "actor", "node", "driver", *ALONE)


@dataclass
class Row:
    """What became of the runs of one kind."""

    kills: int = 0
    missed: int = 0
    went_on: int = 0
    resumed: int = 0
    chunks_resumed: int = 0
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Harness:
    """The text, what should come of it, and a cluster for those kinds that need one."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.texts: dict[str, Path] = {}
        self.expected: dict[str, dict[str, bytes]] = {}
        self.cluster: Any = None
        self.lengths: dict[str, float] = {}
        self.runs = 0

    def text(self, kind: str) -> Path:
        """What a run of this kind reads; the first time, also find out what should come of it."""
        executor = "local" if kind.endswith("-local") else "ray"
        if executor not in self.texts:
            text = self.folder / f"{executor}.txt"
            text.write_bytes(sample_text(CHUNKS[executor] * CHUNK_BYTES[executor]))
            train(text, self.folder / f"{executor}-expected", "local")
            self.texts[executor] = text
            self.expected[executor] = results(self.folder / f"{executor}-expected")
        return self.texts[executor]

    def address(self, kind: str) -> str:
        """Where a run of this kind works."""
        if kind in ALONE:
            return "local" if kind.endswith("-local") else "own"
        return str(self.cluster.address)

    def try_kind(self, kind: str, row: Row) -> None:
        """One run with one kill, and the attempts that bring it to its end."""
        self.runs += 1
        output = self.folder / f"run-{self.runs}"
        began = time.perf_counter()
        if kind not in self.lengths:
            self.measure(kind, output)
        node = None
        if kind == "node":
            node = self.cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        with self.attempt(kind, output) as (process, _):
            killed = self.kill(kind, process, node)
            code = finish(process)
        if node is not None:
            self.cluster.remove_node(node, allow_graceful=False)
        if kind in ALONE:
            check_gone(row, output)
        row.kills += killed
        row.missed += not killed
        saved = saved_chunks(output)
        attempts = 1
        while code != 0 and attempts < ATTEMPTS:
            attempts += 1
            with self.attempt(kind, output) as (process, _):
                code = finish(process)
        row.went_on += killed and attempts == 1
        row.resumed += attempts > 1
        row.seconds.append(time.perf_counter() - began)
        if code != 0:
            row.wrong.append(f"{output}: did not end in {ATTEMPTS} attempts, see its logs")
        else:
            row.chunks_resumed += check(row, kind, self, output, saved if attempts > 1 else set())

    def measure(self, kind: str, output: Path) -> None:
        """How long a run takes; the second time, when workers are there and nothing compiles."""
        for name in ("first", "second"):
            with self.attempt(kind, output.with_name(f"{kind}-{name}")) as (process, started):
                if finish(process) != 0:
                    print(f"{output.parent}: {kind}-{name} failed unharmed", file=sys.stderr)
                self.lengths[kind] = time.perf_counter() - started

    @contextmanager
    def attempt(self, kind: str, output: Path) -> Iterator[tuple[Any, float]]:
        """Start the run; the block begins when it begins to work."""
        log = output.with_suffix(f".{time.monotonic_ns()}.log")
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, __file__, "--run", self.address(kind), self.text(kind), output],
                stderr=sink,
                stdout=sink,
                env={**os.environ, TAG: str(output)},
                start_new_session=True,  # its own process group, as a shell would give it
            )
            mark = b"start" if kind.endswith("-local") else b"using Ray"
            deadline = time.perf_counter() + PATIENCE
            while process.poll() is None and mark not in log.read_bytes():
                assert time.perf_counter() < deadline, f"{log}: did not start"
                time.sleep(0.01)
            try:
                yield process, time.perf_counter()
            finally:
                process.kill()
                process.wait()

    def kill(self, kind: str, process: Any, node: Any) -> bool:
        """Kill one thing at a random moment; False if the run was over before."""
        time.sleep(self.random.uniform(0.0, self.lengths[kind]) if kind != "actor" else 0.0)
        find = self.victim(kind, process, node)
        while (victim := find()) is None:
            if process.poll() is not None:
                return False
            time.sleep(0.003)
        if kind == "actor":
            time.sleep(self.random.uniform(0.0, 0.3))
        try:
            if process.poll() is not None:
                return False
            if kind.startswith("ctrl-c"):
                os.killpg(victim, signal.SIGINT)
            else:
                os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def victim(self, kind: str, process: Any, node: Any) -> Callable[[], int | None]:
        """A function that finds the process to kill, if it is there."""
        if kind.startswith(("driver", "ctrl-c")):
            return lambda: int(process.pid)
        if kind == "node":
            return lambda: int(node.all_processes["raylet"][0].process.pid)
        if kind == "raylet":
            return lambda: self.child(lambda line: line.split(" ")[0].endswith("/raylet"), process)
        if kind == "actor":
            return lambda: self.child(lambda line: "ray::MergeActor" in line)
        workers = ("ray::count:", "ray::add:", "ray::save:", "ray::IDLE")
        return lambda: self.child(lambda line: line.startswith(workers))

    def child(self, fits: Callable[[str], bool], of: Any = None) -> int | None:
        """A random process, below this one or `of`, whose command line fits."""
        found = []
        for process in psutil.Process(of.pid if of else None).children(recursive=True):
            try:
                if fits(" ".join(process.cmdline())):
                    found.append(process.pid)
            except psutil.Error:
                continue
        return self.random.choice(found) if found else None


def check(row: Row, kind: str, harness: Harness, output: Path, saved: set[int]) -> int:
    """Note what is wrong with a finished run; the chunks it resumed."""
    text = harness.text(kind)
    if results(output) != harness.expected[text.stem]:
        row.wrong.append(f"{output}: other files than without a kill")
    chunks = json.loads((output / "raybpe.json").read_text())["run"]["chunks"]
    plan = CHUNKS[text.stem]
    if chunks["counted"] + chunks["resumed"] != plan:
        row.wrong.append(f"{output}: {chunks} of {plan}")
    if chunks["resumed"] < len(saved):
        row.wrong.append(f"{output}: {len(saved)} chunks were saved, {chunks['resumed']} resumed")
    return int(chunks["resumed"])


def check_gone(row: Row, output: Path) -> None:
    """Note processes that a run on no cluster has left behind."""
    deadline = time.perf_counter() + GRACE
    while left := tagged(output):
        if time.perf_counter() > deadline:
            row.wrong.append(f"{output}: left behind {left}")
            break
        time.sleep(0.2)


def tagged(output: Path) -> list[str]:
    """What a run has started and is still there."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(TAG) == str(output):
                left.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        except psutil.Error:
            continue
    return left


def finish(process: Any) -> int:
    """Exit code of a run, -1 for one that hangs."""
    try:
        return int(process.wait(PATIENCE))
    except subprocess.TimeoutExpired:
        process.kill()
        return -1


def saved_chunks(output: Path) -> set[int]:
    """Chunks that partials in the run directory cover."""
    covered: set[int] = set()
    for path in (output / ".raybpe").glob("partial-*.arrow"):
        with pa.OSFile(str(path)) as file:
            metadata = pa.ipc.open_file(file).schema.metadata
            covered.update(json.loads(metadata[b"raybpe.partial"])["chunks"])
    return covered


def results(output: Path) -> dict[str, bytes]:
    """Every file of an output; of the manifest, what does not differ from run to run."""
    files = {path.name: path.read_bytes() for path in output.iterdir() if path.is_file()}
    manifest = json.loads(files["raybpe.json"])
    del manifest["run"]
    files["raybpe.json"] = json.dumps(manifest).encode()
    return files


def sample_text(size: int) -> bytes:
    """The standard library's sources, again and again."""
    text = b"".join(
        path.read_bytes().decode("utf-8", "ignore").encode()
        for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    )
    text = text.decode("utf-8").encode("ascii", "replace")
    return (text * (size // len(text) + 1))[:size]


def train(text: Path, output: Path, address: str) -> None:
    """The run that is killed."""
    print("start", file=sys.stderr, flush=True)
    options = RunOptions(
        executor="local" if address == "local" else "ray",
        address={"local": None, "own": "local"}.get(address, address),
        workers={"own": 2, "local": 1}.get(address),
        chunk_bytes=CHUNK_BYTES["local" if address == "local" else "ray"],
        save_seconds=SAVE_SECONDS,
        output=str(output),
        verify=False,
    )
    flow.train([str(text)], CONFIG, options)


@contextmanager
def cluster_for(kinds: list[str]) -> Iterator[Any]:
    """A Ray with a head and one worker node, if a kind needs it."""
    if all(kind in ALONE for kind in kinds):
        yield None
        return
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        },
    )
    cluster.add_node(num_cpus=2, object_store_memory=STORE_BYTES)
    try:
        yield cluster
    finally:
        cluster.shutdown()


def main() -> int:
    """Kill, and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        address, text, output = given.run
        train(Path(text), Path(output), address)
        return 0
    os.environ.pop("RAY_ADDRESS", None)
    rows = {kind: Row() for kind in given.only}
    folder = Path(tempfile.mkdtemp(prefix="kill-runs-"))
    with cluster_for(given.only) as cluster:
        harness = Harness(folder, given.seed)
        harness.cluster = cluster
        try:
            while sum(row.kills for row in rows.values()) < given.kills:
                kind = min(rows, key=lambda one: rows[one].kills)
                wrong = len(rows[kind].wrong)
                harness.try_kind(kind, rows[kind])
                for line in rows[kind].wrong[wrong:]:
                    print(f"WRONG {kind} {line}", file=sys.stderr, flush=True)
        finally:
            show(rows)
    return any(row.wrong for row in rows.values())


def show(rows: dict[str, Row]) -> None:
    """The table."""
    print("| killed | kills | went on | run again | chunks resumed | wrong | median s | max s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind, row in rows.items():
        seconds = row.seconds or [0.0]
        print(
            f"| {kind} | {row.kills} | {row.went_on} | {row.resumed} | {row.chunks_resumed} | "
            f"{len(row.wrong)} | {statistics.median(seconds):.1f} | {max(seconds):.1f} |"
        )


if __name__ == "__main__":
    sys.exit(main())
