"""Ask every node of a Ray cluster for what matters to a run: versions, memory, kernel cache."""

from __future__ import annotations

from raybpe.config import RunOptions
from raybpe.flow.connect import connected
from raybpe.flow.progress import Progress

ASKED = ("machine", "cores", "memory", "python", "raybpe", "numba", "pyarrow", "kernel cache")
SAME = ("python", "raybpe", "numba", "pyarrow", "numpy", "regex", "ray")
ANSWER_SECONDS = 60.0


def cluster_rows(address: str) -> list[tuple[str, str]]:
    """Facts of each node, and a line for each version that is not the same everywhere.

    Raises:
        ClusterError: the cluster cannot be reached.
    """
    import ray

    from raybpe.doctor import machine_rows
    from raybpe.flow.task_options import on_node

    rows: list[tuple[str, str]] = []
    facts: dict[str, dict[str, str]] = {}
    with connected(RunOptions(executor="ray", address=address), Progress(), None):
        ask = ray.remote(machine_rows)
        asked = {
            ask.options(**on_node(node["NodeID"])).remote(): node["NodeManagerAddress"]
            for node in ray.nodes()
            if node["Alive"]
        }
        answered, silent = ray.wait(
            list(asked), num_returns=len(asked), timeout=ANSWER_SECONDS, fetch_local=True
        )
        for answer in answered:
            facts[asked[answer]] = dict(ray.get(answer))
        rows += [(asked[one], f"no answer in {ANSWER_SECONDS:.0f} s") for one in silent]
    facts["this process"] = dict(machine_rows())
    for node, known in facts.items():
        rows.append((node, "; ".join(f"{name} {known[name]}" for name in ASKED)))
    for name in SAME:
        versions = {known[name].split(" ")[0] for known in facts.values()}
        if len(versions) > 1:
            rows.append((f"{name} DIFFERS", ", ".join(sorted(versions))))
    return rows
