"""Encode with Ray: a task per shard, writing it where it belongs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

import ray

from raybpe import storage
from raybpe.errors import ClusterError, RaybpeError
from raybpe.filesystems import is_local, local_path
from raybpe.flow import checks, task_errors, task_options
from raybpe.flow.dataset.shards import Shard, shard_name, write_shard
from raybpe.flow.dataset.steps import UNIT_BYTES, EncodeConfig, encode_chunk
from raybpe.flow.progress import Progress
from raybpe.flow.signals import END_SECONDS
from raybpe.flow.waiting import wait_for_one
from raybpe.inputs import Chunk
from raybpe.tokenizer.tokenizer import Tokenizer

BLOCKS_HELD = 16  # text, ids and buffers of a task, in units


@ray.remote
def encode_shard(
    index: int, chunk: Chunk, first: bool, tokenizer: Tokenizer, config: EncodeConfig, folder: str
) -> Shard:
    """Encode one chunk and write it."""
    pieces = encode_chunk(chunk, first, tokenizer, config)
    return write_shard(folder, shard_name(index, config), config, pieces)


def encode_shards(
    todo: Iterable[tuple[int, Chunk, bool]],
    tokenizer: Tokenizer,
    config: EncodeConfig,
    folder: str,
    workers: int | None,
    done: Callable[[int, Chunk, Shard], None],
    progress: Progress,
) -> None:
    """Encode shards, given as (index, chunk, whether it begins the data set).

    Raises:
        ClusterError: nodes cannot hold the work or are lost, or write where we do not see it.
        RaybpeError: a shard cannot be encoded.
    """
    if is_local(folder):
        folder = os.path.abspath(local_path(folder))  # workers have another working directory
    shards = iter(todo)
    memory = task_options.WORKER_BYTES + BLOCKS_HELD * UNIT_BYTES
    task_options.check_feasible("encoding a shard", memory, task_options.LARGER_NODES)
    tokenizer_ref, config_ref = ray.put(tokenizer), ray.put(config)
    pending: dict[Any, tuple[int, Chunk, bool, int]] = {}

    def start(index: int, chunk: Chunk, first: bool, memory: int) -> None:
        options = task_options.retrying("encode", memory)
        arguments = (index, chunk, first, tokenizer_ref, config_ref, folder)
        pending[encode_shard.options(**options).remote(*arguments)] = (index, chunk, first, memory)

    def note(ref: Any) -> None:
        index, chunk, _, _ = pending.pop(ref)
        shard: Shard = ray.get(ref)
        if is_local(folder) and not storage.exists(storage.join(folder, shard.file)):
            raise ClusterError(
                f"another node wrote {shard.file} to its own {folder}, which this machine does "
                "not see; give a URI or a folder that all nodes share with --output"
            )
        done(index, chunk, shard)

    def awaited() -> str:
        gigabytes = max(task[-1] for task in pending.values()) / 1e9
        return f"{len(pending)} shards ask for 1 CPU and up to {gigabytes:.1f} GB of memory each"

    try:
        while True:
            room = max(task_options.window(workers) - len(pending), 0)
            for index, chunk, first in islice(shards, room):
                start(index, chunk, first, memory)
            if not pending:
                return
            ref = wait_for_one(pending, awaited, progress)
            index, chunk, first, asked = pending[ref]
            try:
                note(ref)
            except ray.exceptions.RayError as error:
                name = f"encoding shard {index:,}, {checks.describe(chunk)},"
                if not task_errors.ran_out_of_memory(error):
                    raise task_errors.as_own(name, error) from error
                more = task_options.more_memory(name, asked, task_options.LARGER_NODES)
                start(index, chunk, first, more)
    finally:
        # After an error or Ctrl-C: what is being written need not be encoded again.
        with suppress(ray.exceptions.RayError, RaybpeError):
            for ref in _ended(pending):
                note(ref)


def _ended(refs: Iterable[Any]) -> list[Any]:
    refs = list(refs)
    return ray.wait(refs, num_returns=len(refs), timeout=END_SECONDS)[0] if refs else []
