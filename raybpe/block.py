"""Blocks: the documents of one piece of input, as the kernels take them.

A block is what a reader hands to a pretokenizer. Document i is ``data[starts[i]:ends[i]]``;
documents may touch, have gaps between them, or be empty, but never overlap and are in order.
No pretoken crosses a document's end. A plain-text block is usually one document that begins and
ends at safe cuts (`pretokenize.cuts`), so it can be counted as if it were a text of its own.

Kernels load 64 bytes at a time, so PADDING_BYTES readable bytes must follow the last document.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

PADDING_BYTES = 128  # two 64-byte vector loads past the end


@dataclass(frozen=True)
class Block:
    """Documents in one buffer.

    Attributes:
        data: uint8, at least ``ends[-1] + PADDING_BYTES`` long.
        starts: int64 (n,), first byte of each document in `data`.
        ends: int64 (n,), one past the last byte of each document.
        source: name of the file or other origin, for messages.
        offset: byte offset of ``data[0]`` in `source`, taken out of its compression; None where
            bytes do not map to offsets in the source (JSON strings, table columns).
        continued: the first document goes on where the block before ended: a text that was cut
            for reading. Such a cut changes no pretoken.
    """

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    source: str = "<memory>"
    offset: int | None = 0
    continued: bool = False

    @classmethod
    def of(cls, text: bytes, source: str = "<memory>") -> "Block":
        """Copy one document into a padded block."""
        data = np.zeros(len(text) + PADDING_BYTES, np.uint8)
        data[: len(text)] = np.frombuffer(text, np.uint8)
        return cls(data, np.zeros(1, np.int64), np.full(1, len(text), np.int64), source)


def checked_spans(block: Block) -> tuple[Integers, Integers]:
    """Starts and ends of a block's documents, safe for kernels that check nothing.

    Raises:
        ValueError: they are not.
    """
    starts = np.ascontiguousarray(block.starts, np.int64)
    ends = np.ascontiguousarray(block.ends, np.int64)
    if len(starts) != len(ends):
        raise ValueError(f"a block with {len(starts)} starts and {len(ends)} ends")
    if len(starts) and (
        starts.min() < 0
        or (ends < starts).any()
        or ends.max() + PADDING_BYTES > block.data.size
        or block.data.dtype != np.uint8
        or not block.data.flags.c_contiguous
    ):
        raise ValueError(
            "a block whose documents are not spans of its contiguous uint8 data with "
            f"{PADDING_BYTES} bytes after the last"
        )
    return starts, ends
