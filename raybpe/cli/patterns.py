"""`raybpe patterns`: the named patterns, and how each runs."""

from __future__ import annotations

import shutil
import sys
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

    rows = []
    for name in names or list(PATTERNS):
        pattern = resolve_pattern(name)
        cutter = pretokenizer(pattern, ())
        reason = f" ({cutter.reason})" if cutter.reason else ""
        rows.append((pattern.name or "regex", cutter.engine + reason, pattern.regex))
    if sys.stdout.isatty():
        _show(rows)
        return
    for row in rows:
        typer.echo("\t".join(row))


def _show(rows: list[tuple[str, str, str]]) -> None:
    """In columns as wide as the terminal; a regex goes on below, cut anywhere, spaces kept."""
    from rich.cells import chop_cells

    names, engines = (max(len(row[column]) for row in rows) + 2 for column in (0, 1))
    width = max(shutil.get_terminal_size().columns - names - engines, 30)
    for name, engine, regex in rows:
        first, *more = chop_cells(regex, width)
        typer.echo(f"{name:{names}}{engine:{engines}}{first}")
        for line in more:
            typer.echo(" " * (names + engines) + line)
