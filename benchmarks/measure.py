"""Run a command to its end; report its time and the peak memory of its process tree."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.01
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Run:
    """One run: wall seconds, and the highest sum of resident bytes over the process tree."""

    seconds: float
    peak_bytes: int


def run(command: list[str], environment: dict[str, str] | None = None) -> Run:
    """Run `command`; a failure raises with the end of what it said."""
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, tree_bytes(process.pid), high_water_bytes(process.pid))
            time.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - start
        if process.returncode:
            said.seek(0)
            end = said.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"{command} ended with {process.returncode}:\n{end}")
    return Run(seconds, peak)


def tree_bytes(pid: int) -> int:
    """Resident bytes of a process and all its descendants, now."""
    total = 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        folder = Path(f"/proc/{one}")
        try:
            total += int((folder / "statm").read_text().split()[1]) * PAGE_BYTES
            for task in os.listdir(folder / "task"):
                waiting += map(int, (folder / "task" / task / "children").read_text().split())
        except (OSError, IndexError):
            continue  # it ended between two looks
    return total


def high_water_bytes(pid: int) -> int:
    """The kernel's own high-water mark of one process, which polling cannot miss."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
