"""The counts file: an Arrow IPC file with the two columns of counts in canonical order.

Any Arrow library reads it. The schema's metadata holds, under the key ``raybpe``, one JSON object:

    format                 1
    pattern, pattern_name, special_tokens, invalid_utf8, max_pretoken_length
                           the settings, absent when counts came from a mapping
    unicode                version of the Unicode data that the pattern was matched with
    sources                [{uri, size}], sorted; no credentials
    rows, total            distinct pretokens and occurrences
    crc32                  of the three arrays (offsets, bytes, counts, in this order)

There is no date and no host in it, so equal counts of equal sources are equal files. Writing and
reading hold one copy of the table beside the given one.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from raybpe import storage
from raybpe.config import CountConfig
from raybpe.counts.arrow import SCHEMA, from_arrow, to_arrow
from raybpe.counts.columns import checksum, concatenate
from raybpe.counts.counts import CountedSource, Counts
from raybpe.errors import CountsError, UsageError
from raybpe.filesystems import shown

FORMAT = 1
METADATA_KEY = b"raybpe"
BATCH_ROWS = 2**20


def save_counts(counts: Counts, path: str) -> None:
    """Write a counts file; see the module.

    Raises:
        OutputError: it cannot be written; what was there before is untouched.
    """
    ordered = counts.canonical()
    metadata = json.dumps(_metadata(ordered), sort_keys=True, ensure_ascii=True)
    table = ordered.table.replace_schema_metadata({METADATA_KEY: metadata.encode()})

    def write(sink: Any) -> None:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=BATCH_ROWS)

    storage.write_stream(path, write)


def load_counts(path: str) -> Counts:
    """Read a counts file and check it.

    Raises:
        CountsError: it is corrupt, foreign, or of a newer version.
        InputError: it is missing or unreadable.
    """
    data = storage.read(path)
    path = shown(path)  # from here on only in messages
    try:
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        names = ", ".join(table.schema.names)  # which may not be UTF-8
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise CountsError(
            f"{path} is not a counts file, or is cut off: {error}; make one with `raybpe count`"
        ) from error
    text = (table.schema.metadata or {}).get(METADATA_KEY)
    if text is None or not table.schema.equals(SCHEMA):
        raise CountsError(
            f"{path} is an Arrow file but not a counts file: its columns are "
            f"{names or 'none'}; make one with `raybpe count`"
        )
    metadata = _parse(text, path)
    table = table.replace_schema_metadata(None)
    try:
        table.validate(full=True)
    except pa.ArrowException as error:
        raise CountsError(f"{path} is corrupt: {error}; count again") from error
    if any(column.null_count for column in table.columns):
        raise CountsError(f"{path} is corrupt: it holds nulls; count again")
    columns = concatenate(list(from_arrow(table)))
    counts = Counts(to_arrow(columns), *_provenance(metadata, path))
    if len(columns.counts) and int(columns.counts.min()) < 0:
        raise CountsError(f"{path} is corrupt: it holds a negative count; count again")
    found = {"rows": len(counts), "total": counts.total, "crc32": checksum([columns])}
    for name, value in found.items():
        if metadata.get(name) != value:
            raise CountsError(
                f"{path} is corrupt: its {name} is {value}, but {metadata.get(name)} was written; "
                "count again"
            )
    return counts


def _metadata(counts: Counts) -> dict[str, Any]:
    settings = {} if counts.config is None else asdict(counts.config)
    sources = sorted(counts.sources, key=lambda source: (source.uri, source.size))
    return settings | {
        "format": FORMAT,
        "unicode": counts.unicode,
        "sources": [asdict(source) for source in sources],
        "rows": len(counts),
        "total": counts.total,
        "crc32": checksum([counts.columns]),
    }


def _parse(text: bytes, path: str) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("format"), int):
        raise CountsError(f"{path} is corrupt: its metadata cannot be read; count again")
    if metadata["format"] != FORMAT:
        raise CountsError(
            f"{path} has format {metadata['format']}, this version reads format {FORMAT}; "
            "use the version of raybpe that wrote it, or count again"
        )
    return metadata


def _provenance(
    metadata: dict[str, Any], path: str
) -> tuple[CountConfig | None, tuple[CountedSource, ...], str]:
    try:
        config = None
        if "pattern" in metadata:
            config = CountConfig(
                pattern=str(metadata["pattern"]),
                pattern_name=metadata["pattern_name"],
                special_tokens=tuple(map(str, metadata["special_tokens"])),
                invalid_utf8=metadata["invalid_utf8"],
                max_pretoken_length=metadata["max_pretoken_length"],
            )
        sources = tuple(CountedSource(str(s["uri"]), int(s["size"])) for s in metadata["sources"])
        return config, sources, str(metadata["unicode"])
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise CountsError(
            f"{path} is corrupt: its metadata lacks or misstates {error}; count again"
        ) from error
