"""What tasks ask of Ray: memory computed from bytes, retries, where to run.

Ray only does bookkeeping with `memory=`: it places work by it and enforces nothing. A request
that no node can hold would wait for ever, so requests are checked against the nodes first.
"""

from __future__ import annotations

from typing import Any

from raybpe.errors import ClusterError, TransientError

MAX_RETRIES = 5  # lost workers and nodes; spot machines spend them quickly
WORKER_BYTES = 350 * 2**20  # Python with Ray, Arrow, Numba and loaded kernels
BYTES_PER_CHUNK_BYTE = 3  # table and exported columns of text with few repetitions
BYTES_PER_ADDED_BYTE = 3  # a table takes 1.5 times its columns, and twice that while it grows


def retrying(name: str, memory: int) -> dict[str, Any]:
    """Options of a task that may run again."""
    return {
        "name": name,
        "memory": memory,
        "max_retries": MAX_RETRIES,
        "retry_exceptions": [TransientError],
    }


def count_memory(chunk_bytes: int) -> int:
    """Memory to count a chunk, in bytes."""
    return WORKER_BYTES + BYTES_PER_CHUNK_BYTE * chunk_bytes


def add_memory(table_bytes: int) -> int:
    """Memory to add tables of so many bytes together."""
    return WORKER_BYTES + BYTES_PER_ADDED_BYTE * table_bytes


def merge_memory(pretoken_bytes: int, pretokens: int) -> int:
    """Memory of the merge loop over so many unique pretokens."""
    from raybpe.merges.trainer import memory_estimate

    return WORKER_BYTES + memory_estimate(pretoken_bytes, pretokens)


def on_node(node_id: str) -> dict[str, Any]:
    """Options of work that must run on one node, whether or not it has CPUs to give."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

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
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]
    if node_id is not None:
        able = [node for node in nodes if node["NodeID"] == node_id]
    else:
        able = [node for node in nodes if node["Resources"].get("CPU", 0) >= 1]
    largest = max((int(node["Resources"].get("memory", 0)) for node in able), default=None)
    if largest is not None and memory > largest:
        where = "the node it must run on has" if node_id else "the largest node has"
        raise ClusterError(
            f"{what} needs about {memory / 1e9:.1f} GB of memory, and {where} "
            f"{largest / 1e9:.1f} GB to give: {cure}"
        )
