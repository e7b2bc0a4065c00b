"""`raybpe train`: text, or counts, to a tokenizer."""

from __future__ import annotations

from typing import Annotated

import typer

from raybpe.cli import options
from raybpe.errors import UsageError


def train(
    context: typer.Context,
    vocab_size: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Ids in all: 256 bytes, special tokens and merges.",
            show_default=False,
        ),
    ],
    inputs: options.Inputs = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder or URI to write to.")
    ] = "tokenizer",
    from_counts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Train from a file of `raybpe count` instead of text; repeatable, and added up.",
            show_default=False,
        ),
    ] = None,
    pattern: options.Pattern = None,
    special_token: options.SpecialTokens = None,
    no_special_tokens: options.NoSpecialTokens = False,
    invalid_utf8: options.InvalidUtf8 = None,
    documents: options.Documents = "text",
    field: options.Field = "text",
    max_pretoken_length: options.MaxPretokenLength = None,
    compat: Annotated[
        str,
        typer.Option(
            metavar="hf|cs336|rustbpe|bpeasy",
            help="Whose rules to follow: a preset of the next four, each of which wins over it.",
            rich_help_panel="Rules",
        ),
    ] = "hf",
    tie_break: Annotated[
        str | None,
        typer.Option(
            metavar="lowest-ids|greatest-bytes",
            help="Which of several pairs of equal count is merged first.",
            show_default="by --compat",
            rich_help_panel="Rules",
        ),
    ] = None,
    byte_order: Annotated[
        str | None,
        typer.Option(
            metavar="gpt2|value",
            help="How the 256 base tokens are numbered: GPT-2's printable order, or by value.",
            show_default="by --compat",
            rich_help_panel="Rules",
        ),
    ] = None,
    special_tokens_at: Annotated[
        str | None,
        typer.Option(
            metavar="start|end",
            help="Whether special tokens take the first ids or the last.",
            show_default="by --compat",
            rich_help_panel="Rules",
        ),
    ] = None,
    min_frequency: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Never merge a pair seen fewer times, at the moment of merging.",
            show_default="1",
            rich_help_panel="Rules",
        ),
    ] = None,
    max_token_length: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="Never make a longer token.",
            show_default="no limit",
            rich_help_panel="Rules",
        ),
    ] = None,
    min_pretoken_count: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Leave out pretokens counted fewer times, and report them.",
            rich_help_panel="Rules",
        ),
    ] = 1,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Running out of pairs is an error, not a smaller vocabulary.",
            rich_help_panel="Rules",
        ),
    ] = False,
    executor: options.Executor = "auto",
    address: options.Address = None,
    workers: options.Workers = None,
    chunk_size: options.ChunkSize = "64MB",
    fan_in: options.FanIn = 8,
    resume: options.Resume = True,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify",
            help="Load what was written with tokenizers and tiktoken, if installed, and compare.",
            rich_help_panel="Run",
        ),
    ] = True,
    quiet: options.Quiet = False,
    progress_json: options.ProgressJson = False,
) -> None:
    """Train a tokenizer on text, and write it in the formats that people load.

    The same text and rules give the same bytes, whatever the number of workers.
    """
    if bool(inputs) == bool(from_counts):
        raise UsageError(
            "give either INPUT or --from-counts FILE" if inputs else "there is no INPUT to train on"
        )
    if from_counts:
        options.refuse_with_counts(context)
    from raybpe import flow, settings
    from raybpe.api import counting_of, gather_counts
    from raybpe.cli.show import training_summary
    from raybpe.given import inputs as checked_inputs

    given = options.counting(
        pattern, special_token, no_special_tokens, invalid_utf8, max_pretoken_length
    )
    run = settings.run_options(
        executor=executor,
        address=address,
        workers=workers,
        chunk_size=chunk_size,
        fan_in=fan_in,
        output=output,
        resume=resume,
        verify=verify,
        progress=options.progress(quiet, progress_json),
        documents=documents,
        field=field,
    )
    counts = gather_counts(from_counts) if from_counts else None
    counting = settings.count_config(**given) if counts is None else counting_of(counts, given)
    config = settings.train_config(
        vocab_size,
        counting,
        compat=compat,
        tie_break=tie_break,
        byte_order=byte_order,
        special_tokens_at=special_tokens_at,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
        min_pretoken_count=min_pretoken_count,
        strict=strict,
    )
    if counts is not None:
        result = flow.train_from_counts(counts, config, run)
    else:
        result = flow.train(checked_inputs(inputs), config, run)
    typer.echo(training_summary(result, output))
