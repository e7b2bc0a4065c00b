"""Progress: figures, and each way to show them."""

import io
import json
import threading
import time

import pytest

from raybpe.flow import progress
from raybpe.flow.progress import Bars, JsonLines, PlainLines, Progress, Stage, amount, duration


def test_rate_and_time_left_follow_from_what_is_done() -> None:
    stage = Stage("count", 1000, "bytes")
    assert stage.seconds_left is None
    stage.began -= 2.0
    stage.advance(500)
    assert stage.rate == pytest.approx(250, rel=0.05)
    assert stage.seconds_left == pytest.approx(2.0, rel=0.05)
    stage.reach(1000)
    assert stage.seconds_left == 0


def test_stage_of_unknown_size_has_no_time_left() -> None:
    stage = Stage("count", None, "bytes")
    stage.advance(5)
    assert stage.seconds_left is None
    assert "%" not in str(stage)


def test_threads_may_advance_together() -> None:
    stage = Stage("count", None, "bytes")

    def work() -> None:
        for _ in range(2000):
            stage.advance(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stage.done == 16_000


def test_plain_lines_come_every_few_seconds_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PlainLines, "every", 0.02)
    stream = io.StringIO()
    with PlainLines(stream).stage("count", 10**9, "bytes") as stage:
        stage.advance(5 * 10**8)
        time.sleep(0.1)
    lines = stream.getvalue().splitlines()
    assert len(lines) >= 2
    assert lines[0].startswith("count: 500.0 MB of 1.0 GB (50%)")
    assert "left" in lines[0]
    assert lines[-1].startswith("count: 500.0 MB in ")


def test_json_lines_are_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JsonLines, "every", 0.02)
    stream = io.StringIO()
    shown = JsonLines(stream)
    shown.note("hello")
    with shown.stage("merge", 100, "merges") as stage:
        stage.reach(50)
        time.sleep(0.1)
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert events[0] == {"event": "note", "text": "hello"}
    assert events[1]["event"] == "progress"
    assert events[1]["stage"] == "merge"
    assert (events[1]["done"], events[1]["total"], events[1]["unit"]) == (50, 100, "merges")
    assert events[-1]["event"] == "stage"


def test_bar_appears_only_when_a_stage_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BAR_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(Bars, "every", 0.02)
    stream = io.StringIO()
    shown = Bars(stream)
    with shown.stage("count", 10**6, "bytes") as stage:
        stage.advance(10**5)
        time.sleep(0.15)
        assert shown._bar is not None
        shown.note("a [note] with brackets")
    assert shown._bar is None
    text = stream.getvalue()
    assert "a [note] with brackets" in text
    assert "count: 100.0 kB in " in text


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    shown = progress.progress_for("none")
    assert type(shown) is Progress
    shown.note("nothing")
    with shown.stage("count", 10, "bytes") as stage:
        stage.advance(10)
    assert capsys.readouterr() == ("", "")


def test_pipes_get_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert type(progress.progress_for("auto")) is PlainLines


def test_stage_ends_when_its_block_fails() -> None:
    stream = io.StringIO()
    with pytest.raises(ValueError, match="x"), PlainLines(stream).stage("count", 1, "bytes"):
        raise ValueError("x")
    assert "raybpe-progress" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "bytes", "0 bytes"),
        (999, "bytes", "999 bytes"),
        (206_000_000, "bytes", "206.0 MB"),
        (5.2e13, "bytes", "52000.0 GB"),
        (31744, "merges", "31,744 merges"),
    ],
)
def test_amounts_read_well(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.31, "0.3 s"), (12, "12 s"), (75, "1 min 15 s"), (4000, "1 h 06 min")]
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_log_does_not_repeat_what_did_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    lines, stage = PlainLines(stream), Stage("count", 100, "bytes")
    for _ in range(3):
        lines.show(stage)
    stage.advance(50)
    lines.show(stage)
    monkeypatch.setattr(progress, "UNCHANGED_EVERY_SECONDS", 0.0)
    lines.show(stage)
    assert [line.split(" of")[0] for line in stream.getvalue().splitlines()] == [
        "count: 0 bytes",
        "count: 50 bytes",
        "count: 50 bytes",
    ]
