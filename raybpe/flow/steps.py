"""The steps of a training as pure functions: count a chunk, add up tables, merge, build.

Both executors call these and nothing else that changes a result, so both give the same bytes.
Nothing here knows about threads, Ray, or where things are stored.

Counts travel inside a process as `Columns` and between processes as one Arrow table per hash
partition (``pretoken: large_binary``, ``count: int64``; row order means nothing). Counting one
chunk takes the reader's buffers plus the table of the chunk's unique pretokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from raybpe.block import Block
from raybpe.config import CountConfig, TrainConfig
from raybpe.counts.columns import Columns, concatenate, exact_sum, take
from raybpe.flow.memory import peak_memory

if TYPE_CHECKING:
    from raybpe.counts.pretoken_table import PretokenTable
    from raybpe.inputs import Chunk
    from raybpe.merges.trainer import MergeTrainer
    from raybpe.pretokenize.engines import Pretokenizer
    from raybpe.tokenizer.tokenizer import Tokenizer

SAMPLE_BYTES = 4096  # of a chunk's text, kept to compare exports on
SAMPLES = 16


@dataclass
class Tally:
    """What was seen while counting; tallies of different chunks add up.

    Attributes:
        chunks: chunks counted.
        text_bytes: bytes of the documents, special tokens included.
        pretokens: occurrences counted.
        invalid_bytes: bytes that were not UTF-8, dealt with by policy.
        nulls: rows or records without text.
        members_not_read: members of tar files that are hidden, binary, or no files.
        byte_order_marks: texts that begin with U+FEFF, which is kept as text.
        long_pretokens: occurrences left out by `max_pretoken_length`.
        seconds: time spent counting, summed over threads and tasks.
        peak_memory_bytes: most memory that a worker process had resident; 0 where not measured.
        samples: beginnings of a few chunks' texts, to compare exports on.
    """

    chunks: int = 0
    text_bytes: int = 0
    pretokens: int = 0
    invalid_bytes: int = 0
    nulls: int = 0
    members_not_read: int = 0
    byte_order_marks: int = 0
    long_pretokens: int = 0
    seconds: float = 0.0
    peak_memory_bytes: int = 0
    samples: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add what `other` saw."""
        peak = max(self.peak_memory_bytes, other.peak_memory_bytes)
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        self.peak_memory_bytes = peak
        self.samples = self.samples[:SAMPLES]

    def as_dict(self) -> dict[str, Any]:
        """Plain values; `Tally(**values)` is the way back."""
        return asdict(self)


# -- counting --------------------------------------------------------------------------------


def count_chunk(
    chunk: Chunk,
    config: CountConfig,
    table: PretokenTable,
    advance: Callable[[int], None] | None = None,
) -> Tally:
    """Count one chunk of the plan into `table`.

    Args:
        advance: called with the number of text bytes after every few MB; may raise to stop.

    Raises:
        InputError: the chunk cannot be read or, under the policy `error`, is not UTF-8.
        TransientError: reading failed in a way that may pass.
    """
    from raybpe.inputs import ReadStats, read_blocks

    stats = ReadStats()
    blocks = read_blocks(chunk, pretokenizer_of(config), stats)
    tally = count_blocks(blocks, config, table, advance)
    tally.nulls, tally.byte_order_marks = stats.nulls, stats.byte_order_marks
    tally.members_not_read = stats.members_not_read
    return tally


def count_blocks(
    blocks: Iterable[Block],
    config: CountConfig,
    table: PretokenTable,
    advance: Callable[[int], None] | None = None,
) -> Tally:
    """Count blocks of text into `table`; see `count_chunk`."""
    from raybpe.pretokenize.utf8 import clean_block

    began = perf_counter()
    cutter = pretokenizer_of(config)
    tally = Tally(chunks=1)
    before = table.total
    for block in blocks:
        size = int((block.ends - block.starts).sum())
        if not tally.samples and size:
            tally.samples.append(_sample(block))
        clean, invalid = clean_block(block, config.invalid_utf8)
        cutter.count(table, clean)
        bad = int(invalid.sum())
        if bad and config.invalid_utf8 == "keep":
            table.insert(*_single_bytes(invalid))
        tally.text_bytes += size
        tally.invalid_bytes += bad
        if advance is not None:
            advance(size)
    tally.pretokens = table.total - before
    tally.seconds = perf_counter() - began
    return tally


def pretokenizer_of(config: CountConfig) -> Pretokenizer:
    """The compiled pattern of a configuration; the same object every time in a process."""
    from raybpe.pretokenize import Pattern, pretokenizer

    return pretokenizer(Pattern(config.pattern_name, config.pattern), config.special_tokens)


def _sample(block: Block) -> str:
    start = int(block.starts[0])
    end = min(int(block.ends[-1]), start + SAMPLE_BYTES)
    # Cut characters at the end, and the gaps between documents, do no harm: every library is
    # given the same string.
    return block.data[start:end].tobytes().decode("utf-8", "ignore")


def _single_bytes(histogram: npt.NDArray[np.int64]) -> Columns:
    values = np.flatnonzero(histogram)
    offsets = np.arange(len(values) + 1, dtype=np.int64)
    return Columns(values.astype(np.uint8), offsets, histogram[values])


# -- tables ----------------------------------------------------------------------------------


def take_out(
    table: PretokenTable, config: CountConfig, partitions: int, tally: Tally
) -> list[Columns]:
    """The rows of `table` by hash partition, without pretokens that are too long.

    Occurrences left out are moved from `tally.pretokens` to `tally.long_pretokens`.
    """
    longest = config.max_pretoken_length
    parts = table.export(partitions, max_length=longest)
    if longest is not None:
        left_out = table.left_out(longest).occurrences
        tally.pretokens -= left_out
        tally.long_pretokens += left_out
    return parts


def add_counts(rows: Iterable[Columns]) -> Columns:
    """The sum of tables, in whatever order.

    Raises:
        CapacityError: a count passes 2**63 - 1.
    """
    from raybpe.counts.pretoken_table import PretokenTable

    total = PretokenTable()
    for columns in rows:
        total.insert(*columns)
    return total.export()[0]


# -- merging ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Merged:
    """What merging gives.

    Attributes:
        left, right: int32 (k,), the parts of each merge: 0..255 base tokens in the configured
            byte order, 256 + i the token of merge i.
        counts: int64 (k,), how often each pair stood in the text when it was merged.
        pretokens: unique pretokens that took part.
        pretoken_bytes: bytes of those.
        longest: bytes of the longest.
        rare: unique pretokens, and their occurrences, left out by `min_pretoken_count`.
        peak_memory_bytes: most memory that the process that merged had resident.
    """

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    pretokens: int = 0
    pretoken_bytes: int = 0
    longest: int = 0
    rare: tuple[int, int] = (0, 0)
    peak_memory_bytes: int = 0


def start_merging(parts: Sequence[Columns], config: TrainConfig) -> tuple[MergeTrainer, Merged]:
    """The merge loop, ready to advance, over summed counts.

    Returns:
        The trainer, and a result without merges that says what takes part.
    """
    from raybpe.merges.byte_order import byte_ids
    from raybpe.merges.trainer import MergeTrainer

    columns = concatenate(parts)
    rare = (0, 0)
    if config.min_pretoken_count > 1:
        keep = columns.counts >= config.min_pretoken_count
        rare = (int((~keep).sum()), exact_sum(columns.counts[~keep]))
        columns = take(columns, np.flatnonzero(keep))
    trainer = MergeTrainer(
        columns.data,
        columns.offsets,
        columns.counts,
        byte_ids=byte_ids(config.byte_order),
        max_merges=config.max_merges,
        tie_break=config.tie_break,
        min_frequency=config.min_frequency,
        max_token_length=config.max_token_length,
    )
    none = np.zeros(0, np.int32)
    lengths = np.diff(columns.offsets)
    return trainer, Merged(
        none,
        none,
        np.zeros(0, np.int64),
        pretokens=len(lengths),
        pretoken_bytes=int(lengths.sum()),
        longest=int(lengths.max(initial=0)),
        rare=rare,
    )


def advance(trainer: MergeTrainer, seconds: float) -> Iterator[int]:
    """Merge to the end in slices of `seconds`; yields the merges made so far after each."""
    while not trainer.done:
        yield trainer.advance(seconds=seconds)


def finish_merging(trainer: MergeTrainer, merged: Merged) -> Merged:
    """The result of a trainer that is done."""
    return replace(
        merged,
        left=trainer.left,
        right=trainer.right,
        counts=trainer.counts,
        peak_memory_bytes=peak_memory(),
    )


def build_tokenizer(merged: Merged, config: TrainConfig) -> Tokenizer:
    """The tokenizer of a finished merge loop."""
    from raybpe.merges.byte_order import byte_ids
    from raybpe.pretokenize import Pattern
    from raybpe.tokenizer.tokenizer import Tokenizer

    tokens = [b""] * 256
    for byte, base in enumerate(byte_ids(config.byte_order).tolist()):
        tokens[base] = bytes([byte])
    for left, right in zip(merged.left.tolist(), merged.right.tolist(), strict=True):
        tokens.append(tokens[left] + tokens[right])
    special_tokens = config.counting.special_tokens
    specials = [token.encode() for token in special_tokens]
    at_start = config.special_tokens_at == "start"
    first = 0 if at_start else len(tokens)
    made = np.arange(256, len(tokens))
    merges = np.stack([merged.left, merged.right, made], axis=1) + (len(specials) * at_start)
    return Tokenizer(
        dict(enumerate([*specials, *tokens] if at_start else [*tokens, *specials])),
        merges,
        # With their ids: a special token may have the text of an ordinary one.
        {token: first + i for i, token in enumerate(special_tokens)},
        pattern=Pattern(config.counting.pattern_name, config.counting.pattern),
    )
