"""The run directory: what survives a kill, and what a later run may not change."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from raybpe import flow
from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.counts.arrow import SCHEMA, from_arrow
from raybpe.errors import ChangedInputError, CountsError, InputError, InvalidUtf8Error, UsageError
from raybpe.flow import steps
from raybpe.flow.executor import Executor
from raybpe.flow.local import LocalExecutor
from raybpe.flow.partials import read_header, read_partial, write_partial
from raybpe.flow.progress import Progress
from raybpe.flow.run_directory import FOLDER, RunDirectory
from raybpe.flow.steps import Tally
from raybpe.inputs import Plan
from raybpe.pretokenize import PATTERNS

GPT2 = CountConfig(PATTERNS["gpt2"], "gpt2")
CONFIG = TrainConfig(400, GPT2)
LIMIT = 6  # chunks that an unlucky run counts before it dies


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.fixture
def text(tmp_path: Path, sample_text: Any) -> str:
    path = tmp_path / "text.txt"
    path.write_bytes(sample_text(100_000)[:100_000].rsplit(b"\n", 1)[0])
    return str(path)


def options(output: Path, **more: Any) -> RunOptions:
    """Save after every chunk, so that every kill leaves something."""
    return RunOptions(
        **{
            "executor": "local",
            "progress": "none",
            "workers": 1,
            "chunk_bytes": 5000,
            "save_seconds": 0.0,
            "verify": False,
            "output": str(output),
            **more,
        }
    )


def die_after(monkeypatch: pytest.MonkeyPatch, limit: int) -> list[int]:
    """Make counting die after some chunks; returns the list of chunks counted, as it grows."""
    real = steps.count_chunk
    counted: list[int] = []

    def counting(chunk: Any, *rest: Any) -> Tally:
        if len(counted) == limit:
            raise Killed
        counted.append(chunk.index)
        return real(chunk, *rest)

    monkeypatch.setattr(steps, "count_chunk", counting)
    return counted


def unfinished(
    text: str, output: Path, monkeypatch: pytest.MonkeyPatch, config: TrainConfig = CONFIG
) -> list[int]:
    """A run that died; returns the chunks that it had counted."""
    with monkeypatch.context() as patch:
        counted = die_after(patch, LIMIT)
        with pytest.raises(Killed):
            flow.train([text], config, options(output))
    return counted


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "raybpe.json"}


def test_same_command_goes_on_and_counts_nothing_twice(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.train([text], CONFIG, options(tmp_path / "whole"))
    before = unfinished(text, tmp_path / "out", monkeypatch)
    assert len(before) == LIMIT
    counted = die_after(monkeypatch, -1)
    result = flow.train([text], CONFIG, options(tmp_path / "out"))
    assert not set(before) & set(counted)
    assert result.manifest["run"]["chunks"] == {"counted": len(counted), "resumed": LIMIT}
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_totals_survive_too(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = flow.train([text], CONFIG, options(tmp_path / "whole"))
    unfinished(text, tmp_path / "out", monkeypatch)
    result = flow.train([text], CONFIG, options(tmp_path / "out"))
    assert result.manifest["totals"] == whole.manifest["totals"]
    assert result.manifest["inputs"] == whole.manifest["inputs"]


def test_another_chunk_size_or_thread_count_goes_on_as_well(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.train([text], CONFIG, options(tmp_path / "whole"))
    unfinished(text, tmp_path / "out", monkeypatch)
    more = options(tmp_path / "out", chunk_bytes=1234, workers=3)
    result = flow.train([text], CONFIG, more)
    assert result.manifest["run"]["chunks"]["resumed"] == LIMIT
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_everything_counted_but_not_merged(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.train([text], CONFIG, options(tmp_path / "whole"))
    with monkeypatch.context() as patch:

        def dying(*_: Any) -> None:
            raise Killed

        patch.setattr(LocalExecutor, "merge", dying)
        with pytest.raises(Killed):
            flow.train([text], CONFIG, options(tmp_path / "out"))
    assert die_after(monkeypatch, -1) == []
    result = flow.train([text], CONFIG, options(tmp_path / "out"))
    assert result.manifest["run"]["chunks"]["counted"] == 0
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_changed_settings_are_refused_with_the_difference(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    other = TrainConfig(401, CountConfig(PATTERNS["cl100k"], "cl100k"))
    with pytest.raises(UsageError) as error:
        flow.train([text], other, options(tmp_path / "out"))
    message = str(error.value)
    assert "vocab size was 400, is 401" in message
    assert "pattern name was 'gpt2', is 'cl100k'" in message
    assert "--no-resume" in message
    assert "min frequency" not in message


def test_changed_inputs_are_refused_with_the_difference(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    size = os.path.getsize(text)
    other = tmp_path / "other.txt"
    other.write_text("more text")
    with pytest.raises(UsageError, match=r"input .*other\.txt is new"):
        flow.train([text, str(other)], CONFIG, options(tmp_path / "out"))
    with pytest.raises(UsageError, match=r"input .*text\.txt is gone"):
        flow.train([str(other)], CONFIG, options(tmp_path / "out"))
    with open(text, "a") as file:
        file.write("more")
    with pytest.raises(
        UsageError, match=f"text.txt was '{size:,} bytes .*, is '{size + 4:,} bytes "
    ):
        flow.train([text], CONFIG, options(tmp_path / "out"))


def test_an_input_that_changed_within_its_size_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    data = Path(text).read_bytes()
    Path(text).write_bytes(data.replace(b"e", b"a"))
    with pytest.raises(UsageError, match=r"text\.txt was '.* bytes of 2.*Z', is '.*--no-resume"):
        flow.train([text], CONFIG, options(tmp_path / "out"))
    result = flow.train([text], CONFIG, options(tmp_path / "out", resume=False))
    assert result.tokenizer.merges == flow.train([text], CONFIG).tokenizer.merges


def test_a_record_of_another_version_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    path = tmp_path / "out" / FOLDER / "run.json"
    run = json.loads(path.read_text())
    earlier = {**run, "format": 1, "inputs": {e["uri"]: e["state"] for e in run["inputs"]}}
    for content, reason in ((earlier, "its format is 1"), ({**run, "inputs": {"a": "b"}}, "")):
        path.write_text(json.dumps(content))
        with pytest.raises(UsageError, match=f"run.json cannot .*{reason}.*--no-resume"):
            flow.train([text], CONFIG, options(tmp_path / "out"))


def test_no_resume_starts_over(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    result = flow.train([text], TrainConfig(300, GPT2), options(tmp_path / "out", resume=False))
    assert result.manifest["run"]["chunks"]["resumed"] == 0
    assert result.tokenizer.vocab_size == 300
    assert not (tmp_path / "out" / FOLDER).exists()


def test_a_run_that_saved_nothing_binds_nobody(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out" / FOLDER
    for content in ("not json", "{}"):
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(content)  # as after SIGKILL before anything was saved
        result = flow.train([text], TrainConfig(300, GPT2), options(tmp_path / "out"))
        assert result.tokenizer.vocab_size == 300
    unfinished(text, tmp_path / "out", monkeypatch)
    (folder / "run.json").write_text("not json")
    with pytest.raises(UsageError, match="--no-resume"):
        flow.train([text], CONFIG, options(tmp_path / "out"))
    flow.train([text], CONFIG, options(tmp_path / "out", resume=False))


def test_a_run_that_fails_before_it_saved_anything_leaves_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"bad \xff byte")
    mine = tmp_path / "mine"
    mine.mkdir()
    for output in (mine, tmp_path / "new"):
        with pytest.raises(InvalidUtf8Error):
            flow.train([str(bad)], CONFIG, options(output))
    assert not list(mine.iterdir())
    assert not (tmp_path / "new").exists()
    other = TrainConfig(300, replace(GPT2, invalid_utf8="replace"))
    flow.train([str(bad)], other, options(mine))


def test_finished_run_may_be_repeated_with_other_settings(text: str, tmp_path: Path) -> None:
    flow.train([text], CONFIG, options(tmp_path / "out"))
    result = flow.train([text], TrainConfig(300, GPT2), options(tmp_path / "out"))
    assert result.tokenizer.vocab_size == 300


def test_partials_of_another_run_are_not_taken(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    folder = tmp_path / "out" / FOLDER
    for path in folder.glob("partial-*.arrow"):
        tables = [pa.table([[b"x"], [10**6]], schema=SCHEMA)]
        write_partial(str(path), "0" * 32, [0], tables, Tally(chunks=1))
    result = flow.train([text], CONFIG, options(tmp_path / "out"))
    assert result.manifest["run"]["chunks"]["resumed"] == 0


def test_damaged_partial_is_an_error_that_names_it(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    path = next((tmp_path / "out" / FOLDER).glob("partial-*.arrow"))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CountsError, match=path.name):
        flow.train([text], CONFIG, options(tmp_path / "out"))


def test_overlapping_partials_are_counted_once(text: str, tmp_path: Path) -> None:
    executor: Executor = LocalExecutor(options(tmp_path / "out"), Progress())

    def opened() -> RunDirectory:
        return RunDirectory.open([text], CONFIG, GPT2, options(tmp_path / "out"), executor)

    directory = opened()
    assert directory.root is not None
    for chunks in ([0], [0, 1, 2], [2, 3], [3]):
        uri = directory.partial_uri(chunks)
        write_partial(uri, directory.identity, chunks, [], Tally(chunks=len(chunks)))
    assert sorted(sorted(partial.chunks) for partial in opened().partials()) == [[0, 1, 2], [3]]


def test_a_part_that_is_saved_late_does_not_replace_the_whole(text: str, tmp_path: Path) -> None:
    executor: Executor = LocalExecutor(options(tmp_path / "out"), Progress())
    directory = RunDirectory.open([text], CONFIG, GPT2, options(tmp_path / "out"), executor)
    for chunks in ([0, 1, 2], [1], [3], [3, 4]):
        directory.save_partial(chunks, [], Tally(chunks=len(chunks)))
    assert sorted(sorted(one.chunks) for one in directory.partials()) == [[0, 1, 2], [3, 4]]


def test_partials_of_another_plan_are_told_of(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    monkeypatch.setattr(Plan, "fingerprint", lambda self: "of another version")
    result = flow.train([text], CONFIG, options(tmp_path / "out", progress="auto"))
    assert "partial counts were made by another plan" in capsys.readouterr().err
    assert result.manifest["run"]["chunks"]["resumed"] == 0


def test_partials_are_closed_after_reading(tmp_path: Path) -> None:
    uri = str(tmp_path / "partial-0.arrow")
    tables = [pa.table([[b"x"], [7]], schema=SCHEMA)] * 3
    write_partial(uri, "0" * 32, [0], tables, Tally(chunks=1))
    before = len(os.listdir("/proc/self/fd"))
    rows = [read_partial(uri, i) for i in range(3)]
    assert [part.counts.tolist() for (part,) in rows] == [[7]] * 3
    assert len(os.listdir("/proc/self/fd")) == before


def test_messages_show_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "s3://me:SECRET@bucket/partial-0.arrow?endpoint_override=SECRET"
    monkeypatch.setattr(
        "raybpe.flow.partials.open_input", lambda _: pa.BufferReader(b"no Arrow file")
    )
    with pytest.raises(CountsError) as caught:
        read_partial(uri, 0)
    assert "s3://bucket/partial-0.arrow" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_threads_may_all_save_at_once(text: str, tmp_path: Path) -> None:
    whole = flow.train([text], CONFIG, options(tmp_path / "whole"))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        more = options(tmp_path / "out", workers=16, chunk_bytes=300)
        result = flow.train([text], CONFIG, more)
    finally:
        sys.setswitchinterval(interval)
    assert result.manifest["totals"] == whole.manifest["totals"]
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_partial_holds_each_hash_partition(tmp_path: Path) -> None:
    uri = str(tmp_path / "partial-x.arrow")
    tables = [
        pa.table([[b"a", b"bc"], [1, 2**40]], schema=SCHEMA),
        pa.table([[], []], schema=SCHEMA),
        pa.table([[b""], [3]], schema=SCHEMA),
    ]
    write_partial(uri, "id", [4, 2], tables, Tally(chunks=2, samples=["é"]))
    for i, table in enumerate(tables):
        rows = [
            (part.data[start:end].tobytes(), int(n))
            for part in read_partial(uri, i)
            for start, end, n in zip(part.offsets[:-1], part.offsets[1:], part.counts, strict=True)
        ]
        assert rows == [(row["pretoken"], row["count"]) for row in table.to_pylist()]
    assert not list(from_arrow(tables[1]))


def test_run_file_says_what_the_run_is(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished(text, tmp_path / "out", monkeypatch)
    run = json.loads((tmp_path / "out" / FOLDER / "run.json").read_text())
    assert run["config"]["vocab_size"] == 400
    (entry,) = run["inputs"]
    assert entry["uri"] == text
    assert entry["state"].startswith(f"{os.path.getsize(text):,} bytes of 20")
    assert run["chunk_bytes"] == 5000


def test_file_that_changes_while_it_is_counted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = steps.count_chunk

    def counting(chunk: Any, *rest: Any) -> Tally:
        if chunk.index == 3:
            with open(text, "a") as file:
                file.write(" more")
        return real(chunk, *rest)

    monkeypatch.setattr(steps, "count_chunk", counting)
    with pytest.raises(ChangedInputError, match=r"text\.txt"):
        flow.train([text], CONFIG, replace(options(Path("unused")), output=None))


def test_short_runs_write_nothing_but_their_result(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunDirectory, "save_partial", lambda *_: pytest.fail("saved"))
    flow.train([text], CONFIG, options(tmp_path / "out", save_seconds=20.0))
    assert not (tmp_path / "out" / FOLDER).exists()


def test_table_that_grows_too_large_goes_to_the_run_directory(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.train([text], CONFIG, options(tmp_path / "whole"))
    saved = []
    real = RunDirectory.save_partial

    def saving(self: RunDirectory, *rest: Any) -> None:
        saved.append(rest)
        real(self, *rest)

    monkeypatch.setattr(RunDirectory, "save_partial", saving)
    monkeypatch.setattr("raybpe.flow.local.free_memory", lambda: 1)
    flow.train([text], CONFIG, options(tmp_path / "out", save_seconds=1e9))
    assert saved
    assert files(tmp_path / "out") == files(tmp_path / "whole")


SCRIPT = """
import sys, time
from raybpe import flow
from raybpe.config import *
from raybpe.flow import steps
from raybpe.pretokenize import PATTERNS
real = steps.count_chunk
def counting(chunk, *rest):
    time.sleep(0.03)
    print(chunk.index, flush=True)
    return real(chunk, *rest)
steps.count_chunk = counting
flow.train(sys.argv[1:2], TrainConfig(400, CountConfig(PATTERNS["gpt2"], "gpt2")),
    RunOptions(executor="local", workers=2, chunk_bytes=5000, save_seconds=0.0, verify=False,
               progress="none", output=sys.argv[2]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_leaves_what_the_next_one_needs(
    text: str, tmp_path: Path, number: int
) -> None:
    flow.train([text], CONFIG, options(tmp_path / "whole"))
    command = [sys.executable, "-c", SCRIPT, text, str(tmp_path / "out")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    for _ in range(9):  # chunks that it has begun to count
        process.stdout.readline()
    process.send_signal(number)
    began = time.monotonic()
    assert process.wait(timeout=20) != 0
    assert time.monotonic() - began < 10
    process.stdout.close()
    result = flow.train([text], CONFIG, options(tmp_path / "out"))
    assert result.manifest["run"]["chunks"]["resumed"] >= 5
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_any_changed_byte_of_a_partial_is_noticed(tmp_path: Path) -> None:
    """Arrow files have no check sums of their own: a flipped bit would be another count."""
    path = tmp_path / "partial-0.arrow"
    rows = ([(b"low", 5), (b"lower", 2)], [(b" new", 3)])
    tables = [pa.table(list(zip(*one, strict=True)), schema=SCHEMA) for one in rows]
    write_partial(str(path), "id", [0, 3], tables, Tally(chunks=2))
    whole = path.read_bytes()

    def content() -> Any:
        partial, identity = read_header(str(path))
        rows = [[array.tolist() for part in read_partial(str(path), i) for array in part]
                for i in range(2)]  # fmt: skip
        return partial, identity, rows

    expected = content()
    noticed = 0
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        try:
            assert content() == expected
        except (CountsError, InputError):
            noticed += 1
    assert noticed > 400
