"""The plan: which parts of which inputs make up each counting task. Pure data.

A `Part` is a byte range of one file that can be cut anywhere (text, lines and JSON lines that are
not compressed), a range of row groups or record batches, or a whole file. A `Chunk` is one
counting task: one part of about `chunk_bytes`, or many small files together, so that ten thousand
tiny files are not ten thousand tasks. Chunks with most work come first.

The plan depends on the inputs, not on the order or number of times in which they are named: files
are sorted by URI, and a file that two inputs name is read once, which `Plan.notes` says.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

from raybpe.filesystems import shown
from raybpe.inputs.forms import Compression, Format

STDIN = "-"
UNKNOWN_SIZE = -1
DIVISIBLE = ("text", "lines", "jsonl")  # formats that byte ranges divide, if not compressed
ALL = -1  # as the end of a part: everything that is there

PART_OVERHEAD_BYTES = 250_000  # opening a file costs about as much as counting this much text
TEXT_PER_COMPRESSED_BYTE = 4  # usual for gzip and zstd on prose; only balances tasks


@dataclass(frozen=True)
class Part:
    """A piece of one input.

    Attributes:
        uri: absolute path or URI; `-` is standard input.
        format: how to find documents.
        compression: what the bytes are packed with, or None.
        start: first byte, row group or record batch.
        end: one past the last; `ALL` where the number is not known.
        source_size: bytes in the file when it was planned, to notice that it changed.
        bytes: bytes of the file that this part stands for, for progress.
        field: name of the text in JSON lines and tables.
        documents: what text in tar members is taken as, `text` or `lines`.
    """

    uri: str
    format: Format
    compression: Compression | None
    start: int
    end: int
    source_size: int
    bytes: int
    field: str = "text"
    documents: str = "text"

    @property
    def weight(self) -> int:
        """Work in bytes of text, roughly."""
        packed = self.compression is not None or self.format == "parquet"
        factor = TEXT_PER_COMPRESSED_BYTE if packed else 1
        return max(self.bytes, 0) * factor


@dataclass(frozen=True)
class Chunk:
    """One counting task.

    Attributes:
        index: position in the plan.
        parts: what to read, in order.
    """

    index: int
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        """Bytes of input files that this chunk stands for, for progress."""
        return sum(max(part.bytes, 0) for part in self.parts)

    @property
    def name(self) -> str:
        """Name within the plan, which sorts as the index does."""
        return f"chunk-{self.index:08d}"


@dataclass(frozen=True)
class Source:
    """One input file: how messages name it, its size in bytes, and its form.

    Attributes:
        version: what changes when it is written again, such as the time or an ETag; empty where
            the store tells nothing.
    """

    uri: str
    size: int
    format: Format
    compression: Compression | None
    version: str = ""

    @property
    def state(self) -> str:
        """Size and version, to notice that the file is another one."""
        return f"{self.size:,} bytes of {self.version}" if self.version else f"{self.size:,} bytes"


@dataclass(frozen=True)
class Plan:
    """All counting tasks and what they cover.

    Attributes:
        chunks: the tasks.
        sources: the files, sorted by URI, without credentials or options.
        notes: sentences that the user should see.
    """

    chunks: tuple[Chunk, ...]
    sources: tuple[Source, ...]
    notes: tuple[str, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Bytes in all input files, compressed as they are; standard input is not counted."""
        return sum(max(source.size, 0) for source in self.sources)

    @property
    def reads_stdin(self) -> bool:
        """Whether standard input is read, which only this process can do."""
        return any(source.uri == STDIN for source in self.sources)

    def fingerprint(self) -> str:
        """32 hex digits that are equal when the same parts of the same files are read in order.

        What `shown` hides of a URI, such as the signature of a link, changes it only where nothing
        else tells files apart: where the store gives no version, or two files are shown alike.
        """
        alike = Counter(source.uri for source in self.sources)
        states = {
            source.uri: source.state
            for source in self.sources
            if source.version and alike[source.uri] == 1
        }
        chunks = [asdict(chunk) for chunk in self.chunks]
        for chunk in chunks:
            for part in chunk["parts"]:
                name = shown(part["uri"])
                if name in states:
                    part["uri"] = [name, states[name]]
        return hashlib.sha256(json.dumps(chunks, sort_keys=True).encode()).hexdigest()[:32]


def split_bytes(part: Part, chunk_bytes: int) -> Iterator[Part]:
    """Cut a part of bytes into ranges of `chunk_bytes`, the last one shorter."""
    for start in range(part.start, part.end, chunk_bytes):
        end = min(start + chunk_bytes, part.end)
        yield replace(part, start=start, end=end, bytes=end - start)


def group(parts: Iterable[Part], chunk_bytes: int) -> tuple[Chunk, ...]:
    """Put parts together into chunks of about `chunk_bytes`, most work first."""
    chunks: list[tuple[int, tuple[Part, ...]]] = []
    pending: list[Part] = []
    weight = 0
    for part in parts:
        cost = part.weight + PART_OVERHEAD_BYTES
        if pending and weight + cost > chunk_bytes:
            chunks.append((weight, tuple(pending)))
            pending, weight = [], 0
        pending.append(part)
        weight += cost
    if pending:
        chunks.append((weight, tuple(pending)))
    chunks.sort(key=lambda chunk: -chunk[0])  # stable: equal work stays in order of URI
    return tuple(Chunk(index, parts) for index, (_, parts) in enumerate(chunks))
