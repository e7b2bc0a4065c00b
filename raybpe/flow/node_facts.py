"""Ask every node of a Ray cluster for what matters to a run: versions, memory, kernel cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

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
    from raybpe.flow.task_errors import explain
    from raybpe.flow.task_options import on_node

    rows: list[tuple[str, str]] = []
    facts: dict[str, dict[str, str]] = {}
    with connected(RunOptions(executor="ray", address=address), Progress(), None):
        ask = ray.remote(machine_rows)
        asked = {
            ask.options(**on_node(node["NodeID"])).remote(): _named(node)
            for node in ray.nodes()
            if node["Alive"]
        }
        answered, silent = ray.wait(
            list(asked), num_returns=len(asked), timeout=ANSWER_SECONDS, fetch_local=True
        )
        for answer in answered:
            try:
                facts[asked[answer]] = dict(ray.get(answer))
            except ray.exceptions.RayError as error:
                rows.append((asked[answer], explain(error) or str(error)))
        rows += [(asked[one], f"no answer in {ANSWER_SECONDS:.0f} s") for one in silent]
    facts["this process"] = dict(machine_rows())
    for node, known in facts.items():
        rows.append((node, "; ".join(f"{name} {known[name]}" for name in ASKED)))
    return rows + differing(facts.values())


def differing(facts: Collection[Mapping[str, str]]) -> list[tuple[str, str]]:
    """A line for each version that is not the same in all; what stands in brackets may differ."""
    rows = []
    for name in SAME:
        versions = {known[name].partition(" (")[0] for known in facts}
        if len(versions) > 1:
            rows.append((f"{name} DIFFERS", ", ".join(sorted(versions))))
    return rows


def _named(node: dict[str, Any]) -> str:
    """Address of a node, part of its id, and what Ray may give away there."""
    has = node["Resources"]
    return (
        f"{node['NodeManagerAddress']} ({node['NodeID'][:6]}, {has.get('CPU', 0):.0f} CPUs, "
        f"{has.get('memory', 0) / 1e9:.1f} GB)"
    )
