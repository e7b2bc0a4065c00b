"""Make the plan: find files, tell their forms, cut them into parts, group parts into chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from raybpe.errors import InputError, UsageError
from raybpe.filesystems import RangeFile, name_of, scheme_of, shown
from raybpe.inputs.documents import JSON_HEAD_BYTES, holds_records
from raybpe.inputs.find import Found, find_files
from raybpe.inputs.forms import Form, form_of
from raybpe.inputs.plan import ALL, DIVISIBLE, STDIN, Part, Plan, Source, group, split_bytes


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
        Source(shown(part.uri), part.source_size, part.format, part.compression, found.version)
        for part, found in zip(wholes, findings.files, strict=True)
    )
    parts = [piece for part in wholes for piece in _split(part, chunk_bytes)]
    notes = findings.notes + _text_notes(wholes)
    return Plan(group(parts, chunk_bytes), sources, notes)


def _text_notes(wholes: Sequence[Part]) -> tuple[str, ...]:
    """What to say about .json files that turned out not to be JSON lines."""
    texts = [
        part.uri for part in wholes if part.format != "jsonl" and _form(part.uri).format == "json"
    ]
    if not texts:
        return ()
    return (
        f"{len(texts):,} .json file(s) are read as text, because their first line is no JSON "
        f"object with the field {wholes[0].field!r}, for example {shown(texts[0])}",
    )


def _form(uri: str, documents: str = "text") -> Form:
    """Form of a file by its name or, where that says nothing, by the name that a link asks for."""
    form = form_of(name_of(uri), documents)
    if form.known or scheme_of(uri) not in ("http", "https"):
        return form
    return form_of(uri, documents)  # such as https://host/get?file=a.jsonl.gz


def _whole(found: Found, documents: str, field: str) -> Part:
    form = _form(found.uri, documents)
    if form.compression and form.format in ("parquet", "arrow"):
        raise InputError(
            f"{shown(found.uri)} is a compressed table; decompress it (Parquet and Arrow compress "
            "inside)"
        )
    size = found.size
    part = Part(
        found.uri, form.format, form.compression, 0, size, size, max(size, 0), field, documents
    )
    return _settle_json(part) if part.format == "json" else part


def _settle_json(part: Part) -> Part:
    """Decide whether a .json file holds JSON lines or is text."""
    from raybpe.inputs.streams import open_stream

    with RangeFile(part.uri) as file, open_stream(file, part.compression) as stream:
        records = holds_records(stream.read(JSON_HEAD_BYTES), part.field)
    return replace(part, format="jsonl" if records else part.documents)  # type: ignore[arg-type]


def _split(part: Part, chunk_bytes: int) -> Iterator[Part]:
    if part.uri == STDIN:
        yield replace(part, end=ALL)
    elif part.format in ("parquet", "arrow"):
        yield from _split_table(part, chunk_bytes)
    elif part.compression is None and part.format in DIVISIBLE:
        yield from split_bytes(part, chunk_bytes)
    else:
        yield part


def _split_table(part: Part, chunk_bytes: int) -> Iterator[Part]:
    if part.source_size <= chunk_bytes:  # saves reading the footer of every small file
        yield replace(part, end=ALL)
        return
    from raybpe.inputs.tables import divide_arrow, divide_parquet

    divide = divide_parquet if part.format == "parquet" else divide_arrow
    for start, end, size in divide(part, chunk_bytes):
        yield replace(part, start=start, end=end, bytes=size)
