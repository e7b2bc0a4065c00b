"""The Ray executor: the same steps as tasks and one actor, on whatever Ray there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import ray

from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.counts.arrow import from_arrow, to_arrow
from raybpe.counts.columns import Columns
from raybpe.errors import ClusterError
from raybpe.flow import task_errors, task_options
from raybpe.flow.connect import connected
from raybpe.flow.executor import Counted
from raybpe.flow.local import LocalExecutor
from raybpe.flow.merge_actor import MergeActor
from raybpe.flow.progress import Progress
from raybpe.flow.reduction import Reduction
from raybpe.flow.run_directory import RunDirectory
from raybpe.flow.steps import Merged
from raybpe.flow.waiting import wait_for_one
from raybpe.flow.warm import COUNTING, MESSAGE, needs_compiling

SLICE_SECONDS = 0.5  # of merging, between two looks at progress and Ctrl-C
ACTOR_RESTARTS = 3


@dataclass
class RayCounted(Counted):
    """Counts whose tables are in the object store.

    Attributes:
        refs: one Arrow table per hash partition.
    """

    refs: list[Any] = field(default_factory=list)

    def columns(self) -> Sequence[Columns]:
        """The tables, mapped into this process."""
        return [part for ref in self.refs for part in from_arrow(ray.get(ref))]


class RayExecutor:
    """See the module."""

    name = "ray"

    def __init__(self, options: RunOptions, progress: Progress) -> None:
        self.options = options
        self.progress = progress

    def chunk_bytes(self, options: RunOptions) -> int:
        """As asked: 64 MB take some tenths of a second, a task's overhead a hundredth."""
        return options.chunk_bytes

    def count(self, directory: RunDirectory, config: CountConfig) -> Counted:
        """Count what is missing in tasks; what only this process can read is counted here."""
        plan = directory.plan
        if plan.reads_stdin:
            return LocalExecutor(self.options, self.progress).count(directory, config)
        if needs_compiling(config):
            self.progress.note(MESSAGE.format(COUNTING))
        resumed = len(directory.covered)
        with self.progress.stage("count", plan.total_bytes, "bytes") as stage:
            stage.advance(sum(c.bytes for c in plan.chunks if c.index in directory.covered))
            reduction = Reduction(
                directory,
                config,
                self.progress,
                workers=self.options.workers,
                fan_in=self.options.fan_in,
                save_seconds=self.options.save_seconds,
            )
            root = reduction.run(stage.advance)
        return RayCounted(root.tally, (), directory.sources, resumed, refs=root.refs)

    def merge(self, counted: Counted, config: TrainConfig) -> Merged:
        """Run the merge loop in an actor on this node."""
        if isinstance(counted, RayCounted):
            refs = counted.refs
        else:
            refs = [ray.put(to_arrow(columns)) for columns in counted.columns()]
        columns = [part for ref in refs for part in from_arrow(ray.get(ref))]
        rows = sum(len(part.counts) for part in columns)
        size = sum(len(part.data) for part in columns)
        memory = task_options.merge_memory(size, rows, config.max_merges)
        del columns
        here = ray.get_runtime_context().get_node_id()
        what = f"merging over {rows:,} unique pretokens"
        task_options.check_feasible(what, memory, task_options.FEWER_PRETOKENS, here)
        actor: Any = (
            ray.remote(MergeActor)
            .options(
                memory=memory,
                max_restarts=ACTOR_RESTARTS,
                max_task_retries=ACTOR_RESTARTS,
                **task_options.on_node(here),
            )
            .remote(config)
        )
        try:
            wanted = f"{what} asks for {memory / 1e9:.1f} GB of memory on this node"
            return self._merge(actor, refs, config, wanted)
        except ray.exceptions.RayError as error:
            if task_errors.ran_out_of_memory(error):
                cure = task_options.FEWER_PRETOKENS
                raise ClusterError(f"{what} ran out of memory: {cure}") from error
            raise task_errors.as_own("merging", error) from error
        finally:
            ray.kill(actor)

    def _merge(self, actor: Any, refs: Sequence[Any], config: TrainConfig, wanted: str) -> Merged:
        def value(ref: Any) -> Any:
            return ray.get(wait_for_one([ref], lambda: wanted, self.progress))

        with self.progress.stage("merge", config.max_merges, "merges") as stage:
            finished = False
            while not finished:
                done, finished = value(actor.advance.remote(SLICE_SECONDS, *refs))
                stage.reach(done)
            result: Merged = value(actor.result.remote(*refs))
            return result

    def describe(self) -> dict[str, Any]:
        """For the manifest."""
        resources = ray.cluster_resources()
        nodes = len([node for node in ray.nodes() if node["Alive"]])
        return {"executor": self.name, "workers": int(resources.get("CPU", 0)), "nodes": nodes}


@contextmanager
def ray_executor(
    options: RunOptions, progress: Progress, reason: str | None
) -> Iterator[RayExecutor]:
    """A Ray executor, connected."""
    with connected(options, progress, reason):
        yield RayExecutor(options, progress)
