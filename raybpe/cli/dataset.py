"""`raybpe encode` and `raybpe decode`: data sets to token shards, and ids back to text."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from raybpe.cli import options
from raybpe.cli.audit import TokenizerPath
from raybpe.errors import UsageError


def encode(
    tokenizer: TokenizerPath,
    inputs: options.Inputs = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder or URI of the data set.")
    ] = "tokens",
    format: Annotated[
        str,
        typer.Option(
            metavar="npy|bin|parquet",
            help="Arrays of ids; the same without a header; or a row per document.",
        ),
    ] = "npy",
    dtype: Annotated[
        str,
        typer.Option(metavar="auto|uint16|uint32", help="Type of an id; auto: uint16 if all fit."),
    ] = "auto",
    eot_token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Special token between documents.",
            show_default="<|endoftext|> if the tokenizer has it",
        ),
    ] = None,
    no_eot_token: Annotated[
        bool, typer.Option("--no-eot-token", help="Put nothing between documents.")
    ] = False,
    documents: options.Documents = "text",
    field: options.Field = "text",
    executor: options.Executor = "auto",
    address: options.Address = None,
    workers: options.Workers = None,
    chunk_size: Annotated[
        str,
        typer.Option(metavar="SIZE", help="Input bytes in a shard.", rich_help_panel="Run"),
    ] = "64MB",
    resume: options.Resume = True,
    quiet: options.Quiet = False,
    progress_json: options.ProgressJson = False,
) -> None:
    """Encode a corpus into token shards, in the order of its files' names.

    The shards are the same for any number of workers; a killed command can be repeated.
    """
    if not inputs:
        raise UsageError("there is no INPUT to encode")
    if eot_token is not None and no_eot_token:
        raise UsageError("--eot-token and --no-eot-token contradict each other")
    from raybpe import settings
    from raybpe.config import DEFAULT_SPECIAL_TOKENS
    from raybpe.flow.dataset import encode_dataset
    from raybpe.given import inputs as checked_inputs
    from raybpe.tokenizer.tokenizer import Tokenizer

    loaded = Tokenizer.load(tokenizer)
    if eot_token is None and not no_eot_token:
        eot_token = next((t for t in DEFAULT_SPECIAL_TOKENS if t in loaded.special_tokens), None)
    run = settings.run_options(
        executor=executor,
        address=address,
        workers=workers,
        chunk_size=chunk_size,
        output=output,
        resume=resume,
        progress=options.progress(quiet, progress_json),
        documents=documents,
        field=field,
    )
    done = encode_dataset(
        loaded,
        checked_inputs(inputs),
        run,
        format=format,  # type: ignore[arg-type]
        dtype=dtype,  # type: ignore[arg-type]
        eot_token=eot_token,
    )
    typer.echo(
        f"{output}: {done.tokens:,} tokens of {done.text_bytes:,} bytes in "
        f"{len(done.shards):,} shard{'s' if len(done.shards) != 1 else ''} "
        f"({done.text_bytes / max(1, done.tokens):.2f} bytes per token)"
    )


def decode(
    tokenizer: TokenizerPath,
    source: Annotated[
        str,
        typer.Argument(
            metavar="[FILE|DIR|-]",
            help="A shard, the folder of a data set, or - for ids as text on standard input.",
        ),
    ] = "-",
    dtype: Annotated[
        str | None,
        typer.Option(
            metavar="uint16|uint32",
            help="Type of the ids in a .bin file.",
            show_default="as `encode` would choose",
        ),
    ] = None,
) -> None:
    """Turn ids back into text, on standard output."""
    from raybpe.flow.dataset.decode import ids_of
    from raybpe.given import path
    from raybpe.tokenizer.tokenizer import Tokenizer

    loaded = Tokenizer.load(tokenizer)
    for ids in ids_of(path("the source", source), loaded, dtype):
        sys.stdout.buffer.write(loaded.decode_bytes(ids))
    sys.stdout.buffer.flush()
