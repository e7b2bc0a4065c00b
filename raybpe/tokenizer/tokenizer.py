"""The tokenizer in use: text to ids and back.

A `Tokenizer` is immutable and safe to use from several threads. Encoding never loses anything:
``decode_bytes(encode(b)) == b`` for all bytes, ``decode(encode(s)) == s`` for every str.

Which text becomes a special token is the CS336 rule unless said otherwise: every declared special
token always does, the longest wins where several begin at the same place, and with none declared
all text is ordinary. Bytes that are not UTF-8 are tokens of one byte each and, like special
tokens, separate the texts around them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from raybpe.errors import UsageError
from raybpe.tokenizer.plain import PlainEncoder
from raybpe.tokenizer.vocabulary import SpecialTokens, Vocabulary

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern

AllowedSpecial = Literal["all"] | Collection[str]


class Tokenizer:
    """A byte-level BPE tokenizer.

    Args:
        vocab: id → bytes. Must hold all 256 single bytes; ids may have gaps.
        merges: pairs of byte strings in rank order.
        special_tokens: texts that always become one id, each with the id that `vocab` gives to
            its bytes or else the next free one; or {text: id}. None: all text is ordinary.
        pattern: a named pattern, a regex, or a `Pattern`.
        ignore_merges: a pretoken that is a token becomes that token, whatever the merges say (as
            in Llama 3 and tiktoken).

    Raises:
        FormatError: the vocabulary lacks a byte, a merge is listed twice or uses unknown tokens,
            or a special token is unusable.
        PatternError: the pattern cannot be read.
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Iterable[tuple[bytes, bytes]],
        special_tokens: SpecialTokens | None = None,
        *,
        pattern: str | Pattern = "gpt2",
        ignore_merges: bool = False,
    ) -> None:
        from raybpe.pretokenize import resolve_pattern

        self.pattern: Pattern = resolve_pattern(pattern) if isinstance(pattern, str) else pattern
        self.vocabulary = Vocabulary(vocab, merges, special_tokens)
        self.ignore_merges = ignore_merges
        self._encoder = PlainEncoder(self.vocabulary, self.pattern.regex, ignore_merges)

    @property
    def vocab(self) -> dict[int, bytes]:
        """Id → bytes of every token, special ones included, in id order."""
        return self.vocabulary.tokens

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """Pairs of bytes in rank order."""
        return self.vocabulary.merges

    @property
    def special_tokens(self) -> dict[str, int]:
        """Special token → id, in id order."""
        return self.vocabulary.special_tokens

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return len(self.vocabulary.tokens)

    def encode(
        self,
        text: str | bytes,
        *,
        allowed_special: AllowedSpecial = "all",
        disallowed_special: AllowedSpecial = (),
    ) -> list[int]:
        """Ids of a text."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        allowed = set(self.special_tokens if allowed_special == "all" else allowed_special)
        return self._encoder.encode(data, allowed)

    def encode_batch(
        self, texts: Iterable[str | bytes], *, threads: int | None = None
    ) -> list[list[int]]:
        """Ids of each text."""
        return [self.encode(text) for text in texts]

    def encode_iterable(self, texts: Iterable[str]) -> Iterator[int]:
        """Ids of the joined text."""
        yield from self.encode("".join(texts))

    def encode_to_numpy(self, text: str | bytes, *, threads: int | None = None) -> npt.NDArray[Any]:
        """Ids as an array: uint16 when every id fits, else uint32."""
        dtype = np.uint16 if self.vocabulary.id_limit <= 1 << 16 else np.uint32
        return np.array(self.encode(text), dtype)

    def count_tokens(self, text: str | bytes) -> int:
        """How many ids `text` has."""
        return len(self.encode(text))

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Bytes of some ids."""
        tokens = self.vocabulary.tokens
        try:
            return b"".join([tokens[number] for number in ids])
        except KeyError as error:
            raise UsageError(f"id {error.args[0]} is not in the vocabulary") from None

    def decode(self, ids: Iterable[int], errors: str = "replace") -> str:
        """Text of some ids."""
        return self.decode_bytes(ids).decode("utf-8", errors)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Tokenizer:
        """Read a tokenizer in any format: a folder, tokenizer.json, .tiktoken, GPT-2 files, …"""
        from raybpe.formats import read_tokenizer

        return read_tokenizer(path)

    def save(self, path: str | PathLike[str]) -> None:
        """Write every format into the folder `path`, load each back and compare."""
        from raybpe.formats import write_tokenizer

        write_tokenizer(self, path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return (
            self.vocabulary == other.vocabulary
            and self.pattern.regex == other.pattern.regex
            and self.ignore_merges == other.ignore_merges
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        name = self.pattern.name or self.pattern.regex
        return (
            f"Tokenizer(vocab_size={self.vocab_size}, special_tokens={len(self.special_tokens)}, "
            f"pattern={name!r})"
        )
