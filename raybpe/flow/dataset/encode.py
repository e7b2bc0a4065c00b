"""The story of encoding a data set: plan, encode what is missing, write the index.

    DIR/shard-00000.npy …   ids, in the order of the inputs sorted by URI
    DIR/index.json          what is in each shard, token and document counts, inputs, tokenizer
    DIR/.raybpe/            only while unfinished: `run.json`, and one small file per finished shard

A shard is what one chunk of the plan gives, so its bytes depend on the inputs, the tokenizer and
the chunk size, never on how many workers there are. The same command after a kill goes on with the
shards that are missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from raybpe import storage
from raybpe.config import RunOptions
from raybpe.cores import cores
from raybpe.errors import UsageError
from raybpe.filesystems import shown
from raybpe.flow.checks import check_output_is_apart, check_output_is_no_source, passed_over
from raybpe.flow.dataset.index import (
    INDEX,
    INDEX_FORMAT,
    UNFINISHED,
    dump,
    is_shard_name,
    load,
    shard_of,
    shards_of,
)
from raybpe.flow.dataset.shards import Shard
from raybpe.flow.dataset.steps import EncodeConfig, ShardFormat
from raybpe.flow.differences import refuse_differences
from raybpe.flow.executor import choose
from raybpe.flow.progress import progress_for
from raybpe.inputs import Chunk, Plan, plan_inputs
from raybpe.tokenizer.tokenizer import Tokenizer

_FINISHED_SHARD = re.compile(r"shard-([0-9]{5,9})\.json")


@dataclass(frozen=True)
class Encoded:
    """A finished data set: its shards in order, and whether it was there already."""

    folder: str
    shards: tuple[Shard, ...]
    found: bool = False

    @property
    def tokens(self) -> int:
        """Ids in all shards."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def documents(self) -> int:
        """Documents in all shards."""
        return sum(shard.documents for shard in self.shards)

    @property
    def text_bytes(self) -> int:
        """Bytes of text that were encoded."""
        return sum(shard.text_bytes for shard in self.shards)


def encode_dataset(
    tokenizer: Tokenizer,
    inputs: Sequence[str],
    options: RunOptions,
    *,
    format: ShardFormat = "npy",
    dtype: Literal["auto", "uint16", "uint32"] = "auto",
    eot_token: str | None = None,
) -> Encoded:
    """Encode inputs into shards in `options.output`.

    Args:
        format: `npy`, `bin` or `parquet`.
        dtype: of the ids; `auto` is uint16 when every id fits.
        eot_token: special token to put between documents; None for none.

    Raises:
        UsageError: an option is wrong, the folder holds another data set or lies within an input.
        InputError: input is missing or cannot be read, or the folder's index is not ours.
        OutputError: a shard cannot be written.
    """
    config = encode_config(tokenizer, format, dtype, eot_token)
    if options.output is None:
        raise UsageError("encoding a data set needs an --output folder")
    folder = options.output
    check_output_is_apart(inputs, options)
    plan = in_order(plan_inputs(inputs, chunk_bytes=options.chunk_bytes,
                                documents=options.documents, field=options.field))  # fmt: skip
    progress = progress_for(options.progress)
    for note in plan.notes:
        progress.note(note)
    check_output_is_no_source(plan, options)
    identity = _identity(tokenizer, config, plan, options)
    state = _State.open(folder, identity, options.resume, plan.reads_stdin)
    if state.finished is not None:
        progress.note(f"{shown(folder)} already holds this data set; --no-resume encodes it again")
        return Encoded(folder, state.finished, found=True)
    if state.shards:
        progress.note(f"resuming: {len(state.shards):,} of {len(plan.chunks):,} shards are encoded")
    todo = [
        (index, chunk, index == 0)
        for index, chunk in enumerate(plan.chunks)
        if index not in state.shards
    ]
    with progress.stage("encode", plan.total_bytes, "bytes") as stage:
        missing = sum(chunk.bytes for _, chunk, _ in todo)
        stage.advance(sum(chunk.bytes for chunk in plan.chunks) - missing)

        def done(index: int, chunk: Chunk, shard: Shard) -> None:
            state.finish_shard(index, shard)
            stage.advance(chunk.bytes)

        kind, reason = choose(options)
        if kind == "ray" and not plan.reads_stdin:
            from raybpe.flow.connect import connected
            from raybpe.flow.dataset import cluster

            with connected(options, progress, reason):
                cluster.encode_shards(
                    todo, tokenizer, config, folder, options.workers, done, progress
                )
        else:
            from raybpe.flow.dataset import local

            threads = options.workers or cores()
            local.encode_shards(todo, tokenizer, config, folder, threads, done)
    encoded = state.finish()
    nulls = sum(shard.nulls for shard in encoded.shards)
    members = sum(shard.members_not_read for shard in encoded.shards)
    for remark in passed_over(nulls, members):
        progress.note(remark)
    return encoded


def encode_config(
    tokenizer: Tokenizer, format: str, dtype: str, eot_token: str | None
) -> EncodeConfig:
    """Check and settle what decides the shards."""
    if format not in ("npy", "bin", "parquet"):
        raise UsageError(f"--format {format!r} is not one of npy, bin, parquet")
    if dtype not in ("auto", "uint16", "uint32"):
        raise UsageError(f"--dtype {dtype!r} is not one of auto, uint16, uint32")
    highest = max(tokenizer.vocab)
    if dtype == "auto":
        dtype = "uint16" if highest < 2**16 else "uint32"
    elif dtype == "uint16" and highest >= 2**16:
        raise UsageError(f"id {highest:,} does not fit uint16; use --dtype uint32 or auto")
    if eot_token is not None and eot_token not in tokenizer.special_tokens:
        known = ", ".join(tokenizer.special_tokens) or "none"
        raise UsageError(
            f"--eot-token {eot_token!r} is no special token of the tokenizer (it has {known})"
        )
    eot_id = None if eot_token is None else tokenizer.special_tokens[eot_token]
    return EncodeConfig(format, dtype, eot_token, eot_id)  # type: ignore[arg-type]


def in_order(plan: Plan) -> Plan:
    """The plan with its chunks in the order of their text; plans put most work first."""
    chunks = sorted(plan.chunks, key=lambda chunk: (chunk.parts[0].uri, chunk.parts[0].start))
    return replace(plan, chunks=tuple(chunks))


def _identity(
    tokenizer: Tokenizer, config: EncodeConfig, plan: Plan, options: RunOptions
) -> dict[str, Any]:
    return {
        "format": INDEX_FORMAT,
        "files": config.format,
        "dtype": config.dtype,
        "eot_token": config.eot_token,
        "eot_id": config.eot_id,
        "tokenizer": tokenizer.fingerprint(),
        "vocab_size": tokenizer.vocab_size,
        "pattern": tokenizer.pattern.regex,
        "chunk_bytes": options.chunk_bytes,
        "documents": options.documents,
        "field": options.field,
        "inputs": [
            {"uri": source.uri, "size": source.size, "version": source.version}
            for source in plan.sources
        ],
    }


class _State:
    """What is done, as the output folder says.

    Attributes:
        shards: finished shards of a data set that is not finished, by index.
        finished: all shards, of one that is.
    """

    def __init__(self, folder: str, identity: dict[str, Any]) -> None:
        self.folder = folder
        self.identity = identity
        self.shards: dict[int, Shard] = {}
        self.finished: tuple[Shard, ...] | None = None

    @classmethod
    def open(cls, folder: str, identity: dict[str, Any], resume: bool, reads_stdin: bool) -> _State:
        state = cls(folder, identity)
        unfinished = storage.join(folder, UNFINISHED)
        run = storage.join(unfinished, "run.json")
        index_file = storage.join(folder, INDEX)
        index = load(index_file)
        listed = [] if index is None else shards_of(index, index_file)
        earlier = load(run) if resume else None
        there = [name for name in storage.names(folder) if is_shard_name(name)]
        if resume and there and earlier is None and index is None:
            raise UsageError(
                f"{shown(folder)} holds {there[0]}, and no record of a data set that it is part "
                "of; --no-resume deletes the shards that are there, or give another --output"
            )
        if resume and not reads_stdin:
            if earlier is not None:
                state._refuse_differences(earlier)
                storage.check_writable(folder)
                state._take_up(unfinished)
                return state
            if index is not None:
                state._refuse_differences(index)
                state.finished = tuple(listed)
                return state
        # The records go first: killed on the way, this leaves shards that no run takes up. All
        # shards go, since what an unfinished run left is in no index and would stay among new ones.
        for name in (UNFINISHED, INDEX, *there):
            storage.delete(storage.join(folder, name))
        storage.check_writable(folder)
        storage.write(run, dump(identity))
        return state

    def _refuse_differences(self, record: dict[str, Any]) -> None:
        settings = {name: record[name] for name in self.identity if name in record}
        refuse_differences(
            _with_named_inputs(settings),
            _with_named_inputs(self.identity),
            f"{shown(self.folder)} holds a data set",
            "replace it",
        )

    def _take_up(self, unfinished: str) -> None:
        for name in storage.names(unfinished):
            if match := _FINISHED_SHARD.fullmatch(name):
                path = storage.join(unfinished, name)
                self.shards[int(match[1])] = shard_of(load(path), path)

    def finish_shard(self, index: int, shard: Shard) -> None:
        name = f"shard-{index:05d}.json"
        storage.write(storage.join(self.folder, UNFINISHED, name), dump(asdict(shard)))
        self.shards[index] = shard

    def finish(self) -> Encoded:
        shards = tuple(self.shards[index] for index in sorted(self.shards))
        done = Encoded(self.folder, shards)
        totals = {"tokens": done.tokens, "text_bytes": done.text_bytes}
        listing = {"shards": [asdict(shard) for shard in shards]}
        storage.write(storage.join(self.folder, INDEX), dump(self.identity | totals | listing))
        storage.delete_leftovers(self.folder, "shard-")
        storage.delete(storage.join(self.folder, UNFINISHED))
        return done


def _with_named_inputs(record: dict[str, Any]) -> dict[str, Any]:
    """The record with its inputs by URI; as they are where they are no list of inputs."""
    try:
        inputs = {
            one["uri"]: {name: one[name] for name in ("size", "version")}
            for one in record["inputs"]
        }
    except (KeyError, TypeError):
        return record
    return record | {"inputs": inputs}
