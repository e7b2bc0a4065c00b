"""Memory of this process and this machine, as the operating system tells."""

from __future__ import annotations

import sys

UNKNOWN_FREE_BYTES = 4 * 2**30  # assumed where /proc does not say


def peak_memory() -> int:
    """Most bytes that this process has had resident, shared pages included; 0 where unknown."""
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    # Possibly the peak of the process that started this one.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def free_memory() -> int:
    """Bytes of memory that a process may still take on this machine, cgroup limits included."""
    try:
        with open("/proc/meminfo") as lines:
            free = next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration):
        return UNKNOWN_FREE_BYTES
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            with open(limit) as a, open(used) as b:
                free = min(free, max(int(a.read()) - int(b.read()), 0))
        except (OSError, ValueError):  # no such limit; "max"
            continue
    return free
