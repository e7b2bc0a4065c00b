"""What tasks ask of Ray: memory computed from bytes, retries, where to run.

Ray only does bookkeeping with `memory=`: it places work by it and enforces nothing. A request
that no node can hold would wait for ever, so requests are checked against the nodes first.
"""

from __future__ import annotations

from typing import Any

from raybpe.errors import ClusterError, TransientError

TASKS_PER_CPU = 2  # in flight: enough to hide scheduling, few enough that results are used soon
MAX_RETRIES = 5  # lost workers and nodes; spot machines spend them quickly
# Measured as peaks of processes, tables of the object store that they map left out.
WORKER_BYTES = 250 * 2**20  # 155 MB with Ray, Arrow and kernels; buffers of readers 60 MB
BYTES_PER_CHUNK_BYTE = 6  # random words 5.7, multilingual text 1.4, English 0.3
LARGE_CHUNK_BYTES = 128 * 10**6  # from here on, text repeats itself
BYTES_PER_LATER_BYTE = 1  # of files that cannot be cut, such as compressed ones
BYTES_PER_ADDED_BYTE = 5  # 3 to 4: a table, the same while it grows, and the rows copied out

SMALLER_CHUNKS = "give a smaller --chunk-size, or nodes with more memory"
LARGER_NODES = "use nodes with more memory"
FEWER_PRETOKENS = "leave out rare pretokens with --min-pretoken-count, or use a larger machine here"


def window(workers: int | None) -> int:
    """Most tasks to have in flight now; ask again, since nodes come and go."""
    import ray

    cpus = int(ray.cluster_resources().get("CPU", 0))
    return workers or max(TASKS_PER_CPU * cpus, 1)


def retrying(name: str, memory: int) -> dict[str, Any]:
    """Options of a task that may run again, though not as it is when memory ran out."""
    return {
        "name": name,
        "memory": memory,
        "max_retries": MAX_RETRIES,
        "retry_exceptions": [TransientError],
    }


def count_memory(chunk_bytes: int) -> int:
    """Memory to count a chunk, in bytes."""
    first = min(chunk_bytes, LARGE_CHUNK_BYTES)
    later = chunk_bytes - first
    return WORKER_BYTES + BYTES_PER_CHUNK_BYTE * first + BYTES_PER_LATER_BYTE * later


def add_memory(table_bytes: int) -> int:
    """Memory to add tables of so many bytes together."""
    return WORKER_BYTES + BYTES_PER_ADDED_BYTE * table_bytes


def merge_memory(pretoken_bytes: int, pretokens: int, max_merges: int) -> int:
    """Memory of the merge loop over so many unique pretokens."""
    from raybpe.merges.trainer import memory_estimate

    return WORKER_BYTES + memory_estimate(pretoken_bytes, pretokens, max_merges)


def on_node(node_id: str | None) -> dict[str, Any]:
    """Options of work that must run on one node, whether or not it has CPUs to give."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if node_id is None:
        return {}
    return {
        "num_cpus": 0,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id, soft=False),
    }


def check_feasible(what: str, memory: int, cure: str, node_id: str | None = None) -> None:
    """Refuse work that no node (or the one node where it must run) could ever hold.

    Nothing is said while no node has CPUs: workers of an autoscaling cluster are yet to come.

    Raises:
        ClusterError: the request is larger than any node's memory.
    """
    largest = _largest_node(node_id)
    if largest is not None and memory > largest:
        where = "the node it must run on has" if node_id else "the largest node has"
        raise ClusterError(
            f"{what} needs about {memory / 1e9:.1f} GB of memory, and {where} "
            f"{largest / 1e9:.1f} GB to give: {cure}"
        )


def more_memory(what: str, memory: int, cure: str, node_id: str | None = None) -> int:
    """What to ask for when `memory` was not enough: twice that, or all that a node has.

    Raises:
        ClusterError: it was all that the largest node (or the one node) has.
    """
    largest = _largest_node(node_id)
    if largest is not None and memory >= largest:
        raise ClusterError(
            f"{what} ran out of memory with all {largest / 1e9:.1f} GB of a node to itself: {cure}"
        )
    more = max(2 * memory, WORKER_BYTES)
    return more if largest is None else min(more, largest)


def memory_per_cpu() -> float:
    """Memory in bytes that each CPU's task can have, where nodes have least; 0 without nodes."""
    shares = [
        node["Resources"].get("memory", 0) / node["Resources"]["CPU"] for node in _with_cpus()
    ]
    return min(shares, default=0)


def _largest_node(node_id: str | None) -> int | None:
    """Memory in bytes that a node (or the one named) gives to tasks; None if none can be seen."""
    able = _with_cpus() if node_id is None else [n for n in _nodes() if n["NodeID"] == node_id]
    return max((int(node["Resources"].get("memory", 0)) for node in able), default=None)


def _with_cpus() -> list[dict[str, Any]]:
    return [node for node in _nodes() if node["Resources"].get("CPU", 0) >= 1]


def _nodes() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]
