"""Encode with threads of this process.

Threads encode units ahead, in order; this thread writes what is ready. Each unit has a short
queue, so a thread far ahead waits: memory is `PIECES_AHEAD` blocks of ids per unit in flight.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import Empty, Queue

from raybpe.flow.dataset.shards import Shard, shard_name, write_shard
from raybpe.flow.dataset.steps import (
    EncodeConfig,
    Piece,
    Unit,
    encode_chunk,
    encode_unit,
    units_of,
)
from raybpe.inputs import Chunk
from raybpe.tokenizer.tokenizer import Tokenizer

PIECES_AHEAD = 4
UNITS_AHEAD = 2  # per thread

_Item = Piece | BaseException | None


class _Job:
    """A unit being encoded: pieces, then None or the error that ended it."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.queue: Queue[_Item] = Queue(PIECES_AHEAD)
        self.taken = False

    def pieces(self) -> Iterator[Piece]:
        """What has not been taken yet, once."""
        while not self.taken:
            item = self.queue.get()
            self.taken = item is None or isinstance(item, BaseException)
            if isinstance(item, BaseException):
                raise item
            if item is not None:
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
    by_shard = [[_Job(unit) for unit in units_of(chunk, first)] for _, chunk, first in shards]
    jobs = [job for several in by_shard for job in several]
    waiting = deque(jobs)
    room = threading.Semaphore(UNITS_AHEAD * threads)
    stop = threading.Event()

    def work() -> None:
        while True:
            room.acquire()
            try:
                job = waiting.popleft()
            except IndexError:
                return
            try:
                for piece in encode_unit(job.unit, tokenizer, config):
                    job.queue.put(piece)
                    if stop.is_set():
                        return
                job.queue.put(None)
            except BaseException as error:
                job.queue.put(error)

    def ahead(left: deque[_Job]) -> Iterator[Piece]:
        while left:
            yield from left[0].pieces()
            left.popleft()
            room.release()

    def attempts(chunk: Chunk, first: bool, own: list[_Job]) -> Iterator[Iterator[Piece]]:
        left = deque(own)
        yield ahead(left)
        for _ in ahead(left):  # a store asks again: what was made ahead is gone
            pass
        while True:
            yield encode_chunk(chunk, first, tokenizer, config)

    crew = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for member in crew:
        member.start()
    try:
        for (index, chunk, first), own in zip(shards, by_shard, strict=True):
            name = shard_name(index, config)
            done(index, chunk, write_shard(folder, name, config, attempts(chunk, first, own)))
    finally:
        stop.set()
        waiting.clear()
        for member in crew:
            while member.is_alive():
                room.release()  # it may be waiting for room,
                for job in jobs:  # or to hand on a piece that nobody wants
                    with suppress(Empty):
                        job.queue.get_nowait()
                member.join(0.01)
