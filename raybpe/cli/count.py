"""`raybpe count` and `raybpe counts show|add|stats`: the counting half, and its files."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from raybpe.cli import options
from raybpe.errors import UsageError

CountsFile = Annotated[str, typer.Argument(metavar="FILE", show_default=False)]
CountsFiles = Annotated[list[str], typer.Argument(metavar="FILE...", show_default=False)]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Counts file to write.")
]  # fmt: skip

counts_app = typer.Typer(
    help="Look at counts files, and add them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def count(
    inputs: options.Inputs = None,
    output: Output = "counts.arrow",
    pattern: options.Pattern = None,
    special_token: options.SpecialTokens = None,
    no_special_tokens: options.NoSpecialTokens = False,
    invalid_utf8: options.InvalidUtf8 = None,
    documents: options.Documents = "text",
    field: options.Field = "text",
    max_pretoken_length: options.MaxPretokenLength = None,
    executor: options.Executor = "auto",
    address: options.Address = None,
    workers: options.Workers = None,
    chunk_size: options.ChunkSize = "64MB",
    fan_in: options.FanIn = 8,
    resume: options.Resume = True,
    quiet: options.Quiet = False,
    progress_json: options.ProgressJson = False,
) -> None:
    """Count pretokens and save the counts, to train from as often as you like."""
    if not inputs:
        raise UsageError("there is no INPUT to count")
    from raybpe import flow, settings
    from raybpe.cli.show import counts_summary
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
        progress=options.progress(quiet, progress_json),
        documents=documents,
        field=field,
    )
    config = settings.count_config(**given)
    counts = flow.count(checked_inputs(inputs), config, run)
    typer.echo(f"{output}: {counts_summary(counts)}")


@counts_app.command()
def show(
    file: CountsFile,
    top: Annotated[int, typer.Option("--top", "-n", metavar="N", help="Rows to show.")] = 20,
    find: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only pretokens that contain it.", show_default=False),
    ] = None,
) -> None:
    """Show the most frequent pretokens, as count and text."""
    from itertools import islice

    from raybpe.cli.show import table
    from raybpe.counts.counts import Counts
    from raybpe.quoted import readable

    counts = Counts.load(file)
    if find is None:
        rows = counts.top(top)
    else:
        wanted = os.fsencode(find)
        rows = list(islice((row for row in counts.items() if wanted in row[0]), top))
    if rows:
        shown = ((f"{number:,}", readable(pretoken)) for pretoken, number in rows)
        typer.echo(table(shown, right=(0,)))


@counts_app.command()
def add(files: CountsFiles, output: Output = "counts.arrow") -> None:
    """Add counts files that were made with the same settings."""
    from raybpe import storage
    from raybpe.cli.show import counts_summary
    from raybpe.counts.counts import Counts
    from raybpe.given import path

    storage.check_replaceable(path("--output", output))
    total = Counts.sum([Counts.load(file) for file in files])
    total.save(output)
    typer.echo(f"{output}: {counts_summary(total)}")


@counts_app.command()
def stats(file: CountsFile) -> None:
    """Show totals, and what the counts were made with."""
    from raybpe.counts.counts import Counts

    counts = Counts.load(file)
    rows = dict(counts.stats())
    if counts.config is not None:
        rows["pattern"] = counts.config.pattern_name or counts.config.pattern
        rows["special tokens"] = ", ".join(counts.config.special_tokens) or "none"
        rows["invalid UTF-8"] = counts.config.invalid_utf8
    width = max(map(len, rows))
    for name, value in rows.items():
        text = f"{value:,}" if isinstance(value, int) else str(value)
        typer.echo(f"{name.replace('_', ' '):<{width}}  {text}")
