"""Documents that are already in this process: strings, bytes, columns of tables.

Nothing is held but the batch being made: 4 MB of text, or one document if that is longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from raybpe.block import Block
from raybpe.errors import InputError
from raybpe.inputs.documents import ReadStats, pack
from raybpe.inputs.pieces import READ_BYTES

SOURCE = "<iterator>"


def iterator_blocks(
    texts: Iterable[str | bytes], stats: ReadStats | None = None
) -> Iterator[Block]:
    """Blocks of strings (as UTF-8) or bytes; each item is a document, None counts as null.

    Raises:
        InputError: an item is neither; its position is named.
    """
    stats = ReadStats() if stats is None else stats
    batch: list[bytes] = []
    size = 0
    for number, text in enumerate(texts):
        if isinstance(text, str):
            # A lone surrogate becomes bytes that are not UTF-8: the policy decides about them.
            document = text.encode("utf-8", "surrogatepass")
        elif isinstance(text, (bytes, bytearray, memoryview)):
            document = bytes(text)
        elif text is None:
            stats.nulls += 1
            continue
        else:
            raise InputError(
                f"item {number:,} of the iterator is a {type(text).__name__}; give str or bytes, "
                "for example (row['text'] for row in rows)"
            )
        batch.append(document)
        size += len(document)
        if size >= READ_BYTES:
            yield _finish(batch, size, stats)
            batch, size = [], 0
    if batch:
        yield _finish(batch, size, stats)


def _finish(batch: list[bytes], size: int, stats: ReadStats) -> Block:
    stats.documents += len(batch)
    stats.text_bytes += size
    return pack(batch, SOURCE)
