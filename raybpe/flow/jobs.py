"""The books of the submit loop: nodes of the tree, jobs that make or save them, their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from raybpe.flow.steps import Tally

if TYPE_CHECKING:
    from raybpe.inputs import Chunk


@dataclass
class Node:
    """The sum over some chunks.

    Attributes:
        chunks: indices of the chunks.
        tally: what was seen in them.
        refs: one object per hash partition; empty when only the partial has the counts.
        size: bytes of its tables, about.
        uri: the partial, when there is one.
        saving: whether a task was asked to write the partial.
    """

    chunks: frozenset[int]
    tally: Tally
    refs: list[Any] = field(default_factory=list)
    size: int = 0
    uri: str | None = None
    saving: bool = False

    @property
    def held(self) -> int:
        """Bytes of its tables in the object store."""
        return self.size if self.refs else 0


@dataclass
class Job:
    """Tasks that together give one result.

    Attributes:
        kind: `count`, `add` or `save`.
        name: for messages.
        node: the node that it makes, or saves.
        waiting: tasks that have not ended.
        group: the nodes that it adds.
        chunks: what a count job reads.
    """

    kind: Literal["count", "add", "save"]
    name: str
    node: Node
    waiting: int = 1
    group: Sequence[Node] = ()
    chunks: Sequence[Chunk] = ()

    @property
    def held(self) -> int:
        """Bytes of objects that it keeps in the object store meanwhile."""
        return sum(node.held for node in self.group)


class Task(NamedTuple):
    """A task in flight: a part of a job, one hash partition of an add job, and what it asked for.

    Attributes:
        memory: in bytes.
    """

    job: Job
    part: int
    memory: int
