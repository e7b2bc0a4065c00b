"""Encode with threads of this process.

Threads encode units ahead, in order; this thread writes what is ready. Each unit has a short
queue, so a thread far ahead waits: memory is `PIECES_AHEAD` blocks of ids per unit in flight.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import Empty, Queue, SimpleQueue

from raybpe.flow.dataset.shards import Shard, shard_name, write_shard
from raybpe.flow.dataset.steps import EncodeConfig, Piece, Unit, encode_unit, units_of
from raybpe.inputs import Chunk
from raybpe.tokenizer.tokenizer import Tokenizer

PIECES_AHEAD = 4
UNITS_AHEAD = 2  # per thread

_Item = Piece | BaseException | None


class _Job:
    """A unit of a shard being encoded: pieces, then None or the error that ended it."""

    def __init__(self, shard: int, unit: Unit) -> None:
        self.shard = shard
        self.unit = unit
        self.queue: Queue[_Item] = Queue(PIECES_AHEAD)

    def pieces(self) -> Iterator[Piece]:
        """What it gives, once."""
        while (item := self.queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item


def encode_shards(
    todo: Iterable[tuple[int, Chunk, bool]],
    tokenizer: Tokenizer,
    config: EncodeConfig,
    folder: str,
    threads: int,
    done: Callable[[int, Chunk, Shard], None],
) -> None:
    """Encode shards, given as (index, chunk, whether it begins the data set)."""
    shards = list(todo)
    units = (_Job(index, unit) for index, chunk, first in shards for unit in units_of(chunk, first))
    handed_out: deque[_Job] = deque()
    waiting: SimpleQueue[_Job | None] = SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        while (job := waiting.get()) is not None and not stop.is_set():
            try:
                for piece in encode_unit(job.unit, tokenizer, config):
                    job.queue.put(piece)
                    if stop.is_set():
                        return
                job.queue.put(None)
            except BaseException as error:
                job.queue.put(error)

    def hand_out() -> None:
        while len(handed_out) < UNITS_AHEAD * threads and (job := next(units, None)) is not None:
            handed_out.append(job)
            waiting.put(job)

    def pieces(shard: int) -> Iterator[Piece]:
        hand_out()
        while handed_out and handed_out[0].shard == shard:
            yield from handed_out[0].pieces()
            handed_out.popleft()
            hand_out()

    crew = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for member in crew:
        member.start()
    try:
        for index, chunk, _ in shards:
            name = shard_name(index, config)
            done(index, chunk, write_shard(folder, name, config, pieces(index)))
    finally:
        stop.set()
        for _ in crew:
            waiting.put(None)
        for member in crew:
            while member.is_alive():
                for job in handed_out:  # it may be waiting to hand on a piece that nobody wants
                    with suppress(Empty):
                        job.queue.get_nowait()
                member.join(0.01)
