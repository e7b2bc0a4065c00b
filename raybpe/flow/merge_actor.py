"""The merge actor: the merge loop in a process of its own, on the driver's node.

A shell around `steps`: each call advances by a slice and says how far it is. The counts come with
every call and are read from shared memory the first time, so a restarted actor builds its state
again from them and catches up: merges follow from the counts alone, so repeating a call, or all of
them, changes nothing. A replay costs a fraction of counting; no checkpoint could be cheaper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raybpe.config import TrainConfig
from raybpe.counts.arrow import from_arrow
from raybpe.flow import steps
from raybpe.flow.steps import Merged
from raybpe.flow.warm import warm_merging

if TYPE_CHECKING:
    import pyarrow as pa

    from raybpe.merges.trainer import MergeTrainer


class MergeActor:
    """State of one merge loop."""

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        warm_merging(config)
        self._started: tuple[MergeTrainer, Merged] | None = None

    def advance(self, seconds: float, *tables: pa.Table) -> tuple[int, bool]:
        """Merge for some seconds; returns merges made so far, and whether that is all."""
        trainer, _ = self._start(tables)
        done = next(steps.advance(trainer, seconds), len(trainer.left))
        return done, trainer.done

    def result(self, *tables: pa.Table) -> Merged:
        """Everything that was merged; after a restart, once it is merged again."""
        trainer, merged = self._start(tables)
        for _ in steps.advance(trainer, 60.0):
            pass
        return steps.finish_merging(trainer, merged)

    def _start(self, tables: tuple[pa.Table, ...]) -> tuple[MergeTrainer, Merged]:
        if self._started is None:
            parts = [part for table in tables for part in from_arrow(table)]
            self._started = steps.start_merging(parts, self._config)
        return self._started
