"""Making blocks valid UTF-8, which is all that scanners accept.

Valid is what Python's decoder accepts. What happens to the rest is the user's policy:

- `error`: stop, and say where;
- `replace`, `skip`: exactly what ``bytes.decode`` does with "replace" and "ignore";
- `keep`: each invalid byte cuts the text, as a special token does, and is a pretoken of its own.
  Invalid bytes are those that ``bytes.decode`` with "surrogateescape" escapes.

A valid block, the common case, passes through at several GB/s and is not copied.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from raybpe.block import PADDING_BYTES, Block
from raybpe.config import InvalidUtf8
from raybpe.errors import InvalidUtf8Error
from raybpe.kernels.entries import first_invalid, split_invalid
from raybpe.kernels.entry import address

Integers = npt.NDArray[np.int64]

_PYTHON_NAME = {"replace": "replace", "skip": "ignore"}


def clean_block(block: Block, policy: InvalidUtf8) -> tuple[Block, Integers]:
    """A block of valid UTF-8, and how often each byte value occurred as an invalid byte.

    Under `keep` the result has more documents, over the same data: the valid text between invalid
    bytes. Under `replace` and `skip` it has new data, which no longer maps to offsets in the
    source. The histogram, int64 (256,), counts invalid bytes under every policy; under `keep`
    they are pretokens that remain to be counted.

    Raises:
        InvalidUtf8Error: under `error`, for the first invalid byte.
    """
    starts = np.ascontiguousarray(block.starts, np.int64)
    ends = np.ascontiguousarray(block.ends, np.int64)
    histogram = np.zeros(256, np.int64)
    invalid = list(_invalid_documents(block.data, starts, ends))
    if not invalid:
        return block, histogram
    if policy == "error":
        _refuse(block, invalid[0])

    new_starts: list[Integers] = []
    new_ends: list[Integers] = []
    texts: list[bytes] = []
    size = 0  # bytes in `texts`
    following = 0  # first document that is not dealt with yet
    for document in [*invalid, len(starts)]:
        if document > following:  # valid ones
            shift = np.int64(0)
            if policy != "keep":
                first, last = starts[following], ends[document - 1]
                shift = size - first
                texts.append(block.data[first:last].tobytes())
                size += len(texts[-1])
            new_starts.append(starts[following:document] + shift)
            new_ends.append(ends[following:document] + shift)
        if document == len(starts):
            break
        following = document + 1
        runs = _split(block.data, starts[document], ends[document], histogram)
        if policy == "keep":
            new_starts.append(runs[0])
            new_ends.append(runs[1])
        else:
            text = block.data[starts[document] : ends[document]].tobytes()
            texts.append(text.decode("utf-8", _PYTHON_NAME[policy]).encode())
            new_starts.append(np.array([size], np.int64))
            size += len(texts[-1])
            new_ends.append(np.array([size], np.int64))
    block = replace(block, starts=np.concatenate(new_starts), ends=np.concatenate(new_ends))
    if policy != "keep":
        texts.append(bytes(PADDING_BYTES))
        block = replace(block, data=np.frombuffer(b"".join(texts), np.uint8), offset=None)
    return block, histogram


def _invalid_documents(
    data: npt.NDArray[np.uint8], starts: Integers, ends: Integers
) -> Iterator[int]:
    """Indices of the documents that are not valid UTF-8."""
    document = 0
    while document < len(starts):
        found = first_invalid(
            address(data),
            address(starts[document:]),
            address(ends[document:]),
            len(starts) - document,
        )
        if found < 0:
            return
        yield document + found
        document += found + 1


def _split(
    data: npt.NDArray[np.uint8], start: int, end: int, histogram: Integers
) -> tuple[Integers, Integers]:
    """Starts and ends of the valid runs in data[start:end]; adds to the histogram."""
    starts = np.empty(end - start + 1, np.int64)
    ends = np.empty(end - start + 1, np.int64)
    runs = split_invalid(
        address(data), start, end, address(starts), address(ends), address(histogram)
    )
    return starts[:runs], ends[:runs]


def _refuse(block: Block, document: int) -> NoReturn:
    start = int(block.starts[document])
    text = block.data[start : block.ends[document]].tobytes()
    try:
        text.decode()
    except UnicodeDecodeError as error:
        bad, reason = error.start, error.reason
    if block.offset is None:
        where = f"byte {bad} of a record"
    else:
        where = f"byte offset {block.offset + start + bad}"
    raise InvalidUtf8Error(
        f"{block.source}: {where} is not UTF-8 ({reason}: 0x{text[bad]:02x}); convert the input "
        "or use --invalid-utf8 replace, skip or keep"
    )
