"""`raybpe patterns`: the named patterns, and how each runs."""

from __future__ import annotations

from typing import Annotated

import typer


def patterns(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|REGEX]...", help="Only these; a regex is tried too.", show_default=False
        ),
    ] = None,
) -> None:
    """List the named patterns: name, how it runs, and the regex.

    scan: the hand-made scan for gpt2. automaton: the kernel for compiled patterns.
    regex: the fallback to the regex package, with the same answer, slower.
    """
    from raybpe.pretokenize import PATTERNS, pretokenizer, resolve_pattern

    for name in names or list(PATTERNS):
        pattern = resolve_pattern(name)
        cutter = pretokenizer(pattern, ())
        reason = f" ({cutter.reason})" if cutter.reason else ""
        typer.echo(f"{pattern.name or 'regex'}\t{cutter.engine}{reason}\t{pattern.regex}")
