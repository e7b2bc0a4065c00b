"""How the 256 base tokens are numbered, and GPT-2's printable names of bytes.

GPT-2 wrote tokens as text in which every byte has a printable character: the 188 bytes that print
in Latin-1 stand for themselves, the other 68 are U+0100 and up, in order. Sorted by those
characters, `!` comes first; Hugging Face numbers base tokens so (`gpt2`). Trainers that work on
bare bytes number them by value (`value`).
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from raybpe.config import ByteOrder
from raybpe.errors import UsageError

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_OTHERS = tuple(byte for byte in range(256) if byte not in _PRINTABLE)

BYTE_TO_CHARACTER: Mapping[int, str] = MappingProxyType(
    {byte: chr(byte) for byte in _PRINTABLE}
    | {byte: chr(0x100 + i) for i, byte in enumerate(_OTHERS)}
)
CHARACTER_TO_BYTE: Mapping[str, int] = MappingProxyType(
    {character: byte for byte, character in BYTE_TO_CHARACTER.items()}
)

_TO_TEXT = {byte: BYTE_TO_CHARACTER[byte] for byte in range(256)}  # for str.translate


def bytes_to_text(token: bytes) -> str:
    """The token in GPT-2's printable characters, one per byte.

    >>> bytes_to_text(b" the")
    'Ġthe'
    """
    return token.decode("latin-1").translate(_TO_TEXT)


def byte_ids(order: ByteOrder) -> npt.NDArray[np.uint8]:
    """uint8 (256,): the id of each byte value, before special tokens shift it."""
    if order == "value":
        return np.arange(256, dtype=np.uint8)
    if order != "gpt2":
        raise UsageError(f"no byte order named {order!r}; there are gpt2 and value")
    by_character = sorted(range(256), key=BYTE_TO_CHARACTER.__getitem__)
    ids = np.empty(256, np.uint8)
    ids[by_character] = np.arange(256)
    return ids
