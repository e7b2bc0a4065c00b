"""What a run checks and says about its text: covered once, matched at all, unusual, exhausted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from raybpe.config import CountConfig, RunOptions, TrainConfig
from raybpe.errors import (
    ChangedInputError,
    ExhaustedError,
    InputError,
    PatternError,
    RaybpeError,
    UsageError,
)
from raybpe.filesystems import is_local, local_path, shown
from raybpe.flow.steps import Merged, Tally, pretokenizer_of

if TYPE_CHECKING:
    from raybpe.flow.executor import Counted
    from raybpe.flow.progress import Progress
    from raybpe.flow.run_directory import RunDirectory
    from raybpe.inputs import Chunk, Plan

LONG_PRETOKEN_BYTES = 10_000  # no word of any language
MANY_PRETOKEN_BYTES = 50 * 10**6
MANY_PRETOKENS_SHARE = 0.3  # of the text; multilingual text has 0.1
SAVED_SHARE = 0.2  # of the text: counts of 200 MB of English are 14 MB, and the sum is saved anew
LEAST_DISK_BYTES = 20 * 10**6  # and the files of a tokenizer
NEVER_MATCHED_BYTES = 64 * 10**6  # text without a single pretoken after which a run gives up


def check_output_is_apart(inputs: Sequence[str], options: RunOptions) -> None:
    """Refuse an output within an input folder: the next run would read what this one wrote.

    Raises:
        UsageError: it is there.
    """
    if options.output is None:
        return
    output = _place(options.output)
    for name in inputs:
        folder = _place(os.path.expanduser(name) if is_local(name) else name)
        if is_local(name) and not os.path.isdir(folder):
            continue
        if _is_within(output, folder):
            raise UsageError(
                f"the output {shown(options.output)} lies within the input folder {shown(name)}, "
                "so the next run would read what this one writes; name another with --output"
            )


def check_output_is_no_source(plan: Plan, options: RunOptions) -> None:
    """Refuse to read, as text, what an earlier run wrote to the output; a glob may match it.

    Raises:
        UsageError: a planned file is the output, or lies in it and has the name of what runs write.
    """
    if options.output is None:
        return
    output = _place(options.output)
    folders: dict[str, str] = {}  # resolved once each, since there may be a million files
    for uri in dict.fromkeys(part.uri for chunk in plan.chunks for part in chunk.parts):
        place = _place_of_file(uri, folders)
        if place == output or (
            os.path.dirname(place) == output and _is_written(os.path.basename(place))
        ):
            raise UsageError(
                f"the input {shown(uri)} is what a run writes to the output "
                f"{shown(options.output)}, so it would be read as text and then replaced; name "
                "inputs that leave it out, or another --output"
            )


def _place(name: str) -> str:
    """A path with links resolved, or a URI without options, to compare."""
    return os.path.realpath(local_path(name)) if is_local(name) else shown(name).rstrip("/")


def _place_of_file(uri: str, folders: dict[str, str]) -> str:
    if not is_local(uri):
        return _place(uri)
    folder, name = os.path.split(local_path(uri))
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    path = os.path.join(folders[folder], name)
    return os.path.realpath(path) if os.path.islink(path) else path


def _is_within(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip("/") + "/")


def _is_written(name: str) -> bool:
    """Whether a tokenizer or an encoded data set has a file of this name."""
    from raybpe.flow.dataset.index import INDEX, is_shard_name
    from raybpe.formats.write import FILES

    return name in FILES or name == INDEX or is_shard_name(name)


def tell_of_slow_pattern(config: CountConfig, progress: Progress) -> None:
    """Say so before counting where a pattern has no kernel."""
    reason = pretokenizer_of(config).reason
    if reason:
        progress.note(
            f"the pattern cannot be compiled ({reason}), so the regex package matches it, with the "
            "same answer but slowly, and text is cut into chunks at special tokens only"
        )


def tell_of_little_disk(directory: RunDirectory, progress: Progress) -> None:
    """Say before the run that the disk may not hold the counts that it saves on its way."""
    if directory.root is None or not is_local(directory.root):
        return
    free = shutil.disk_usage(local_path(directory.root)).free
    need = int(SAVED_SHARE * directory.plan.total_bytes) + LEAST_DISK_BYTES
    if free < need:
        progress.note(
            f"only {free / 1e6:,.0f} MB are free at {directory.root}; the counts that are saved on "
            f"the way may take {need / 1e6:,.0f} MB: free some, or give another --output. Should "
            "the disk fill up, the same command goes on once there is room"
        )


def check_pattern_matches(tally: Tally, config: CountConfig, *, at_end: bool) -> None:
    """Refuse text in which the pattern finds nothing.

    Raises:
        InputError: there was no text at all.
        PatternError: there was text, but not one pretoken.
    """
    if tally.pretokens or tally.long_pretokens:
        return
    if at_end and tally.text_bytes == 0:
        raise InputError(
            "the input holds no text, so there is nothing to learn from; check the paths, and "
            "--field and --documents if the files are JSON lines or tables"
        )
    if at_end or tally.text_bytes >= NEVER_MATCHED_BYTES:
        raise PatternError(
            f"the pattern {config.pattern!r} never matched in {tally.text_bytes:,} bytes of text "
            "(special tokens do not count), so there is nothing to learn from; check that "
            "--pattern is a name from `raybpe patterns` or a regex that was not escaped by the "
            "shell, and that the text is more than special tokens"
        )


def check_coverage(plan: Plan, tally: Tally) -> None:
    """Refuse to go on unless every chunk, and every byte of plain text, was counted once.

    Raises:
        RaybpeError: chunks are missing or were counted twice.
        ChangedInputError: text files gave another number of bytes than they had when planned.
    """
    if tally.chunks != len(plan.chunks):
        raise RaybpeError(
            f"{tally.chunks:,} chunks were counted where the plan has {len(plan.chunks):,}; the "
            "counts would not be exact, so the run stops. Run again with --no-resume, and please "
            "report this"
        )
    plain = all(
        source.format == "text" and source.compression is None and source.size >= 0
        for source in plan.sources
    )
    if plain and tally.text_bytes != plan.total_bytes:
        raise ChangedInputError(
            f"the inputs held {plan.total_bytes:,} bytes when the run was planned, but "
            f"{tally.text_bytes:,} were read; run again when nothing writes to them"
        )


def describe(chunk: Chunk) -> str:
    """A chunk's inputs, for messages."""
    first = chunk.parts[0]
    span = f" from {first.start:,} to {first.end:,}" if first.end >= 0 else ""
    more = f" and {len(chunk.parts) - 1:,} more" if len(chunk.parts) > 1 else ""
    return f"{chunk.name} ({shown(first.uri)}{span}{more})"


def passed_over(nulls: int, members_not_read: int) -> Iterator[str]:
    """Sentences about what inputs hold that is not read as text."""
    if nulls:
        yield f"{nulls:,} records have no text and were passed over"
    if members_not_read:
        yield (
            f"{members_not_read:,} members of tar files are hidden, binary or no files, and were "
            "not read"
        )


def remarks(counted: Counted, merged: Merged, config: TrainConfig) -> Iterator[str]:
    """Sentences on what a user should know about the text; usually none."""
    tally, counting = counted.tally, config.counting
    if counted.unicode is not None:
        from raybpe.counts.unicode_version import unicode_version

        here = unicode_version()
        if counted.unicode != here:
            yield (
                f"the counts were made with Unicode {counted.unicode}, but this machine splits "
                f"text with Unicode {here}: characters new in one of them may be split otherwise"
            )
    if tally.byte_order_marks:
        yield (
            f"{tally.byte_order_marks:,} texts begin with a byte order mark, which is kept as text"
        )
    if tally.invalid_bytes:
        yield (
            f"{tally.invalid_bytes:,} bytes were not UTF-8 and dealt with by "
            f"--invalid-utf8 {counting.invalid_utf8}"
        )
    yield from passed_over(tally.nulls, tally.members_not_read)
    if tally.long_pretokens:
        yield (
            f"{tally.long_pretokens:,} occurrences of pretokens longer than "
            f"{counting.max_pretoken_length:,} bytes were left out"
        )
    if merged.rare[0]:
        yield (
            f"{merged.rare[0]:,} pretokens seen fewer than {config.min_pretoken_count:,} times "
            f"({merged.rare[1]:,} occurrences) were left out"
        )
    if merged.longest >= LONG_PRETOKEN_BYTES:
        yield (
            f"the longest pretoken has {merged.longest:,} bytes, as from text without spaces or "
            "encoded data; --max-pretoken-length leaves such out"
        )
    share = merged.pretoken_bytes / max(tally.text_bytes, 1)
    if merged.pretoken_bytes >= MANY_PRETOKEN_BYTES and share > MANY_PRETOKENS_SHARE:
        yield (
            f"the {merged.pretokens:,} unique pretokens make up {share:.0%} of the text, so memory "
            "grows with it; a --pattern that splits more, --max-pretoken-length or "
            "--min-pretoken-count bounds it"
        )


def check_exhausted(merges: int, config: TrainConfig) -> str | None:
    """What to say when pairs ran out before the vocabulary was full, or None.

    Raises:
        ExhaustedError: they ran out and `strict` is set.
    """
    if merges >= config.max_merges:
        return None
    reached = config.vocab_size - config.max_merges + merges
    limits = []
    if config.min_frequency > 1:
        limits.append(f"seen at least {config.min_frequency} times")
    if config.max_token_length is not None:
        limits.append(f"making at most {config.max_token_length} bytes")
    text = (
        f"no pair {' and '.join(limits) + ' ' if limits else ''}is left to merge: the vocabulary "
        f"ends at {reached:,} of {config.vocab_size:,} ids"
    )
    if config.strict:
        raise ExhaustedError(
            f"{text}, and --strict was given; train on more text or ask for a smaller --vocab-size"
        )
    return text
