"""The same documents in every input form, and a cutter, for the tests of readers."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from raybpe.block import PADDING_BYTES
from raybpe.inputs import Plan, ReadStats, read_blocks

SEPARATOR = b"<|endoftext|>"


class SpaceCutter:
    """Cuts before each space that follows a letter, never inside the separator."""

    special_tokens = (SEPARATOR.decode(),)

    def next_cut(self, data, position, end, final):
        text = data[:end].tobytes()
        for place in range(max(position, 1), end - (0 if final else len(SEPARATOR))):
            if self._is_cut(text, place):
                return place
        return end if final else None

    def last_cut(self, data, start, end):
        text = data[:end].tobytes()
        for place in range(end - len(SEPARATOR), start, -1):
            if self._is_cut(text, place):
                return place
        return None

    @staticmethod
    def _is_cut(text, place):
        return text[place : place + 1] == b" " and text[place - 1 : place].isalpha()


def texts(plan: Plan, stats: ReadStats | None = None, cutter=None) -> list[bytes]:
    """All documents of a plan, in order of the file."""
    found = []
    for chunk in sorted(plan.chunks, key=lambda chunk: (chunk.parts[0].uri, chunk.parts[0].start)):
        for block in read_blocks(chunk, cutter or SpaceCutter(), stats):
            assert len(block.data) >= block.ends[-1] + PADDING_BYTES
            assert (block.ends >= block.starts).all()
            assert (block.starts[1:] >= block.ends[:-1]).all()
            for start, end in zip(block.starts, block.ends, strict=True):
                found.append(block.data[start:end].tobytes())
    return found


DOCUMENTS = [
    "One document, with words.",
    "",
    "zwei\tÜmläute und 漢字 🙂",
    'quotes " and \\ and \u2028 and \x00',
    "x" * 300,
    " leading and trailing ",
]

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstandard.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def json_lines(documents: list[str], field: str = "text") -> bytes:
    rows = [json.dumps({"id": i, field: text}) for i, text in enumerate(documents)]
    return "".join(row + "\n" for row in rows).encode()


def lines(documents: list[str]) -> bytes:
    return "".join(text + "\n" for text in documents).encode()


def table(documents: list[str], kind: pa.DataType | None = None) -> pa.Table:
    text = pa.array(documents, kind or pa.string())
    return pa.table({"id": pa.array(range(len(documents))), "text": text})


def parquet(documents: list[str], **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(documents), sink, **options)
    return sink.getvalue()


def arrow(documents: list[str], kind: pa.DataType | None = None, stream: bool = False) -> bytes:
    sink = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    rows = table(documents, kind)
    with new(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=2)
    return sink.getvalue()


def tar(members: dict[str, bytes], mode: str = "w") -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return sink.getvalue()


def all_forms(documents: list[str]) -> dict[str, bytes]:
    """Contents by file name; every file holds each document once."""
    forms = {
        "a.jsonl": json_lines(documents),
        "a.ndjson": json_lines(documents).rstrip(b"\n"),
        "a.json": json_lines(documents).replace(b"\n", b"\r\n"),
        "a.parquet": parquet(documents),
        "groups.parquet": parquet(documents, row_group_size=2, compression="zstd"),
        "file.arrow": arrow(documents),
        "stream.arrow": arrow(documents, stream=True),
        "large.arrow": arrow(documents, pa.large_string()),
        "view.arrow": arrow(documents, pa.string_view()),
        "a.feather": arrow(list(documents), pa.large_string()),
        "a.tar": tar(
            {"x.jsonl": json_lines(documents[:2]), "b/y.jsonl": json_lines(documents[2:])}
        ),
        "b.tgz": tar({"x.parquet": parquet(documents), "z.png": b"\x00png"}, "w:gz"),
        "c.tar.zst": zstandard.compress(tar({"x.jsonl.gz": gzip.compress(json_lines(documents))})),
        "d.tar": tar({"x.arrow": arrow(documents), ".hidden.txt": b"no", "sub.tar": tar({})}),
        "e.tar.xz": lzma.compress(tar({"in.tar": tar({"x.json": json_lines(documents)})})),
    }
    for suffix, compress in COMPRESSIONS.items():
        forms[f"a.jsonl.{suffix}"] = compress(json_lines(documents))
        forms[f"a.json.{suffix}"] = compress(json_lines(documents))
    return forms


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
