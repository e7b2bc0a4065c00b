"""Encode with Ray: a task per shard, writing it where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import ray

from raybpe.errors import RaybpeError
from raybpe.flow import task_options
from raybpe.flow.dataset.shards import Shard, shard_name, write_shard
from raybpe.flow.dataset.steps import UNIT_BYTES, EncodeConfig, encode_chunk
from raybpe.inputs import Chunk
from raybpe.tokenizer.tokenizer import Tokenizer

TASKS_PER_CPU = 2
BLOCKS_HELD = 16  # text, ids and buffers of a task, in units


@ray.remote
def encode_shard(
    index: int, chunk: Chunk, first: bool, tokenizer: Tokenizer, config: EncodeConfig, folder: str
) -> Shard:
    """Encode one chunk and write it."""
    attempts = (encode_chunk(chunk, first, tokenizer, config) for _ in repeat(None))
    return write_shard(folder, shard_name(index, config), config, attempts)


def encode_shards(
    todo: Iterable[tuple[int, Chunk, bool]],
    tokenizer: Tokenizer,
    config: EncodeConfig,
    folder: str,
    workers: int | None,
    done: Callable[[int, Chunk, Shard], None],
) -> None:
    """Encode shards, given as (index, chunk, whether it begins the data set)."""
    shards = iter(todo)
    cpus = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    window = workers or TASKS_PER_CPU * cpus
    memory = task_options.WORKER_BYTES + BLOCKS_HELD * UNIT_BYTES
    task_options.check_feasible("encoding a shard", memory, "use nodes with more memory")
    options = task_options.retrying("encode", memory)
    tokenizer_ref, config_ref = ray.put(tokenizer), ray.put(config)
    pending: dict[Any, tuple[int, Chunk]] = {}
    more = True
    while more or pending:
        while more and len(pending) < window:
            item = next(shards, None)
            if item is None:
                more = False
                break
            index, chunk, first = item
            ref = encode_shard.options(**options).remote(
                index, chunk, first, tokenizer_ref, config_ref, folder
            )
            pending[ref] = (index, chunk)
        if pending:
            ready, _ = ray.wait(list(pending), num_returns=1)
            index, chunk = pending.pop(ready[0])
            try:
                shard = ray.get(ready[0])
            except ray.exceptions.RayTaskError as error:
                cause = error.cause if isinstance(error.cause, RaybpeError) else None
                raise (cause or RaybpeError(f"encoding shard {index} failed: {error}")) from error
            done(index, chunk, shard)
