"""What a file holds, by its name: a format and a compression.

    NAME.txt, .md, .py, …, no suffix    text, or lines under `--documents lines`
    NAME.jsonl, .ndjson                 JSON lines: the document is the string in `--field`
    NAME.json                           JSON lines if the first line is such a record, else text
    NAME.parquet, .pq                   the column `--field`; each row is a document
    NAME.arrow, .feather, .ipc          the same, Arrow IPC files and streams
    NAME.tar                            its members, each by its own suffix
    any of these but tables + .gz .zst .bz2 .xz (and .tgz, .tzst, .tbz2, .txz)

A file with another suffix is text when it is named or matched by a glob. Inside a folder it is
text unless it has a suffix of `BINARY_SUFFIXES` or a NUL byte among its first 8,000 bytes, which
is how git tells text from binary. The plan notes how many a folder leaves out.
"""

from dataclasses import dataclass
from typing import Literal

Format = Literal["text", "lines", "jsonl", "json", "parquet", "arrow", "tar"]
Compression = Literal["gz", "zst", "bz2", "xz"]

SNIFF_BYTES = 8000  # as much as git looks at

_COMPRESSIONS: dict[str, Compression] = {
    ".gz": "gz",
    ".gzip": "gz",
    ".zst": "zst",
    ".zstd": "zst",
    ".bz2": "bz2",
    ".xz": "xz",
}
_TARS: dict[str, Compression] = {
    ".tgz": "gz",
    ".tzst": "zst",
    ".tbz2": "bz2",
    ".tbz": "bz2",
    ".txz": "xz",
}
_FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".jsonlines": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".tar": "tar",
}
_TEXTS = frozenset({".txt", ".text", ".md", ".rst", ".csv", ".tsv", ".html", ".xml", ".py"})
# fmt: off
BINARY_SUFFIXES = frozenset({
    ".7z", ".a", ".avi", ".bin", ".bmp", ".class", ".db", ".dll", ".dylib", ".exe", ".flac",
    ".gif", ".h5", ".ico", ".jar", ".jpeg", ".jpg", ".mkv", ".mo", ".mov", ".mp3", ".mp4", ".npy",
    ".npz", ".o", ".ogg", ".pdf", ".pickle", ".pkl", ".png", ".pt", ".pth", ".pyc", ".pyd", ".rar",
    ".safetensors", ".so", ".sqlite", ".tif", ".tiff", ".ttf", ".wav", ".webm", ".webp", ".whl",
    ".woff", ".woff2", ".zip",
})
# fmt: on


@dataclass(frozen=True)
class Form:
    """What one file holds.

    Attributes:
        format: how to find documents in it; `json` is settled when planning.
        compression: what the bytes are packed with, or None.
        known: whether the suffix says so; otherwise it is a guess that it is text.
    """

    format: Format
    compression: Compression | None
    known: bool


def suffix(name: str) -> str:
    """Lower-case suffix of a path's last part, or an empty string.

    >>> suffix("a.b/c.TXT"), suffix(".hidden"), suffix("a.b/c")
    ('.txt', '', '')
    """
    base = name.rsplit("/", 1)[-1]
    stem, dot, tail = base.rpartition(".")
    return f".{tail.lower()}" if dot and stem else ""


def form_of(name: str, documents: str = "text") -> Form:
    """Form of a file with this name; `documents` is what text without other form is taken as."""
    last = suffix(name)
    if last in _TARS:
        return Form("tar", _TARS[last], True)
    compression = _COMPRESSIONS.get(last)
    if compression:
        name = name[: -len(last)]
        last = suffix(name)
    plain: Format = "lines" if documents == "lines" else "text"
    known = last in _FORMATS or last in _TEXTS or compression is not None
    return Form(_FORMATS.get(last, plain), compression, known)
