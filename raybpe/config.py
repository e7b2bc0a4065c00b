"""What a run is asked to do, in two halves that never mix.

`TrainConfig` (with `CountConfig` inside) holds everything that can change the vocabulary; its
`fingerprint` names the result. `RunOptions` holds everything that only changes how the work is
done: executor, chunk size, where to write. Two runs with equal fingerprints over equal inputs
give equal bytes, whatever their run options.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from raybpe.errors import RaybpeError, UsageError

TieBreak = Literal["lowest-ids", "greatest-bytes"]
ByteOrder = Literal["gpt2", "value"]
SpecialsAt = Literal["start", "end"]
InvalidUtf8 = Literal["error", "replace", "skip", "keep"]

DEFAULT_SPECIAL_TOKENS = ("<|endoftext|>",)
DEFAULT_CHUNK_BYTES = 64 * 10**6


def check_in_order(special_tokens: object, error: type[RaybpeError] = UsageError) -> None:
    """Refuse what is no list of special tokens in an order of its own, which their ids follow.

    Raises:
        RaybpeError: it is one text, or a set: its order differs between runs of Python.
    """
    if isinstance(special_tokens, str):
        raise error(f"special tokens are a list of texts; write [{special_tokens!r}]")
    if isinstance(special_tokens, (set, frozenset)):
        raise error(
            "special tokens are given as a set, whose order differs from run to run, and their "
            "ids follow the order; give a list, for example sorted(special_tokens)"
        )


@dataclass(frozen=True)
class CountConfig:
    """What decides the counts of a given text.

    Attributes:
        pattern: the pretokenization regex, written out.
        pattern_name: its name when it is one of the named patterns.
        special_tokens: texts that are cut out before pretokenizing, in id order.
        invalid_utf8: what to do with bytes that are not UTF-8. `error` stops; `replace` puts
            U+FFFD, `skip` removes them (both as Python's decoder does); `keep` makes each such
            byte a pretoken of its own.
        max_pretoken_length: longer pretokens (bytes) are left out and reported; None keeps all.
    """

    pattern: str
    pattern_name: str | None = None
    special_tokens: tuple[str, ...] = DEFAULT_SPECIAL_TOKENS
    invalid_utf8: InvalidUtf8 = "error"
    max_pretoken_length: int | None = None

    def __post_init__(self) -> None:
        check_in_order(self.special_tokens)
        seen: set[str] = set()
        for token in self.special_tokens:
            if not token:
                raise UsageError("a special token is empty; give each --special-token some text")
            if token in seen:
                raise UsageError(f"special token {token!r} is listed twice; list it once")
            seen.add(token)
            try:
                token.encode("utf-8")
            except UnicodeEncodeError:
                raise UsageError(
                    f"special token {token!r} holds a lone surrogate and cannot be written as UTF-8"
                ) from None
        longest = self.max_pretoken_length
        if longest is not None and not 1 <= longest < 2**63:
            raise UsageError(f"--max-pretoken-length {longest} must be at least 1 and below 2**63")


@dataclass(frozen=True)
class Preset:
    """The choices in which trainers differ."""

    tie_break: TieBreak
    byte_order: ByteOrder
    special_tokens_at: SpecialsAt
    min_frequency: int = 1


PRESETS: Mapping[str, Preset] = {
    "hf": Preset("lowest-ids", "gpt2", "start"),
    "cs336": Preset("greatest-bytes", "gpt2", "start"),
    "rustbpe": Preset("lowest-ids", "value", "end"),
    "bpeasy": Preset("lowest-ids", "value", "end"),
}


@dataclass(frozen=True)
class TrainConfig:
    """Everything that can change the vocabulary.

    Attributes:
        vocab_size: ids in all: 256 bytes, the special tokens, and the merges.
        counting: what decides the counts.
        tie_break: which of several pairs of equal count is merged first: the lowest
            (left id, right id), or the greatest (left bytes, right bytes).
        byte_order: how the 256 base tokens are numbered: GPT-2's printable order, or by value.
        special_tokens_at: whether special tokens take the first ids or the last.
        min_frequency: a pair seen fewer times than this is never merged.
        max_token_length: longest token that a merge may make, in bytes; None for no limit.
        min_pretoken_count: pretokens counted fewer times are left out of merging and reported.
        strict: running out of pairs is an error rather than a smaller vocabulary.
    """

    vocab_size: int
    counting: CountConfig
    tie_break: TieBreak = "lowest-ids"
    byte_order: ByteOrder = "gpt2"
    special_tokens_at: SpecialsAt = "start"
    min_frequency: int = 1
    max_token_length: int | None = None
    min_pretoken_count: int = 1
    strict: bool = False

    def __post_init__(self) -> None:
        smallest = 256 + len(self.counting.special_tokens)
        if self.vocab_size < smallest:
            raise UsageError(
                f"vocab size {self.vocab_size} is too small: 256 bytes and "
                f"{len(self.counting.special_tokens)} special tokens need at least {smallest}"
            )
        if self.vocab_size > MAX_VOCAB_SIZE:
            raise UsageError(
                f"vocab size {self.vocab_size} is too large: at most {MAX_VOCAB_SIZE} ids"
            )
        for name in ("min_frequency", "min_pretoken_count", "max_token_length"):
            value = getattr(self, name)
            if value is not None and not 1 <= value < 2**63:
                raise UsageError(
                    f"--{name.replace('_', '-')} {value} must be at least 1 and below 2**63"
                )

    @property
    def max_merges(self) -> int:
        """Merges that fill the vocabulary."""
        return self.vocab_size - 256 - len(self.counting.special_tokens)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for manifests."""
        return asdict(self)

    def fingerprint(self) -> str:
        """32 hex digits that are equal exactly when every field is."""
        text = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


MAX_VOCAB_SIZE = 2**24  # ids beyond this have no use, and bound every per-id array


@dataclass(frozen=True)
class RunOptions:
    """How the work is done; none of it changes a byte of the result.

    Attributes:
        executor: `local` threads, `ray`, or `auto`.
        address: Ray cluster to attach to.
        workers: threads or concurrent counting tasks; None for all cores.
        chunk_bytes: nominal size of a chunk, the unit of counting, of resuming, and of shards.
        fan_in: tables that one reduction task adds up.
        output: where to write; None keeps the result in memory.
        resume: continue an earlier run of the same command in `output`.
        verify: load every export again and compare.
        save_seconds: counting work, in seconds, that a kill may cost; finished work goes to
            `output` that often, so runs shorter than this write nothing but their result.
        progress: `auto` (terminal, notebook or plain lines as fits), `json`, or `none`.
        documents: `text` takes a text file as one text that only special tokens cut, `lines`
            takes each line as a document. With `field` this says what the inputs are, so it
            is recorded with the inputs and a resumed run must give the same.
        field: name of the text in JSON lines, tables and Parquet files.
    """

    executor: Literal["auto", "local", "ray"] = "auto"
    address: str | None = None
    workers: int | None = None
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    fan_in: int = 8
    output: str | None = None
    resume: bool = True
    verify: bool = True
    save_seconds: float = 20.0
    progress: Literal["auto", "json", "none"] = "auto"
    documents: Literal["text", "lines"] = "text"
    field: str = "text"

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError("--workers must be at least 1")
        if self.chunk_bytes < 1:
            raise UsageError("--chunk-size must be at least 1 byte")
        if self.fan_in < 2:
            raise UsageError("--fan-in must be at least 2")


def apply_preset(name: str, **given: Any) -> dict[str, Any]:
    """The preset's four choices, with those that are given (not None) winning over it."""
    if name not in PRESETS:
        raise UsageError(f"no preset named {name!r}; there are {', '.join(PRESETS)}")
    preset = replace(PRESETS[name], **{k: v for k, v in given.items() if v is not None})
    return asdict(preset)
