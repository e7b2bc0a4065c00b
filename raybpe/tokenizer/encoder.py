"""Text to arrays of ids: chooses the kernel, hands out workers, cuts large texts for threads.

Any number of threads may use one `Encoder`; each call borrows workers, which keep their caches, and
gives them back. Texts are encoded where they lie; only what follows the last cut is copied, since
kernels read PADDING_BYTES past the end. Memory: the ids, and what `worker` says per thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import regex

from raybpe.block import PADDING_BYTES, Block
from raybpe.cores import cores
from raybpe.errors import UsageError
from raybpe.given import wrong_type
from raybpe.kernels import entries
from raybpe.kernels.encode_state import SLACK
from raybpe.kernels.entries import first_invalid
from raybpe.kernels.entry import address
from raybpe.pretokenize import pretokenizer
from raybpe.pretokenize.utf8 import clean_block
from raybpe.tokenizer.encoder_tables import EncoderTables, id_dtype
from raybpe.tokenizer.listed import listed_pieces
from raybpe.tokenizer.vocabulary import Vocabulary
from raybpe.tokenizer.worker import SMALL_TEXT, Ids, Worker

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern
    from raybpe.pretokenize.engines import Pretokenizer

STREAM_BYTES = 1 << 16  # text that `encode_iterable` gathers before it looks for a cut
THREADED_BYTES = 1 << 22  # texts below this are encoded by one thread
PART_BYTES = 1 << 22  # what a thread encodes at a time
GROUP_BYTES = 1 << 18  # texts of a batch that are encoded together


class Encoder:
    """See the module's docstring.

    Args:
        vocabulary: tokens and merges.
        pattern: how text is split into pretokens. Stretches that it does not match are pretokens
            too, so nothing is lost.
        ignore_merges: a pretoken that is a token becomes that token.
    """

    def __init__(self, vocabulary: Vocabulary, pattern: Pattern, ignore_merges: bool) -> None:
        self.vocabulary = vocabulary
        self.pattern = pattern
        self.dtype = id_dtype(vocabulary)
        self._all_specials = tuple(vocabulary.special_tokens)
        self._idle: list[Worker] = []
        texts = map(re.escape, self._all_specials)
        self._special = re.compile("|".join(texts) or r"(?!)").search
        scanner = pretokenizer(pattern, self._all_specials).scanner
        self._matcher = None if scanner else regex.compile(pattern.regex)
        driver = entries.encode[scanner.kind if scanner else "listed"]
        self._tables = EncoderTables(vocabulary, scanner, driver, ignore_merges)
        self._run = driver.function
        self._small_text = SMALL_TEXT if scanner else 0

    def encode_list(self, text: str | bytes, specials: tuple[str, ...] | None = None) -> list[int]:
        """Ids of one text as a list; the fast way for short ones.

        `specials` are the special tokens that count as such; None: all.
        """
        # What holds no special token is the same whichever count as such.
        if (
            type(text) is str
            and len(text) <= self._small_text
            and (specials is None or not self._special(text))
        ):
            try:
                data = text.encode()
            except UnicodeEncodeError:
                return _list(self.encode(text, specials))
            size = len(data)
            if 0 < size <= self._small_text:
                try:
                    worker = self._idle.pop()  # as in `_borrow`, without a call
                except IndexError:
                    worker = self._borrow()
                worker.text_view[:size] = data
                count = self._run(worker.argument, size)
                if count < 0:
                    count = worker.finish(count)
                ids: list[int] = worker.ids_view[:count].tolist()
                self._idle.append(worker)
                return ids
        return _list(self.encode(text, specials))

    def encode(
        self,
        text: str | bytes | npt.NDArray[np.uint8],
        specials: tuple[str, ...] | None = None,
        threads: int | None = None,
    ) -> Ids:
        """Ids of one text, as `encode_list`."""
        valid = False
        if isinstance(text, str):
            encoded = _valid_bytes(text)
            valid = encoded is not None
            data = np.frombuffer(encoded or text.encode("utf-8", "surrogatepass"), np.uint8)
        else:
            data = text_bytes(text)
        specials = self._all_specials if specials is None else specials
        cutter = pretokenizer(self.pattern, specials)
        if self._matcher:
            return self._encode_listed(data, specials)
        parts = list(_parts(data, cutter))
        threads = _thread_count(threads, len(data), len(parts))
        if threads == 1:
            return self._encode_parts(data, parts, specials, valid)
        with ThreadPoolExecutor(threads) as pool:
            done = pool.map(lambda part: self._encode_parts(data, [part], specials, valid), parts)
            return np.concatenate(list(done))

    def count(self, text: str | bytes) -> int:
        """How many ids a text has."""
        return len(self.encode(text))

    def encode_iterable(
        self, texts: Iterable[str | bytes], specials: tuple[str, ...] | None = None
    ) -> Iterator[int]:
        """Ids of the joined texts, in memory set by the texts, not by how many there are.

        Text is gathered until STREAM_BYTES hold a place where it can be cut without changing the
        ids. Only a pattern that runs on `regex` may have none.
        """
        cutter = pretokenizer(self.pattern, self._all_specials if specials is None else specials)
        buffer = bytearray()
        wanted = STREAM_BYTES
        for text in texts:
            if isinstance(text, str):
                buffer += text.encode("utf-8", "surrogatepass")
            else:
                buffer += text_bytes(text).data
            if len(buffer) < wanted:
                continue
            data = np.frombuffer(bytes(buffer), np.uint8)
            cut = cutter.last_cut(data, 0, len(data))
            if cut is None:
                wanted = 2 * len(buffer)
                continue
            yield from self.encode(data[:cut].tobytes(), specials).tolist()
            del buffer[:cut]
            wanted = max(STREAM_BYTES, 2 * len(buffer))
        yield from self.encode(bytes(buffer), specials).tolist()

    def encode_batch(
        self,
        texts: Sequence[str | bytes],
        specials: tuple[str, ...] | None = None,
        threads: int | None = None,
    ) -> list[list[int]]:
        """Ids of each text."""
        groups = list(_groups(texts))
        threads = _thread_count(threads, GROUP_BYTES * len(groups), len(groups))
        if threads == 1:
            lists = [self._encode_group(group, specials) for group in groups]
        else:
            with ThreadPoolExecutor(threads) as pool:
                lists = list(pool.map(lambda group: self._encode_group(group, specials), groups))
        return [ids for group in lists for ids in group]

    def encode_documents(self, block: Block) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Ids of the documents of a block one after the other, and where each ends in them.

        What lies between documents is left out. One thread; one kernel call if all are UTF-8.
        """
        data, starts, ends = block.data, block.starts, block.ends
        invalid = first_invalid(address(data), address(starts), address(ends), len(starts)) >= 0
        if self._matcher or invalid:
            found = [self.encode(data[a:b], threads=1) for a, b in zip(starts, ends, strict=True)]
            token_ends = np.cumsum([len(ids) for ids in found], dtype=np.int64)
            return np.concatenate([self._output(0)[:0], *found]), token_ends
        token_ends = np.zeros(len(starts), np.int64)
        with self._worker(self._all_specials) as worker:
            output = self._output(int((ends - starts).sum()))
            ids, used = worker.encode_documents(
                data, starts, ends, None, output, token_ends=token_ends
            )
        return ids[:used], token_ends

    def _encode_group(
        self, texts: Sequence[str | bytes], specials: tuple[str, ...] | None
    ) -> list[list[int]]:
        """Ids of some texts, in one kernel call for those that are valid UTF-8."""
        encoded = [_valid_bytes(text) for text in texts]
        if self._matcher or len(texts) == 1 or None in encoded:
            return [self.encode_list(text, specials) for text in texts]
        data = np.frombuffer(b"".join(encoded) + bytes(PADDING_BYTES), np.uint8)  # type: ignore[arg-type]
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in encoded if text is not None], out=bounds[1:])
        size = int(bounds[-1])
        token_ends = np.zeros(len(texts), np.int64)
        with self._worker(self._all_specials if specials is None else specials) as worker:
            ids, used = worker.encode_documents(
                data,
                bounds[:-1],
                bounds[1:],
                None,
                self._output(size),
                token_ends=token_ends,
            )
        flat = ids[:used].tolist()
        ends = token_ends.tolist()
        return [flat[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def _encode_parts(
        self,
        data: npt.NDArray[np.uint8],
        parts: Sequence[tuple[int, int]],
        specials: tuple[str, ...],
        valid: bool,
    ) -> Ids:
        """Ids of consecutive parts, by one worker."""
        output = self._output(parts[-1][1] - parts[0][0])
        used = 0
        with self._worker(specials) as worker:
            for start, end in parts:
                block = _block(data, start, end)
                span = int(block.starts[0]), int(block.ends[0])
                if not valid:
                    block = _valid_documents(block)
                output, used = worker.encode_documents(
                    block.data, block.starts, block.ends, span, output, used
                )
        output.resize(used, refcheck=False)
        return output

    def _encode_listed(self, data: npt.NDArray[np.uint8], specials: tuple[str, ...]) -> Ids:
        """Ids of a text whose pretokens only `regex` can find."""
        block = _valid_documents(_block(data, 0, len(data)))
        found: list[Ids] = []
        at = 0
        with self._worker(()) as worker:
            for piece in listed_pieces(block, specials, self._matcher):
                worker.use_listed(piece.entries)
                starts, ends = np.array([piece.start]), np.array([piece.end])
                ids, used = worker.encode_documents(
                    block.data, starts, ends, (at, piece.end), self._output(piece.end - at)
                )
                found.append(ids[:used])
                at = piece.end
                if piece.special is not None:
                    number = self.vocabulary.special_tokens[piece.special]
                    found.append(np.array([number], self.dtype))
                    at += len(piece.special.encode())
            worker.use_listed(np.zeros(2, np.int64))
            rest = np.array([len(data)])
            ids, used = worker.encode_documents(
                block.data, rest, rest, (at, len(data)), self._output(len(data) - at)
            )
            found.append(ids[:used])
        return np.concatenate(found)

    def _output(self, size: int) -> Ids:
        """Room for the ids of so many bytes, or for most texts of that size; it can grow."""
        return np.empty(min(size, size // 3 + STREAM_BYTES) + 2 * SLACK, self.dtype)

    def _borrow(self) -> Worker:
        """A worker that no other thread has; put it back into `_idle`."""
        try:
            return self._idle.pop()
        except IndexError:
            worker = Worker(self._tables)
            worker.use_specials(*self._compiled(self._all_specials))
            return worker

    @contextmanager
    def _worker(self, specials: tuple[str, ...]) -> Iterator[Worker]:
        """A worker that cuts out these special tokens."""
        worker = self._borrow()
        if specials != self._all_specials:
            worker.use_specials(*self._compiled(specials))
        yield worker
        if specials != self._all_specials:
            worker.use_specials(*self._compiled(self._all_specials))
        self._idle.append(worker)

    def _compiled(
        self, specials: tuple[str, ...]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Special tokens and their ids as kernels take them."""
        ids = [self.vocabulary.special_tokens[text] for text in specials]
        return pretokenizer(self.pattern, specials).specials, np.array(ids, np.int32)


def text_bytes(text: bytes | npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The bytes of what gives them as a buffer, where they lie if they are in one piece.

    Raises:
        UsageError: it gives no bytes, or its items are wider, so that it is no text.
    """
    try:
        view = memoryview(text)  # type: ignore[arg-type]  # mypy knows no arrays as buffers
    except TypeError:
        raise wrong_type("a text", text, "str or bytes") from None
    if view.itemsize != 1:
        raise UsageError(
            f"a text is str or bytes; items of {view.itemsize} bytes each (format "
            f"{view.format!r}) are not"
        )
    return np.frombuffer(view if view.c_contiguous else view.tobytes(), np.uint8)


def _block(data: npt.NDArray[np.uint8], start: int, end: int) -> Block:
    """One document, where it lies if kernels may read past it there, else a copy."""
    if end + PADDING_BYTES <= len(data):
        return Block(data, np.array([start]), np.array([end]))
    padded = np.zeros(end - start + PADDING_BYTES, np.uint8)
    padded[: end - start] = data[start:end]
    return Block(padded, np.zeros(1, np.int64), np.array([end - start]))


def _list(ids: Ids) -> list[int]:
    numbers: list[int] = ids.tolist()
    return numbers


def _valid_documents(block: Block) -> Block:
    """The block with invalid bytes between its documents instead of in them."""
    clean, _ = clean_block(block, "keep")
    return clean


def _parts(data: npt.NDArray[np.uint8], cutter: Pretokenizer) -> Iterator[tuple[int, int]]:
    """Stretches of about PART_BYTES that can be encoded as texts of their own."""
    start = 0
    while len(data) - start > 2 * PART_BYTES:
        cut = cutter.next_cut(data, start + PART_BYTES, len(data), True)
        if cut is None or cut >= len(data):
            break
        yield start, cut
        start = cut
    yield start, len(data)


def _groups(texts: Sequence[str | bytes]) -> Iterator[Sequence[str | bytes]]:
    """Runs of texts of about GROUP_BYTES together."""
    first = size = 0
    for index, text in enumerate(texts):
        size += len(text if isinstance(text, str) else text_bytes(text))
        if size >= GROUP_BYTES:
            yield texts[first : index + 1]
            first, size = index + 1, 0
    if first < len(texts):
        yield texts[first:]


def _valid_bytes(text: str | bytes) -> bytes | None:
    """The text as UTF-8, or None if it is not (or is neither str nor bytes)."""
    try:
        if isinstance(text, str):
            return text.encode()
        if not isinstance(text, (bytes, bytearray)):  # another buffer
            return None
        if not text.isascii():
            text.decode()
        return text
    except UnicodeError:
        return None


def _thread_count(wanted: int | None, size: int, parts: int) -> int:
    """Threads for `size` bytes in `parts` parts: by default all cores if the text is large."""
    if wanted is None:
        wanted = cores() if size >= THREADED_BYTES else 1
    return max(1, min(wanted, parts))
