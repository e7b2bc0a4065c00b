"""GPT-2's files, `vocab.json` and `merges.txt`, and the same without a header for CS336.

`vocab.json` maps tokens in printable characters (special tokens as they are) to ids. `merges.txt`
has a line ``#version: 0.2`` and then one merge a line, left and right with one space between. No
token in printable characters holds a space or a line break, so any bytes survive. The pattern is
not in the files.
"""

from __future__ import annotations

import re
from operator import add
from pathlib import Path

import orjson

from raybpe.errors import FormatError
from raybpe.formats.files import read_json_object, read_text
from raybpe.formats.names import from_names, merges_of
from raybpe.formats.parts import Parts
from raybpe.formats.source import Source, lines

HEADER = "#version: 0.2\n"
_HEADER = re.compile(r"#version[^\n]*(\n|\Z)")
_SEPARATOR = re.compile("[ \n]")
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
    left, right, first_line = _read_pairs(merges_path)
    if special_tokens is None:
        made = set(map(add, left, right))
        special_tokens = {
            text: number
            for text, number in names.items()
            if text not in made and _LOOKS_SPECIAL.fullmatch(text)
        }
    named = from_names(names, special_tokens, str(vocab_path))
    merges = merges_of(left, right, named, str(merges_path), first_line)
    return Parts(named.vocab, merges, special_tokens)


def _read_pairs(path: Path) -> tuple[list[str], list[str], int]:
    """Left and right parts of the merges, and the number of the line that holds the first."""
    text = read_text(path).replace("\r\n", "\n").rstrip("\n")
    header = _HEADER.match(text)
    text = text[header.end() :] if header else text
    first_line = 2 if header else 1
    if not text:
        return [], [], first_line
    separators = "".join(_SEPARATOR.findall(text))
    parts = text.replace("\n", " ").split(" ")
    if separators != " " + "\n " * (len(separators) // 2) or "" in parts:
        for at, line in enumerate(text.split("\n")):
            if line.count(" ") != 1 or "" in line.split(" "):
                raise FormatError(
                    f"{path}: line {first_line + at} is {line!r:.80}, not two tokens with one "
                    "space between"
                )
    return parts[0::2], parts[1::2], first_line
