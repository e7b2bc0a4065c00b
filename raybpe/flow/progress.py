"""What a run says while it works: one stage after the other, with rate and time left.

Four ways to show the same thing, picked by `progress_for`:

* a terminal or a Jupyter notebook: one moving bar (rich, imported only when a stage has lasted
  long enough to be worth a bar);
* a pipe or a log: one plain line every few seconds;
* `json`: one JSON object per line, ``{"event": "progress", "stage", "done", "total", "unit",
  "rate", "seconds_left"}`` and ``{"event": "note", "text"}``;
* `none`: nothing.

Everything goes to standard error; standard output belongs to results. A stage may be advanced
from several threads.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Literal, TextIO

LINE_EVERY_SECONDS = 5.0  # in a log
UNCHANGED_EVERY_SECONDS = 30.0  # while kernels compile or workers start
EVENT_EVERY_SECONDS = 1.0  # JSON lines
BAR_EVERY_SECONDS = 0.1
BAR_AFTER_SECONDS = 0.4  # rich takes 0.1 s to import: shorter stages get along without


class Stage:
    """One stage of a run: how much of what is done."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        self.name = name
        self.total = total
        self.unit = unit
        self.done = 0
        self.began = perf_counter()
        self._lock = threading.Lock()

    def advance(self, amount: int) -> None:
        """Add to what is done."""
        with self._lock:
            self.done += amount

    def reach(self, done: int) -> None:
        """Set what is done."""
        with self._lock:
            self.done = done

    @property
    def seconds(self) -> float:
        """Seconds since the stage began."""
        return perf_counter() - self.began

    @property
    def rate(self) -> float:
        """Units per second so far."""
        return self.done / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the rest takes at the rate so far; None when nothing is known."""
        if not self.total or not self.done:
            return None
        return max(self.total - self.done, 0) / self.rate

    def __str__(self) -> str:
        parts = [f"{self.name}: {amount(self.done, self.unit)}"]
        if self.total:
            parts[0] += f" of {amount(self.total, self.unit)} ({self.done / self.total:.0%})"
        if self.done:  # not yet while kernels are compiled or workers start
            parts.append(f"{amount(self.rate, self.unit)}/s")
        if self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join(parts)


class Progress:
    """Shows nothing; the base of the ways to show something."""

    every = LINE_EVERY_SECONDS

    def note(self, text: str) -> None:
        """Say one thing."""

    def show(self, stage: Stage) -> None:
        """Show a stage that is under way."""

    def end(self, stage: Stage) -> None:
        """Show a stage that is over."""

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        """A stage of the run; it is shown from a thread of its own until the block ends."""
        stage = Stage(name, total, unit)
        over = threading.Event()

        def watch() -> None:
            while not over.wait(self.every):
                self.show(stage)

        watcher = threading.Thread(target=watch, name="raybpe-progress", daemon=True)
        if type(self) is not Progress:
            watcher.start()
        try:
            yield stage
        finally:
            over.set()
            if watcher.is_alive():
                watcher.join()
            self.end(stage)


class PlainLines(Progress):
    """One line every few seconds, and one at the end of a stage that took that long."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._shown: tuple[Stage, int] | None = None
        self._shown_at = 0.0

    def note(self, text: str) -> None:
        """Say one thing on a line."""
        print(text, file=self.stream, flush=True)

    def show(self, stage: Stage) -> None:
        """Write the line of a stage; now and then only, while nothing changes."""
        state, now = (stage, stage.done), perf_counter()
        if state != self._shown or now - self._shown_at >= UNCHANGED_EVERY_SECONDS:
            self._shown, self._shown_at = state, now
            self.note(str(stage))

    def end(self, stage: Stage) -> None:
        """Sum the stage up."""
        rate = f" ({amount(stage.rate, stage.unit)}/s)" if stage.done else ""
        self.note(
            f"{stage.name}: {amount(stage.done, stage.unit)} in {duration(stage.seconds)}{rate}"
        )


class JsonLines(Progress):
    """One JSON object per line, for programs."""

    every = EVENT_EVERY_SECONDS

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def note(self, text: str) -> None:
        """Write a note."""
        self._write({"event": "note", "text": text})

    def show(self, stage: Stage, event: str = "progress") -> None:
        """Write the state of a stage."""
        left = stage.seconds_left
        self._write(
            {
                "event": event,
                "stage": stage.name,
                "done": stage.done,
                "total": stage.total,
                "unit": stage.unit,
                "rate": round(stage.rate, 1),
                "seconds": round(stage.seconds, 3),
                "seconds_left": None if left is None else round(left, 1),
            }
        )

    def end(self, stage: Stage) -> None:
        """Write the last state of a stage."""
        self.show(stage, "stage")

    def _write(self, event: dict[str, Any]) -> None:
        print(json.dumps(event), file=self.stream, flush=True)


class Bars(PlainLines):
    """A moving bar in a terminal or a notebook; what is over stays as a line."""

    every = BAR_EVERY_SECONDS

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()

    def note(self, text: str) -> None:
        """Say one thing above the bar."""
        with self._lock:
            if self._bar is None:
                super().note(text)
            else:
                self._bar.console.print(text, markup=False, highlight=False)

    def show(self, stage: Stage) -> None:
        """Draw the bar once the stage has lasted a moment."""
        if stage.seconds < BAR_AFTER_SECONDS:
            return
        with self._lock:
            if self._bar is None:
                self._bar = _rich_bar(self.stream)
                self._task = self._bar.add_task(stage.name, total=stage.total, rate="", left="")
                self._bar.start()
            rate = f"{amount(stage.rate, stage.unit)}/s" if stage.done else ""
            left = "" if stage.seconds_left is None else f"{duration(stage.seconds_left)} left"
            self._bar.update(self._task, completed=stage.done, rate=rate, left=left)

    def end(self, stage: Stage) -> None:
        """Take the bar away and leave a line."""
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
        super().end(stage)


def _rich_bar(stream: TextIO) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
    ]
    # In Jupyter rich must choose the console itself: it draws through IPython's display.
    console = Console() if in_notebook() else Console(file=stream)
    return RichProgress(*columns, console=console, transient=True)


def progress_for(mode: Literal["auto", "json", "none"]) -> Progress:
    """The way to show progress that fits where standard error goes."""
    if mode == "none":
        return Progress()
    if mode == "json":
        return JsonLines(sys.stderr)
    dumb = os.environ.get("TERM") == "dumb" or "CI" in os.environ
    if in_notebook() or (sys.stderr.isatty() and not dumb):
        return Bars(sys.stderr)
    return PlainLines(sys.stderr)


def in_notebook() -> bool:
    """Whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def amount(value: float, unit: str) -> str:
    """`value` for a reader: bytes as kB, MB, GB; other units with thousands marked.

    >>> amount(206_000_000, "bytes"), amount(31744, "merges")
    ('206.0 MB', '31,744 merges')
    """
    if unit != "bytes":
        return f"{value:,.0f} {unit}"
    for name in ("bytes", "kB", "MB", "GB"):
        if value < 1000 or name == "GB":
            break
        value /= 1000
    return f"{value:.0f} bytes" if name == "bytes" else f"{value:.1f} {name}"


def duration(seconds: float) -> str:
    """Seconds for a reader.

    >>> duration(0.31), duration(75), duration(4000)
    ('0.3 s', '1 min 15 s', '1 h 06 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02} min"
