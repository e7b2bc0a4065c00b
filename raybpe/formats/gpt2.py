"""GPT-2's files, `vocab.json` and `merges.txt`, and the same without a header for CS336.

`vocab.json` maps tokens in printable characters (special tokens as they are) to ids. `merges.txt`
has a line ``#version: 0.2`` and then one merge a line, left and right with one space between. No
token in printable characters holds a space or a line break, so any bytes survive. The pattern is
not in the files.
"""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from raybpe.errors import FormatError
from raybpe.formats.files import read_json_object, read_text
from raybpe.formats.names import from_names, merges_of
from raybpe.formats.parts import Parts
from raybpe.formats.source import Source, lines

HEADER = "#version: 0.2\n"
_LOOKS_SPECIAL = re.compile(r"<[^<>\s]+>|\[[A-Z_0-9]+\]")


def render_vocab(source: Source) -> bytes:
    """`vocab.json`.

    Raises:
        FormatError: two tokens would have one name.
    """
    return orjson.dumps(source.names) + b"\n"


def render_merges(source: Source, *, header: bool = True) -> bytes:
    """`merges.txt`.

    Raises:
        FormatError: a merge would be read as the header.
    """
    left, right = source.merge_names
    text = lines(left, " ", right, "\n")
    if text.startswith("#version") or "\n#version" in text:
        rank = next(i for i, part in enumerate(left) if part.startswith("#version"))
        raise FormatError(
            f"merge {rank} would be the line '{left[rank]} {right[rank]}', which readers of "
            "merges.txt take for a header and skip"
        )
    return ((HEADER if header else "") + text).encode()


def read_gpt2(
    vocab_path: Path, merges_path: Path, special_tokens: dict[str, int] | None = None
) -> Parts:
    """Read the two files.

    Args:
        vocab_path: the JSON file.
        merges_path: the text file, with or without a header.
        special_tokens: text → id; None takes those tokens that no merge makes and that look like
            special tokens: ``<…>`` or ``[…]``.

    Raises:
        FormatError: unreadable, damaged, or not byte-level BPE.
    """
    names = read_json_object(vocab_path)
    pairs, first_line = _read_pairs(merges_path)
    if special_tokens is None:
        made = {left + right for left, right in pairs}
        special_tokens = {
            text: number
            for text, number in names.items()
            if text not in made and _LOOKS_SPECIAL.fullmatch(text)
        }
    found = from_names(names, special_tokens, str(vocab_path))
    merges = merges_of(pairs, found, str(merges_path), first_line)
    return Parts(dict(found.values()), merges, special_tokens)


def _read_pairs(path: Path) -> tuple[list[list[str]], int]:
    """Merges in printable characters, and the number of the line that holds the first."""
    rows = read_text(path).split("\n")
    while rows and not rows[-1].strip():
        rows.pop()
    has_header = bool(rows) and rows[0].startswith("#version")
    pairs = [row.removesuffix("\r").split(" ") for row in rows[has_header:]]
    if set(map(len, pairs)) - {2} or not all(left and right for left, right in pairs):
        at = next(i for i, pair in enumerate(pairs) if len(pair) != 2 or not all(pair))
        raise FormatError(
            f"{path}: line {at + 1 + has_header} is {rows[at + has_header]!r:.80}, not two tokens "
            "with one space between"
        )
    return pairs, 1 + has_header
