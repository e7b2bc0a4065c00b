"""Decoding one id at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from raybpe.errors import UsageError
from raybpe.given import items, whole_number
from raybpe.tokenizer.text import check_errors, decode_text, unfinished


class DecodeStream:
    """Text of ids as they come, never half a character.

    What `feed` returned so far, with what `flush` returns at the end, is what decoding all ids at
    once gives. Bytes that may still become a character are kept back: at most three.

    Args:
        tokens: id → bytes.
        errors: as for ``bytes.decode``.
        end_of_word: for vocabularies that mark the ends of words, as ``</w>``: the marker becomes
            a space, except at the very end. Text that may be the beginning of a marker is kept
            back too.

    >>> stream = DecodeStream({0: b"caf", 1: b"\\xc3", 2: b"\\xa9", 3: b"!"})
    >>> [stream.feed(number) for number in (0, 1, 2, 3)], stream.flush()
    (['caf', '', 'é', '!'], '')
    """

    def __init__(
        self, tokens: Mapping[int, bytes], errors: str = "replace", end_of_word: str | None = None
    ) -> None:
        check_errors(errors)
        self._tokens = tokens
        self._errors = errors
        self._marker = (end_of_word or "").encode()
        self._kept = b""

    def feed(self, number: int) -> str:
        """What `number` adds to the text that is certain.

        Raises:
            UsageError: the vocabulary has no such id.
        """
        if type(number) is not int:
            number = whole_number("an id", number)
        try:
            token = self._tokens[number]
        except KeyError:
            raise UsageError(f"id {number} is not in the vocabulary") from None
        data = self._kept + token
        if self._marker:
            return self._feed_marked(data)
        keep = unfinished(data)
        self._kept = data[len(data) - keep :]
        return decode_text(data[: len(data) - keep], self._errors)

    def flush(self) -> str:
        """What is left; the stream can then take the ids of another text."""
        data, self._kept = self._kept, b""
        if self._marker and data.endswith(self._marker):
            data = data[: -len(self._marker)]
        return decode_text(data, self._errors)

    def decode(self, ids: Iterable[int]) -> Iterator[str]:
        """The non-empty results of feeding each id, and of flushing."""
        return self._decode(items("ids", ids, "several integers"))

    def _decode(self, ids: Iterator[int]) -> Iterator[str]:
        for number in ids:
            if text := self.feed(number):
                yield text
        if text := self.flush():
            yield text

    def _feed_marked(self, data: bytes) -> str:
        """As `feed`; keeps back a marker at the end, whole or begun."""
        marker = self._marker
        sizes = range(min(len(marker), len(data)), 0, -1)
        keep = next((size for size in sizes if data.endswith(marker[:size])), 0)
        text = data[: len(data) - keep].replace(marker, b" ")
        if not keep:
            keep = unfinished(text)
            text = text[: len(text) - keep]
        self._kept = data[len(data) - keep :]
        return decode_text(text, self._errors)
