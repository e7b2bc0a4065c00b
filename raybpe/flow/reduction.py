"""Count chunks with Ray tasks and add the results up in a tree: the only submit loop.

A `Node` is the sum over some chunks: one object per hash partition, or a partial in the run
directory, or both. Whenever `fan_in` nodes are ready, one task per partition adds them into a new
node, in whatever order they arrive; addition makes order meaningless.

A counting task takes several chunks while there are many, so that fewer tables are made and added
up, and one towards the end, so that all workers end together. Which chunks go together changes no
result, and what is done is still noted chunk by chunk.

Bounds: a few counting tasks per CPU are in flight, so that results are merged soon; nothing but
small figures comes to this process. Every `save_seconds`, and whenever tables fill
`STORE_FRACTION` of the cluster's object store, ready nodes go to the run directory; in the second
case their objects are let go and later tasks read the partials.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING, Any

import ray

from raybpe.config import CountConfig
from raybpe.errors import ClusterError, RaybpeError, TransientError
from raybpe.filesystems import is_local
from raybpe.flow import checks, task_errors, task_options, tasks
from raybpe.flow.jobs import Job, Node, Task
from raybpe.flow.partials import Partial, write_partial
from raybpe.flow.run_directory import END_SHARE, STOP_SHARE, RunDirectory
from raybpe.flow.signals import END_SECONDS
from raybpe.flow.steps import Tally, pretokenizer_of
from raybpe.flow.waiting import wait_for_one

if TYPE_CHECKING:
    from raybpe.flow.progress import Progress
    from raybpe.inputs import Chunk

TASK_CHUNKS = 4  # at most in one task: with 4 of 64 MB tables cost a tenth of it, with 1 a quarter
TASK_BYTES = 256 * 10**6  # and no more than this, unless one chunk is
STORE_FRACTION = 0.4
PASSING = (ClusterError, TransientError)  # errors after which the same command may go on

_count_chunks = ray.remote(tasks.count_chunks)
_add_counts = ray.remote(tasks.add_counts)
_save_partial = ray.remote(tasks.save_partial)


class Reduction:
    """State of the submit loop.

    Args:
        directory: the plan, what is done of it, and where partials go.
        workers: most counting tasks in flight; None for some per CPU of the cluster.
        fan_in: nodes that are added at once.
        save_seconds: counting work that a kill may cost.
    """

    def __init__(
        self,
        directory: RunDirectory,
        config: CountConfig,
        progress: Progress,
        *,
        workers: int | None,
        fan_in: int,
        save_seconds: float,
    ) -> None:
        self._directory = directory
        self._progress = progress
        self._workers = workers
        self._fan_in = fan_in
        self._save_seconds = save_seconds
        self._saved_at = perf_counter()
        self._driver = ray.get_runtime_context().get_node_id()
        self._config = ray.put(config)
        self._pending: dict[Any, Task] = {}
        self._todo = deque(
            chunk for chunk in directory.plan.chunks if chunk.index not in directory.covered
        )
        self._ready = [
            Node(partial.chunks, partial.tally, [], partial.size, partial.uri, saving=True)
            for partial in directory.partials()
        ]
        # With a slow pattern a chunk is work enough to lose when a worker dies.
        self._task_chunks = TASK_CHUNKS if pretokenizer_of(config).engine != "regex" else 1

    def run(self, advance: Callable[[int], None]) -> Node:
        """Count and add everything up.

        Args:
            advance: called with the input bytes of what was counted.

        Returns:
            The sum over all chunks of the plan, in the object store.

        Raises:
            RaybpeError: a chunk cannot be counted; the message names it.
            ClusterError: nothing happens any more, or no node can hold the work.
        """
        self._check_memory()
        try:
            while True:
                while self._todo and self._may_count():
                    self._submit_count(self._next_chunks())
                if self._directory.keeps_partials and (self._is_short() or self._is_late()):
                    self._save_ready()
                if self._may_add():
                    self._submit_add()
                elif self._pending:
                    self._wait(advance)
                elif self._directory.keeps_partials and self._is_late(END_SHARE):
                    self._save_ready()  # before the merge loop, which may take long
                else:
                    break
        except BaseException as error:
            # What inputs or settings are to blame for comes again until they are others.
            passing = not isinstance(error, RaybpeError) or isinstance(error, PASSING)
            with suppress(RaybpeError, ray.exceptions.RayError):
                self._stop(save=passing)
            raise
        (root,) = self._ready
        return root

    def _stop(self, save: bool) -> None:
        """After an error or Ctrl-C, save what is counted, largest sums first, while there is time.

        What is being saved already is waited for in any case.

        This process writes, since starting a worker takes too long. Tasks end with the connection
        or, in a Ray that the caller keeps, when they are done: `ray.cancel` can crash this process
        where a task ends at the same time (ray#54785).
        """
        until = perf_counter() + END_SECONDS
        if save and self._directory.keeps_partials and self._has_counted_for(STOP_SHARE):
            nodes = [*self._ready, *(node for job in self._jobs() for node in job.group)]
            for node in sorted(nodes, key=lambda one: -len(one.chunks)):
                if not node.saving and perf_counter() < until:
                    self._save_here(node)
        saves = [ref for ref, task in self._pending.items() if task.job.kind == "save"]
        if saves:
            left = max(until - perf_counter(), 0)
            for ref in ray.wait(saves, num_returns=len(saves), timeout=left)[0]:
                ray.get(ref)
                self._note_saved(self._pending[ref].job.node)

    def _save_here(self, node: Node) -> None:
        tables = ray.get(node.refs, timeout=END_SECONDS)
        chunks = sorted(node.chunks)
        uri = self._directory.partial_uri(chunks)
        write_partial(uri, self._directory.identity, chunks, tables, node.tally)
        self._note_saved(node)

    def _note_saved(self, node: Node) -> None:
        node.uri = self._directory.partial_uri(sorted(node.chunks))
        node.saving = True
        self._directory.note_saved(Partial(node.uri, node.chunks, node.tally, node.size))

    def _jobs(self) -> list[Job]:
        """The jobs in flight."""
        return list({id(task.job): task.job for task in self._pending.values()}.values())

    # -- what to do next -------------------------------------------------------------------------

    def _may_count(self) -> bool:
        counting = sum(job.kind == "count" for job in self._jobs())
        if self._is_short():
            return not self._pending  # room comes as saving goes on
        return counting < task_options.window(self._workers)

    def _next_chunks(self) -> list[Chunk]:
        """What the next counting task reads: less and less towards the end, but one chunk."""
        share = ceil(len(self._todo) / task_options.window(self._workers))
        most = min(self._task_chunks, share)
        memory = task_options.memory_per_cpu()
        chunks = [self._todo.popleft()]
        size = chunks[0].bytes
        while len(chunks) < most:
            size += self._todo[0].bytes
            if size > TASK_BYTES or task_options.count_memory(size) > memory:
                break
            chunks.append(self._todo.popleft())
        return chunks

    def _may_add(self) -> bool:
        if len(self._ready) >= self._fan_in:
            return True
        if self._todo or any(job.kind != "save" for job in self._jobs()):
            return False
        # The last ones; and what earlier runs saved must be fetched, even when it is all.
        return len(self._ready) > 1 or any(not node.refs for node in self._ready)

    def _is_short(self) -> bool:
        """Whether tables fill the object store, and could be put elsewhere."""
        if not self._directory.keeps_partials or self._is_whole():
            return False
        held = sum(node.held for node in self._ready)
        held += sum(job.held for job in self._jobs())
        store = ray.cluster_resources().get("object_store_memory", 0)
        return bool(held > STORE_FRACTION * store)

    def _is_whole(self) -> bool:
        """Whether one node has everything; whoever comes next needs it in the object store."""
        making = any(job.kind != "save" for job in self._jobs())
        return not self._todo and not making and len(self._ready) == 1

    def _is_late(self, share: float = 1.0) -> bool:
        """Whether it is time to save, and there is something that is not saved yet."""
        unsaved = any(not node.saving for node in self._ready)
        return unsaved and self._has_counted_for(share)

    def _has_counted_for(self, share: float) -> bool:
        return perf_counter() - self._saved_at > share * self._save_seconds

    # -- submitting ------------------------------------------------------------------------------

    def _submit_count(self, chunks: Sequence[Chunk]) -> None:
        node = Node(frozenset(chunk.index for chunk in chunks), Tally())
        more = f" and {len(chunks) - 1} more chunks" if len(chunks) > 1 else ""
        name = f"counting {checks.describe(chunks[0])}{more}"
        size = sum(chunk.bytes for chunk in chunks)
        self._start_count(Job("count", name, node, chunks=chunks), task_options.count_memory(size))

    def _start_count(self, job: Job, memory: int) -> None:
        results: Any = _count_chunks.options(
            num_returns=1 + self._directory.partitions,
            scheduling_strategy="SPREAD",  # inputs are in no node's object store
            **task_options.retrying(f"count:{job.chunks[0].name}", memory),
        ).remote(job.chunks, self._config, self._directory.partitions)
        job.node.refs = list(results[1:])
        self._pending[results[0]] = Task(job, 0, memory)

    def _submit_add(self) -> None:
        group, self._ready = self._ready[: self._fan_in], self._ready[self._fan_in :]
        partitions = self._directory.partitions
        node = Node(frozenset().union(*(one.chunks for one in group)), Tally(), [None] * partitions)
        for one in group:
            node.tally.add(one.tally)
        size = sum(one.size for one in group)
        memory = task_options.add_memory(size // partitions)
        name = f"adding the counts of {len(node.chunks):,} chunks"
        job = Job("add", name, node, partitions, group)
        task_options.check_feasible(name, memory, task_options.LARGER_NODES, self._only_node(job))
        for partition in range(partitions):
            self._start_add(job, partition, memory)

    def _start_add(self, job: Job, partition: int, memory: int) -> None:
        uris = [str(one.uri) for one in job.group if not one.refs]
        tables = [one.refs[partition] for one in job.group if one.refs]
        options = task_options.retrying(f"add:{len(job.node.chunks)}", memory)
        options |= task_options.on_node(self._only_node(job))
        info, job.node.refs[partition] = _add_counts.options(num_returns=2, **options).remote(
            partition, uris, *tables
        )
        self._pending[info] = Task(job, partition, memory)

    def _save_ready(self) -> None:
        for node in self._ready:
            if not node.saving:
                node.saving = True
                self._start_save(Job("save", f"saving {len(node.chunks):,} chunks' counts", node))
        self._saved_at = perf_counter()

    def _start_save(self, job: Job, memory: int = 0) -> None:
        chunks = sorted(job.node.chunks)
        # No CPU is asked for, so that it does not queue behind the counting.
        options = task_options.retrying(f"save:{len(chunks)}", memory) | {"num_cpus": 0}
        options |= task_options.on_node(self._only_node(job))
        done = _save_partial.options(**options).remote(
            self._directory.partial_uri(chunks),
            self._directory.identity,
            chunks,
            job.node.tally,
            *job.node.refs,
        )
        self._pending[done] = Task(job, 0, memory)

    def _only_node(self, job: Job) -> str | None:
        """Where it must run: here, if it uses a run directory that only this machine has."""
        if job.kind == "save":
            here = is_local(self._directory.partial_uri([]))
        else:
            here = any(not one.refs and is_local(str(one.uri)) for one in job.group)
        return self._driver if here else None

    def _start_with_more(self, task: Task) -> None:
        """Start a task again that ran out of memory; so fewer run beside it."""
        job = task.job
        cure = task_options.SMALLER_CHUNKS if job.kind == "count" else task_options.LARGER_NODES
        memory = task_options.more_memory(job.name, task.memory, cure, self._only_node(job))
        self._progress.note(
            f"{job.name} ran out of memory; it runs again, asking for {memory / 1e9:.1f} GB"
        )
        if job.kind == "count":
            self._start_count(job, memory)
        elif job.kind == "add":
            self._start_add(job, task.part, memory)
        else:
            self._start_save(job, memory)

    # -- waiting ---------------------------------------------------------------------------------

    def _wait(self, advance: Callable[[int], None]) -> None:
        """Wait for one task and take its result."""
        done = wait_for_one(self._pending, self._awaited, self._progress)
        task = self._pending.pop(done)
        job, node = task.job, task.job.node
        try:
            result = ray.get(done)
        except ray.exceptions.RayError as error:
            if not task_errors.ran_out_of_memory(error):
                raise task_errors.as_own(job.name, error) from error
            self._start_with_more(task)
            return
        job.waiting -= 1
        if job.kind == "count":
            node.tally, node.size = result
            advance(sum(chunk.bytes for chunk in job.chunks))
            checks.check_pattern_matches(node.tally, ray.get(self._config), at_end=False)
        elif job.kind == "add":
            peak, size = result
            node.tally.peak_memory_bytes = max(node.tally.peak_memory_bytes, peak)
            node.size += size
        else:
            self._note_saved(node)
            if self._is_short():
                node.refs = []
            return
        if job.waiting == 0:
            self._ready.append(node)

    def _awaited(self) -> str:
        """What is in flight, and what it asked for."""
        jobs = self._jobs()
        largest = max(task.memory for task in self._pending.values())
        return (
            f"{len(jobs)} jobs are in flight, the first is {jobs[0].name}; tasks ask for 1 CPU and "
            f"up to {largest / 1e9:.1f} GB of memory each"
        )

    def _check_memory(self) -> None:
        largest = max((chunk.bytes for chunk in self._todo), default=0)
        if largest:
            task_options.check_feasible(
                f"counting a chunk of {largest / 1e6:,.0f} MB",
                task_options.count_memory(largest),
                task_options.SMALLER_CHUNKS,
            )
