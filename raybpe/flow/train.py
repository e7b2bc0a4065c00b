"""The story of a training, top to bottom.

    plan ──► count ──► reduce ──► merge ──► export + verify

`train` plans the inputs, lets an executor count them and add the counts up, lets it run the merge
loop once over the sum, and writes what comes out. The executors, `local` (threads in this
process) and `ray`, run the same steps (`steps`) and give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from raybpe.config import RunOptions, TrainConfig
from raybpe.flow import checks, steps
from raybpe.flow.count import DEFAULTS, count_all
from raybpe.flow.executor import Counted, Executor, executor_for
from raybpe.flow.export import check_output, export
from raybpe.flow.manifest import Manifest
from raybpe.flow.progress import progress_for
from raybpe.flow.run_directory import RunDirectory
from raybpe.flow.warm import compile_ahead

if TYPE_CHECKING:
    from raybpe.counts.counts import Counts
    from raybpe.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class TrainResult:
    """What a training gives.

    Attributes:
        tokenizer: ready to use.
        manifest: what `raybpe.json` says: configuration, inputs, totals, timings, versions.
    """

    tokenizer: Tokenizer
    manifest: dict[str, Any]


def train(
    inputs: Sequence[str], config: TrainConfig, options: RunOptions = DEFAULTS
) -> TrainResult:
    """Learn a tokenizer from files, folders, globs or URIs.

    Raises:
        InputError: input is missing, empty, changed meanwhile, or not UTF-8.
        UsageError: `output` holds an unfinished run with other settings or lies within an input
            folder, or the pattern never matches.
        ExhaustedError: pairs ran out and `strict` is set.
        ClusterError: Ray is unreachable or too small.
    """
    checks.check_output_is_apart(inputs, options)
    with executor_for(options, progress_for(options.progress)) as executor:
        directory = RunDirectory.open(inputs, config, config.counting, options, executor)
        with directory.used(executor.progress):
            check_output(config, options, executor.progress)
            compile_ahead(config, options.output is not None and options.verify)
            manifest = Manifest(config, executor)
            counted = count_all(directory, config.counting, executor, manifest)
            return _learn(counted, config, options, executor, manifest)


def train_from_iterator(
    texts: Iterable[str | bytes], config: TrainConfig, options: RunOptions = DEFAULTS
) -> TrainResult:
    """Learn a tokenizer from texts in memory, each a document; they are counted in this process."""
    from raybpe.flow.local import count_texts

    with executor_for(options, progress_for(options.progress)) as executor:
        manifest = Manifest(config, executor)
        check_output(config, options, executor.progress)
        with manifest.timed("count"):
            counted = count_texts(texts, config.counting, options.field, executor.progress)
        manifest.counted(counted)
        return _learn(counted, config, options, executor, manifest)


def train_from_counts(
    counts: Counts, config: TrainConfig, options: RunOptions = DEFAULTS
) -> TrainResult:
    """Learn a tokenizer from counts made earlier."""
    counted = Counted.of_counts(counts)
    with executor_for(options, progress_for(options.progress)) as executor:
        check_output(config, options, executor.progress)
        manifest = Manifest(config, executor)
        manifest.counted(counted)
        return _learn(counted, config, options, executor, manifest)


def _learn(
    counted: Counted,
    config: TrainConfig,
    options: RunOptions,
    executor: Executor,
    manifest: Manifest,
) -> TrainResult:
    """Merge once over the summed counts; write and verify the tokenizer."""
    with manifest.timed("merge"):
        merged = executor.merge(counted, config)
    for remark in checks.remarks(counted, merged, config):
        executor.progress.note(remark)
    shortfall = checks.check_exhausted(len(merged.left), config)
    if shortfall:
        executor.progress.note(shortfall)
    tokenizer = steps.build_tokenizer(merged, config)
    manifest.merged(merged)
    if options.output is not None:
        export(tokenizer, merged, counted.tally.samples, options, manifest)
    return TrainResult(tokenizer, manifest.as_dict())
