"""Bytes as printable characters, the way GPT-2's files and Hugging Face's ByteLevel write them.

Each of the 256 bytes stands for one character: a printable Latin-1 byte for itself, every other
for the next character from U+0100 on, so that no token holds a space or a line break. Both
directions work on whole vocabularies at once: one array, a table look-up, and slices of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from raybpe.errors import FormatError
from raybpe.merges.byte_order import BYTE_TO_CHARACTER, CHARACTER_TO_BYTE

CODE_POINTS = np.array([ord(BYTE_TO_CHARACTER[byte]) for byte in range(256)], np.uint16)
_UNKNOWN = 256
_BYTES = np.full(1 << 16, _UNKNOWN, np.uint16)
_BYTES[CODE_POINTS] = np.arange(256)


def to_text(tokens: Sequence[bytes]) -> list[str]:
    """Each token in printable characters.

    >>> to_text([b" a", b"\\n"])
    ['Ġa', 'Ċ']
    """
    data = np.frombuffer(b"".join(tokens), np.uint8)
    text = CODE_POINTS[data].astype("<u2").tobytes().decode("utf-16-le")
    ends = list(accumulate(map(len, tokens)))
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def to_bytes(texts: Sequence[str], where: str) -> list[bytes]:
    """The bytes that each text stands for.

    Raises:
        FormatError: a text holds a character that stands for no byte; `where` names the file.
    """
    joined = "".join(texts)
    units = np.frombuffer(joined.encode("utf-16-le", "surrogatepass"), "<u2")
    values = _BYTES[units]
    if len(units) != len(joined) or (values == _UNKNOWN).any():
        text, char = next((t, c) for t in texts for c in t if c not in CHARACTER_TO_BYTE)
        raise FormatError(
            f"{where}: the token {text!r} holds the character {char!r} (U+{ord(char):04X}), which "
            "stands for no byte in GPT-2's alphabet, so this is not a byte-level BPE vocabulary"
        )
    data = values.astype(np.uint8).tobytes()
    ends = list(accumulate(map(len, texts)))
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
