"""Counting: the first half of a training, and a run of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from raybpe import storage
from raybpe.config import CountConfig, RunOptions
from raybpe.flow import checks
from raybpe.flow.executor import Counted, Executor, executor_for
from raybpe.flow.manifest import Manifest
from raybpe.flow.progress import progress_for
from raybpe.flow.run_directory import RunDirectory
from raybpe.inputs import check_unchanged

if TYPE_CHECKING:
    from raybpe.counts.counts import Counts

DEFAULTS = RunOptions()


def count(inputs: Sequence[str], config: CountConfig, options: RunOptions = DEFAULTS) -> Counts:
    """The counting half alone; with an `output`, the counts are saved as that file.

    Raises:
        As `train`.
    """
    checks.check_output_is_apart(inputs, options)
    with executor_for(options, progress_for(options.progress)) as executor:
        directory = RunDirectory.open(inputs, None, config, options, executor)
        with directory.used(executor.progress):
            _check_output(options)
            counted = count_all(directory, config, executor, Manifest(None, executor))
            counts = counted.as_counts(config)
            if options.output is not None:
                counts.save(options.output)
            return counts


def count_from_iterator(
    texts: Iterable[str | bytes], config: CountConfig, options: RunOptions = DEFAULTS
) -> Counts:
    """The counting half of `train_from_iterator`; with an `output`, saved as that file.

    Raises:
        As `train_from_iterator`.
    """
    from raybpe.flow.local import count_texts

    _check_output(options)
    progress = progress_for(options.progress)
    counts = count_texts(texts, config, options.field, progress).as_counts(config)
    if options.output is not None:
        counts.save(options.output)
    return counts


def _check_output(options: RunOptions) -> None:
    """Find out before the work whether its result can be written: counts live in memory only."""
    if options.output is not None:
        storage.check_replaceable(options.output)


def count_all(
    directory: RunDirectory, config: CountConfig, executor: Executor, manifest: Manifest
) -> Counted:
    """Count what an earlier run has not, add everything up, and check that nothing is missing."""
    checks.tell_of_slow_pattern(config, executor.progress)
    checks.tell_of_little_disk(directory, executor.progress)
    with manifest.timed("count"):
        counted = executor.count(directory, config)
    check_unchanged(directory.plan)
    checks.check_pattern_matches(counted.tally, config, at_end=True)
    checks.check_coverage(directory.plan, counted.tally)
    manifest.counted(counted)
    return counted
