"""Partials: summed counts of some chunks, as files that survive a kill.

``partial-<hash>.arrow`` is an Arrow IPC file with one record batch per hash partition. Its schema
metadata holds ``raybpe.partial``, a JSON object: ``run`` (the identity of the run), ``chunks``
(indices that it covers), ``tally``, and ``crc32`` of each batch's arrays; and ``raybpe.crc32``,
that of this text. Reading takes the memory of one batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from raybpe.counts.columns import Columns, checksum
from raybpe.errors import CountsError, RaybpeError
from raybpe.filesystems import attempt, open_input, resolve, shown
from raybpe.flow.steps import Tally

METADATA_KEY = b"raybpe.partial"
CHECK_KEY = b"raybpe.crc32"


@dataclass(frozen=True)
class Partial:
    """Saved counts of some chunks.

    Attributes:
        uri: the file.
        chunks: indices of the chunks that it covers.
        tally: what was seen while counting them.
        size: bytes of its rows, about.
    """

    uri: str
    chunks: frozenset[int]
    tally: Tally
    size: int

    def columns(self) -> Iterator[Columns]:
        """Its rows, one hash partition after the other."""
        for partition in range(_batches(self.uri)):
            yield from read_partial(self.uri, partition)


def is_partial(name: str) -> bool:
    """Whether a file of a run directory is one."""
    return name.endswith(".arrow")


def write_partial(
    uri: str, identity: str, chunks: Sequence[int], tables: Sequence[Any], tally: Tally
) -> None:
    """Write summed counts, one Arrow table per hash partition, as one file.

    Raises:
        OutputError: the place cannot be written.
    """
    import pyarrow as pa

    from raybpe import storage
    from raybpe.counts.arrow import SCHEMA, from_arrow

    tables = [table.combine_chunks() for table in tables]
    header = {
        "run": identity,
        "chunks": sorted(chunks),
        "tally": tally.as_dict(),
        "crc32": [checksum(from_arrow(table)) for table in tables],
    }
    text = json.dumps(header).encode()
    schema = SCHEMA.with_metadata({METADATA_KEY: text, CHECK_KEY: str(crc32(text)).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        for table in tables:
            batches = table.replace_schema_metadata(schema.metadata).to_batches()
            empty = pa.record_batch([[], []], schema=schema)
            writer.write_batch(batches[0] if batches else empty)
    storage.write(uri, sink.getvalue())


def read_partial(uri: str, partition: int) -> list[Columns]:
    """Rows of one hash partition of a partial.

    Raises:
        CountsError: it is damaged.
        InputError: it is not there.
        TransientError: a store failed again and again.
    """
    import pyarrow as pa

    from raybpe.counts.arrow import from_arrow

    with _reading(uri) as reader:
        header = _header(reader)
        batch = attempt(uri, lambda: reader.get_batch(partition))
        rows = list(from_arrow(pa.Table.from_batches([batch])))
        if checksum(rows) != header["crc32"][partition]:
            raise ValueError(f"hash partition {partition} is not what was written")
        return rows


def read_header(uri: str) -> tuple[Partial, str]:
    """What a partial covers, and the identity of its run.

    Raises:
        As `read_partial`.
    """
    with _reading(uri) as reader:
        header = _header(reader)
        filesystem, path = resolve(uri)
        size = int(attempt(uri, lambda: filesystem.get_file_info(path)).size)
        partial = Partial(uri, frozenset(header["chunks"]), Tally(**header["tally"]), size)
        return partial, str(header["run"])


def _batches(uri: str) -> int:
    with _reading(uri) as reader:
        return int(reader.num_record_batches)


def _header(reader: Any) -> dict[str, Any]:
    metadata = reader.schema.metadata
    text = metadata[METADATA_KEY]
    if metadata[CHECK_KEY] != str(crc32(text)).encode():
        raise ValueError("what it says of itself is not what was written")
    return dict(json.loads(text))


@contextmanager
def _reading(uri: str) -> Iterator[Any]:
    import pyarrow as pa

    try:
        with open_input(uri) as file:
            yield attempt(uri, lambda: pa.ipc.open_file(file))
    except RaybpeError:
        raise
    except (pa.ArrowException, ValueError, KeyError, TypeError, IndexError, OSError) as error:
        raise CountsError(
            f"{shown(uri)} is damaged or cut off ({error!r}); remove it, or start over with "
            "--no-resume"
        ) from error
