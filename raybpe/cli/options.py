"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from raybpe.config import DEFAULT_SPECIAL_TOKENS
from raybpe.errors import UsageError

Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT...", help="Files, folders, globs or URIs; - is standard input.",
        show_default=False,
    ),
]  # fmt: skip
Pattern = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|REGEX",
        help="Pretokenization pattern: a name that `raybpe patterns` lists, or a regex.",
        show_default="gpt2",
        rich_help_panel="Text",
    ),
]
SpecialTokens = Annotated[
    list[str] | None,
    typer.Option(
        "--special-token",
        metavar="TEXT",
        help="Text with an id of its own, cut out before pretokenizing; repeatable.",
        show_default=DEFAULT_SPECIAL_TOKENS[0],
        rich_help_panel="Text",
    ),
]
NoSpecialTokens = Annotated[
    bool,
    typer.Option(
        "--no-special-tokens", help="Use no special tokens.", rich_help_panel="Text"
    ),
]  # fmt: skip
InvalidUtf8 = Annotated[
    str | None,
    typer.Option(
        metavar="error|replace|skip|keep",
        help="What to do with bytes that are not UTF-8: stop; put U+FFFD; drop them; keep each "
        "as a pretoken of its own.",
        show_default="error",
        rich_help_panel="Text",
    ),
]
MaxPretokenLength = Annotated[
    int | None,
    typer.Option(
        metavar="BYTES",
        help="Leave out longer pretokens, and report them.",
        show_default="no limit",
        rich_help_panel="Text",
    ),
]
Documents = Annotated[
    str,
    typer.Option(
        metavar="text|lines",
        help="Take a text file as one text that special tokens cut, or each line as a document.",
        rich_help_panel="Text",
    ),
]
Field = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Field or column with the text, in JSON lines, Parquet and Arrow files.",
        rich_help_panel="Text",
    ),
]
Executor = Annotated[
    str,
    typer.Option(
        metavar="auto|local|ray",
        help="Threads of this process, Ray tasks, or Ray only where a cluster is given or running. "
        "The bytes that come out are the same.",
        rich_help_panel="Run",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDR",
        help="Ray cluster to use, host:port; `local` starts one.",
        show_default=False,
        rich_help_panel="Run",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Threads, or counting tasks at a time.",
        show_default="all cores",
        rich_help_panel="Run",
    ),
]
ChunkSize = Annotated[
    str,
    typer.Option(metavar="SIZE", help="Unit of counting and resuming.", rich_help_panel="Run"),
]
FanIn = Annotated[
    int,
    typer.Option(
        metavar="N", help="Count tables that one reduction task adds up.", rich_help_panel="Run"
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--no-resume",
        help="Continue an unfinished run of the same command, or start over.",
        rich_help_panel="Run",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel="Run")
]  # fmt: skip
ProgressJson = Annotated[
    bool,
    typer.Option(
        "--progress-json",
        help="Progress as one JSON object per line, on standard error.",
        rich_help_panel="Run",
    ),
]


def counting(
    pattern: str | None,
    special_token: list[str] | None,
    no_special_tokens: bool,
    invalid_utf8: str | None,
    max_pretoken_length: int | None,
) -> dict[str, Any]:
    """Keywords of `settings.count_config`, those only that were given."""
    if no_special_tokens and special_token:
        raise UsageError("--special-token and --no-special-tokens contradict each other")
    given = {
        "pattern": pattern,
        "special_tokens": () if no_special_tokens else special_token or None,
        "invalid_utf8": invalid_utf8,
        "max_pretoken_length": max_pretoken_length,
    }
    return {name: value for name, value in given.items() if value is not None}


def refuse_with_counts(context: typer.Context) -> None:
    """Refuse what says how text is read where counts take its place: it would do nothing.

    Raises:
        UsageError: such an option is given, be it with the value it has anyway.
    """
    names = {
        "documents": "--documents",
        "field": "--field",
        "chunk_size": "--chunk-size",
        "fan_in": "--fan-in",
        "resume": "--resume/--no-resume",
    }
    for name, option in names.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(
                f"{option} is about reading text, but --from-counts reads none; drop one of them"
            )


def progress(quiet: bool, progress_json: bool) -> str:
    """The kind of progress that the two options ask for."""
    if quiet and progress_json:
        raise UsageError("--quiet and --progress-json contradict each other")
    return "none" if quiet else "json" if progress_json else "auto"
