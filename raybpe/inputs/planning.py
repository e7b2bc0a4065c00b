"""Make the plan: find files, tell their forms, cut them into parts, group parts into chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from raybpe.errors import InputError, UsageError
from raybpe.filesystems import shown, split_query
from raybpe.inputs.find import Found, find_files
from raybpe.inputs.forms import form_of
from raybpe.inputs.plan import STDIN, Part, Plan, Source, group, split_bytes


def plan_inputs(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    chunk_bytes: int,
    documents: str = "text",
    field: str = "text",
) -> Plan:
    """Plan the reading of files, folders, globs and URIs; `-` is standard input.

    Args:
        inputs: what to read.
        chunk_bytes: nominal bytes of one counting task.
        documents: `text` or `lines`: what plain text files hold.
        field: name of the text in JSON lines and tables.

    Raises:
        UsageError: no inputs, or an option has a wrong value.
        InputError: an input is missing, unreadable or empty, or a glob matches nothing.
    """
    if isinstance(inputs, (str, bytes, os.PathLike)):
        inputs = [os.fsdecode(inputs)]
    names = [os.fspath(name) for name in inputs]
    if not names:
        raise UsageError("there is no input; give files, folders, globs, URIs, or - for stdin")
    if chunk_bytes < 1:
        raise UsageError(f"--chunk-size {chunk_bytes} must be at least 1 byte")
    if documents not in ("text", "lines"):
        raise UsageError(f"--documents {documents!r} is not one of text, lines")
    findings = find_files(names)
    if all(found.size == 0 for found in findings.files):
        empty = shown(findings.files[0].uri)
        more = f" and {len(findings.files) - 1:,} other(s)" if len(findings.files) > 1 else ""
        raise InputError(f"{empty}{more} is empty: there is nothing to count")
    wholes = [_whole(found, documents, field) for found in findings.files]
    sources = tuple(
        Source(shown(part.uri), part.source_size, part.format, part.compression) for part in wholes
    )
    parts = [piece for part in wholes for piece in _split(part, chunk_bytes)]
    return Plan(group(parts, chunk_bytes), sources, findings.skipped, findings.notes)


def _whole(found: Found, documents: str, field: str) -> Part:
    form = form_of(split_query(found.uri)[0], documents)
    return Part(
        found.uri,
        form.format,
        form.compression,
        0,
        found.size,
        found.size,
        found.size,
        field,
        documents,
    )


def _split(part: Part, chunk_bytes: int) -> Iterator[Part]:
    if part.uri == STDIN:
        yield part
    elif part.compression is None and part.format in ("text", "lines", "jsonl"):
        yield from split_bytes(part, chunk_bytes)
    else:
        yield part
