"""The Python functions: train, count, each of them from an iterator, train_from_counts, train_bpe.

Each turns its keywords into the configuration dataclasses (`settings`) and calls the flow. All of
them give the same bytes as the command line would, whatever the executor.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from raybpe.config import (
    DEFAULT_SPECIAL_TOKENS,
    ByteOrder,
    CountConfig,
    InvalidUtf8,
    SpecialsAt,
    TieBreak,
)
from raybpe.errors import UsageError
from raybpe.given import inputs as checked_inputs
from raybpe.given import several
from raybpe.keywords import TrainKeywords, refuse_others
from raybpe.settings import count_config, run_options, train_config

Path = str | os.PathLike[str]
Inputs = Path | Sequence[Path]

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from raybpe.counts.counts import Counts
    from raybpe.tokenizer.tokenizer import Tokenizer

    AnyCounts = Counts | Path | Mapping[bytes, int] | Mapping[str, int]

_COUNT_KEYS = ("pattern", "special_tokens", "invalid_utf8", "max_pretoken_length")
_TRAIN_KEYS = (
    "compat",
    "tie_break",
    "byte_order",
    "special_tokens_at",
    "min_frequency",
    "max_token_length",
    "min_pretoken_count",
    "strict",
)


def train(
    inputs: Inputs,
    vocab_size: int,
    *,
    pattern: str = "gpt2",
    special_tokens: Sequence[str] | None = DEFAULT_SPECIAL_TOKENS,
    invalid_utf8: InvalidUtf8 = "error",
    max_pretoken_length: int | None = None,
    compat: str = "hf",
    tie_break: TieBreak | None = None,
    byte_order: ByteOrder | None = None,
    special_tokens_at: SpecialsAt | None = None,
    min_frequency: int | None = None,
    max_token_length: int | None = None,
    min_pretoken_count: int = 1,
    strict: bool = False,
    executor: str = "auto",
    address: str | None = None,
    workers: int | None = None,
    chunk_size: str | int = "64MB",
    fan_in: int = 8,
    output: Path | None = None,
    resume: bool = True,
    verify: bool = True,
    progress: str = "auto",
    documents: str = "text",
    field: str = "text",
) -> Tokenizer:
    """Train a byte-level BPE tokenizer on files, folders, globs or URIs.

    >>> tok = raybpe.train(["data/*.txt"], vocab_size=32_000, output="tokenizer/")  # doctest: +SKIP

    Args:
        inputs: one path or several: files, folders, globs, URIs.
        vocab_size: ids in all: 256 bytes, the special tokens, and the merges.
        pattern: name of a pretokenization pattern (`raybpe patterns` lists them), or a regex.
        special_tokens: texts with an id of their own, cut out before pretokenizing, in the order
            of their ids (so a list, not a set); None for none.
        invalid_utf8: `error`, `replace`, `skip` or `keep` bytes that are not UTF-8.
        max_pretoken_length: leave out pretokens longer than this many bytes, and report them.
        compat: whose rules to follow: `hf`, `cs336`, `rustbpe`, `bpeasy`. It presets the next
            four, each of which wins over it when given.
        tie_break: among pairs of equal count, `lowest-ids` or `greatest-bytes`.
        byte_order: how the 256 base tokens are numbered, `gpt2` or `value`.
        special_tokens_at: `start` or `end` of the ids.
        min_frequency: a pair seen fewer times is never merged.
        max_token_length: longest token in bytes.
        min_pretoken_count: leave out pretokens counted fewer times than this, and report them.
        strict: raise `ExhaustedError` when pairs run out, rather than stop early.
        executor: `local` threads, `ray`, or `auto`: Ray where a cluster is given or running.
        address: Ray cluster to attach to.
        workers: threads or concurrent counting tasks; None for all cores.
        chunk_size: unit of counting and of resuming, such as `"64MB"`, or bytes.
        fan_in: tables that one reduction task adds up.
        output: folder or URI for the tokenizer's files; None keeps the result in memory.
        resume: continue an unfinished run of the same settings in `output`.
        verify: load what was written with the libraries that will read it, and compare ids.
        progress: `auto`, `json` or `none`; goes to standard error.
        documents: `text` or `lines`: how text files are cut into documents.
        field: name of the text in JSON lines and tables.

    Returns:
        The tokenizer, with `vocab`, `merges`, `encode`, `decode`, `save`.

    Raises:
        UsageError: a setting is wrong.
        InputError: input is missing, empty, or not UTF-8 under the policy `error`.
        RaybpeError: any other failure, see `raybpe.errors`.
    """
    from raybpe import flow

    given = dict(locals())
    del given["flow"], given["inputs"], given["vocab_size"]
    counting, training, options = _split(given)
    config = train_config(vocab_size, count_config(**counting), **training)
    return flow.train(checked_inputs(inputs), config, run_options(**options)).tokenizer


def train_from_iterator(
    texts: Iterable[str | bytes], vocab_size: int, **keywords: Unpack[TrainKeywords]
) -> Tokenizer:
    """Train on strings or bytes from an iterator; each item is a document.

    An Arrow, pandas, Polars, Hugging Face or Ray data set gives its column `field`. Nothing but
    the counts is held in memory; the text is counted in this process. Takes all keywords of
    `train`, though `documents`, `chunk_size`, `fan_in` and `resume` decide nothing here.

    Raises:
        ArgumentTypeError: a keyword is given that there is not.
        RaybpeError: as `train`.
    """
    from raybpe import flow

    refuse_others("train_from_iterator", keywords)
    _refuse_one_text(texts)
    counting, training, options = _split(keywords)
    config = train_config(vocab_size, count_config(**counting), **training)
    return flow.train_from_iterator(texts, config, run_options(**options)).tokenizer


def train_from_counts(
    counts: AnyCounts | Sequence[AnyCounts],
    vocab_size: int,
    **keywords: Unpack[TrainKeywords],
) -> Tokenizer:
    """Train from counts: `Counts`, the path of a counts file, a mapping, or several of them.

    Pattern and special tokens come with counts that were made by `count`; a mapping
    `{bytes or str: int}` takes them from the keywords. Takes all keywords of `train`, though
    those about reading text, `documents`, `field`, `chunk_size`, `fan_in` and `resume`, decide
    nothing here.

    Raises:
        ArgumentTypeError: a keyword is given that there is not.
        UsageError: a keyword contradicts what the counts were made with.
        CountsError: a file is corrupt, or several were made with different settings.
    """
    from raybpe import flow

    refuse_others("train_from_counts", keywords)
    counting, training, options = _split(keywords)
    total = gather_counts(counts)
    config = train_config(vocab_size, counting_of(total, counting), **training)
    return flow.train_from_counts(total, config, run_options(**options)).tokenizer


def count(
    inputs: Inputs,
    *,
    pattern: str = "gpt2",
    special_tokens: Sequence[str] | None = DEFAULT_SPECIAL_TOKENS,
    invalid_utf8: InvalidUtf8 = "error",
    max_pretoken_length: int | None = None,
    executor: str = "auto",
    address: str | None = None,
    workers: int | None = None,
    chunk_size: str | int = "64MB",
    fan_in: int = 8,
    output: Path | None = None,
    resume: bool = True,
    progress: str = "auto",
    documents: str = "text",
    field: str = "text",
) -> Counts:
    """Count the pretokens of files, folders, globs or URIs; keywords as in `train`.

    With an `output`, a file or URI, the counts are saved there, and a run that was killed goes on
    where it was.

    Returns:
        Counts, with an Arrow table inside; `save` them, add them, train from them.

    Raises:
        UsageError: a setting is wrong.
        InputError: input is missing, empty, or not UTF-8 under the policy `error`.
        RaybpeError: any other failure, see `raybpe.errors`.
    """
    from raybpe import flow

    given = dict(locals())
    del given["flow"], given["inputs"]
    counting, _, options = _split(given)
    return flow.count(checked_inputs(inputs), count_config(**counting), run_options(**options))


def count_from_iterator(
    texts: Iterable[str | bytes],
    *,
    pattern: str = "gpt2",
    special_tokens: Sequence[str] | None = DEFAULT_SPECIAL_TOKENS,
    invalid_utf8: InvalidUtf8 = "error",
    max_pretoken_length: int | None = None,
    output: Path | None = None,
    progress: str = "auto",
    field: str = "text",
) -> Counts:
    """Count the pretokens of texts from an iterator, as `train_from_iterator` does.

    With an `output`, a file or URI, the counts are saved there.
    """
    from raybpe import flow

    _refuse_one_text(texts)
    given = dict(locals())
    del given["flow"], given["texts"]
    counting, _, options = _split(given)
    return flow.count_from_iterator(texts, count_config(**counting), run_options(**options))


def train_bpe(
    input_path: Path, vocab_size: int, special_tokens: Sequence[str]
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Train by the rules of Stanford's CS336: ties go to the greatest pair of byte strings.

    Returns:
        vocab, id to bytes (special tokens first), and merges in the order they were made.
    """
    tokenizer = train(
        input_path,
        vocab_size,
        special_tokens=special_tokens,
        compat="cs336",
        progress="none",
    )
    return tokenizer.vocab, tokenizer.merges


def gather_counts(counts: AnyCounts | Sequence[AnyCounts]) -> Counts:
    """One `Counts` from any of the forms that `train_from_counts` takes.

    Raises:
        UsageError: there are none, or a mapping is no counts.
        CountsError: a file is corrupt, or several were made with different settings.
        InputError: a file is missing or unreadable.
    """
    from raybpe.counts.counts import Counts

    if isinstance(counts, Counts):
        return counts
    if isinstance(counts, Mapping):
        return Counts.from_mapping(counts)
    if isinstance(counts, (str, os.PathLike)):
        return Counts.load(counts)
    wanted = "Counts, a path, a mapping, or a list of these"
    parts = [gather_counts(one) for one in several("counts", counts, wanted)]
    if not parts:
        raise UsageError("there are no counts to train from")
    return parts[0] if len(parts) == 1 else Counts.sum(parts)


def counting_of(counts: Counts, given: Mapping[str, Any]) -> CountConfig:
    """The settings that the counts were made with.

    Raises:
        UsageError: a setting that is given does not agree with them.
    """
    if counts.config is None:
        return count_config(**given)
    if given:
        known = {
            "pattern": counts.config.pattern,
            "special_tokens": counts.config.special_tokens,
            "invalid_utf8": counts.config.invalid_utf8,
            "max_pretoken_length": counts.config.max_pretoken_length,
        }
        asked = count_config(**{**known, **given})
        for name, value in known.items():
            if getattr(asked, name) != value:
                raise UsageError(
                    f"the counts were made with {name.replace('_', ' ')} {value!r}, not "
                    f"{getattr(asked, name)!r}; count the text again to change it"
                )
    return counts.config


def _refuse_one_text(texts: object) -> None:
    if isinstance(texts, (str, bytes)):
        raise UsageError("texts is one text; give an iterable of texts, for example [text]")


def _split(
    given: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Keywords of counting, of merging, and of the run."""
    counting = {k: v for k, v in given.items() if k in _COUNT_KEYS}
    training = {k: v for k, v in given.items() if k in _TRAIN_KEYS}
    options = {k: v for k, v in given.items() if k not in _COUNT_KEYS and k not in _TRAIN_KEYS}
    return counting, training, options
