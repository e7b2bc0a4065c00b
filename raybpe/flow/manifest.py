"""The manifest `raybpe.json`: everything needed to repeat a run, and how it went.

Keys: ``format``, ``config`` and its ``fingerprint``, ``pattern`` as text, ``unicode`` (version of
the data that the pattern was matched with), ``inputs`` (URI and size, sorted), ``totals``, and what
differs from run to run: ``run`` (executor, workers, timings in seconds, the peak memory of each
stage's largest process in bytes, versions). Two runs of equal fingerprints over equal inputs have
equal manifests but for ``run``.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from time import perf_counter
from typing import Any

from raybpe import __version__
from raybpe.config import TrainConfig
from raybpe.flow.executor import Counted, Executor
from raybpe.flow.steps import Merged

FORMAT = 1
PACKAGES = ("numpy", "numba", "pyarrow", "regex", "ray")


class Manifest:
    """Grows as a run goes on.

    Attributes:
        config: what is trained; None when only counting.
        executor: what runs it.
    """

    def __init__(self, config: TrainConfig | None, executor: Executor) -> None:
        self.config = config
        self.executor = executor
        self._unicode: str | None = None
        self._inputs: list[dict[str, Any]] = []
        self._totals: dict[str, Any] = {}
        self._chunks: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._peaks: dict[str, int] = {}

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Record how long a stage takes."""
        began = perf_counter()
        yield
        self._seconds[stage] = round(perf_counter() - began, 4)

    def counted(self, counted: Counted) -> None:
        """Record what was counted."""
        tally = counted.tally
        if tally.peak_memory_bytes:
            self._peaks["count"] = tally.peak_memory_bytes
        self._unicode = counted.unicode
        self._inputs = [{"uri": uri, "size": size} for uri, size in sorted(counted.sources)]
        self._totals.update(
            text_bytes=tally.text_bytes,
            pretokens=tally.pretokens,
            invalid_bytes=tally.invalid_bytes,
            nulls=tally.nulls,
            members_not_read=tally.members_not_read,
            byte_order_marks=tally.byte_order_marks,
            long_pretokens_left_out=tally.long_pretokens,
        )
        self._chunks = {
            "counted": tally.chunks - counted.resumed_chunks,
            "resumed": counted.resumed_chunks,
        }

    def merged(self, merged: Merged) -> None:
        """Record what was merged."""
        unique, occurrences = merged.rare
        self._peaks["merge"] = merged.peak_memory_bytes
        self._totals.update(
            unique_pretokens=merged.pretokens + unique,
            longest_pretoken=merged.longest,
            rare_pretokens_left_out={"unique": unique, "occurrences": occurrences},
            merges=len(merged.left),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        from raybpe.counts.unicode_version import unicode_version

        assert self.config is not None
        return {
            "format": FORMAT,
            "fingerprint": self.config.fingerprint(),
            "config": self.config.as_dict(),
            "pattern": self.config.counting.pattern,
            "unicode": self._unicode or unicode_version(),
            "inputs": self._inputs,
            "totals": self._totals,
            "run": {
                **self.executor.describe(),
                "chunks": self._chunks,
                "seconds": self._seconds,
                "peak_memory_bytes": self._peaks,
                "versions": versions(),
                "platform": f"{platform.system()} {platform.machine()}",
            },
        }


def versions() -> dict[str, str]:
    """Versions of this package, of Python, and of the packages that results pass through."""
    found = {"raybpe": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    for package in PACKAGES:
        # Asking the metadata costs a directory listing each; importing would cost far more.
        found[package] = metadata.version(package)
    return found
