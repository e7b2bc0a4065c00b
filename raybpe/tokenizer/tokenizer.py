"""The tokenizer in use: text to ids and back.

A `Tokenizer` never changes and is safe to use from several threads. Encoding loses nothing:
``decode_bytes(encode(b)) == b`` for all bytes, ``decode(encode(s)) == s`` for every str.

Which text becomes a special token is the CS336 rule unless a call says otherwise: every declared
special token always does, the longest wins where several begin at the same place, and with none
declared all text is ordinary. Bytes that are not UTF-8 (lone surrogates of a str among them) are
tokens of one byte each and, like special tokens, separate the texts around them.

Constructing one loads no kernel; the first call that encodes does.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from raybpe.block import Block, checked_spans
from raybpe.errors import UsageError
from raybpe.given import count, flag, items, probability, quoted, several, whole_number, wrong_type
from raybpe.tokenizer.special import SpecialChoice, choose_specials
from raybpe.tokenizer.stream import DecodeStream
from raybpe.tokenizer.text import check_errors, decode_text, unit_starts
from raybpe.tokenizer.vocabulary import Merges, SpecialTokens, Vocabulary

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern
    from raybpe.tokenizer.dropout import DropoutEncoder
    from raybpe.tokenizer.encoder import Encoder

_TEXTS = "several texts (str or bytes)"
# What `encode` takes unless a call says otherwise.
_ALL: SpecialChoice = "all"
_NONE: SpecialChoice = ()
_NO_DROPOUT = 0.0
_REPLACE = "replace"  # what `decode` does
_IDS_AT_A_TIME = 1 << 20  # of an array that is decoded


class Tokenizer:
    """A byte-level BPE tokenizer.

    Args:
        vocab: id → bytes. Must hold all 256 single bytes; ids may have gaps.
        merges: pairs of byte strings in rank order; or an integer array (merges, 3) of the ids of
            left, right, and what they make, as in ``vocabulary.merge_ids``.
        special_tokens: texts that always become one id, each with the id that `vocab` gives to
            its bytes or else the next free one; or {text: id}. None: all text is ordinary.
        pattern: a named pattern, a regex, or a `Pattern`.
        ignore_merges: a pretoken that is a token becomes that token, whatever the merges say (as
            in Llama 3 and tiktoken).

    Attributes:
        vocabulary: the checked tables behind `vocab`, `merges` and `special_tokens`.
        pattern: how text is split into pretokens. Stretches that it does not match are pretokens
            as well.

    Raises:
        FormatError: the vocabulary lacks a byte, a merge is listed twice or uses unknown tokens,
            or a special token is unusable.
        PatternError: the pattern cannot be read.
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Merges,
        special_tokens: SpecialTokens | None = None,
        *,
        pattern: str | Pattern = "gpt2",
        ignore_merges: bool = False,
    ) -> None:
        from raybpe.pretokenize.parse import check
        from raybpe.pretokenize.patterns import Pattern, resolve_pattern

        self.pattern: Pattern = (
            pattern if isinstance(pattern, Pattern) else resolve_pattern(pattern)
        )
        if self.pattern.name is None:
            check(self.pattern.regex)
        self.vocabulary = Vocabulary(vocab, merges, special_tokens)
        self.ignore_merges = flag("ignore_merges", ignore_merges)

    @cached_property
    def _encoder(self) -> Encoder:
        from raybpe.tokenizer.encoder import Encoder

        return Encoder(self.vocabulary, self.pattern, self.ignore_merges)

    @cached_property
    def _dropout_encoder(self) -> DropoutEncoder:
        from raybpe.tokenizer.dropout import DropoutEncoder

        return DropoutEncoder(self.vocabulary, self.pattern)

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
        allowed_special: SpecialChoice = _ALL,
        disallowed_special: SpecialChoice = _NONE,
        dropout: float = _NO_DROPOUT,
        seed: int | None = None,
    ) -> list[int]:
        """Ids of a text.

        Args:
            text: str, or bytes that need not be UTF-8.
            allowed_special: special tokens that become their id: "all", or a set.
            disallowed_special: special tokens that are refused: "all" (those not allowed), or a
                set. Text of special tokens that are in neither is ordinary text. tiktoken's own
                defaults are ``allowed_special=set(), disallowed_special="all"``.
            dropout: BPE-dropout for training models: before each merge, every pair that could be
                merged is left out of this step with this probability. 0 leaves out none, with 1
                all text becomes single bytes. Slow: plain Python.
            seed: for `dropout`; the same seed gives the same ids, None others in each call.

        Raises:
            UsageError: the text holds a disallowed special token, or `dropout` is not within 0
                and 1.
        """
        if (  # nothing was given: the fast way, which need not look at any of it
            allowed_special is _ALL
            and disallowed_special is _NONE
            and dropout is _NO_DROPOUT
            and seed is None
        ):
            return self._encoder.encode_list(text)
        dropout = probability("dropout", dropout)
        if seed is not None:
            seed = whole_number("seed", seed)
        if not isinstance(text, (str, bytes)):  # another buffer
            from raybpe.tokenizer.encoder import text_bytes

            text = text_bytes(text).tobytes()
        specials = choose_specials(text, self.special_tokens, allowed_special, disallowed_special)
        if dropout:
            specials = tuple(self.special_tokens) if specials is None else specials
            return self._dropout_encoder.encode(text, specials, dropout, seed)
        return self._encoder.encode_list(text, specials)

    def encode_ordinary(self, text: str | bytes) -> list[int]:
        """Ids of a text in which nothing is special."""
        return self._encoder.encode_list(text, ())

    def encode_batch(
        self, texts: Iterable[str | bytes], *, threads: int | None = None
    ) -> list[list[int]]:
        """Ids of each text; `threads` None takes all cores where it pays."""
        if isinstance(texts, str):
            raise UsageError("encode_batch takes several texts; a single one is for encode")
        return self._encoder.encode_batch(
            several("texts", texts, _TEXTS), threads=_thread_count(threads)
        )

    def encode_iterable(self, texts: Iterable[str | bytes]) -> Iterator[int]:
        """Ids of the joined texts, one by one, in memory set by one text.

        Up to 64 kB of text are gathered before the first id comes. Only a pattern that runs on the
        `regex` package needs more, when special tokens are further apart.
        """
        if isinstance(texts, (bytes, bytearray)):
            raise wrong_type("texts", texts, _TEXTS)
        return self._encoder.encode_iterable(items("texts", texts, _TEXTS))

    def encode_to_numpy(
        self, text: str | bytes | npt.NDArray[np.uint8], *, threads: int | None = None
    ) -> npt.NDArray[np.uint16 | np.uint32]:
        """Ids as an array of uint16 when every id of the vocabulary fits, else uint32.

        Takes what gives its bytes as a buffer, without a copy: bytes, memory maps, uint8 arrays.
        `threads` None takes all cores for large texts.
        """
        return self._encoder.encode(text, threads=_thread_count(threads))

    def encode_documents(
        self, block: Block
    ) -> tuple[npt.NDArray[np.uint16 | np.uint32], npt.NDArray[np.int64]]:
        """Ids of a block's documents one after the other, and where each document ends in them."""
        if not isinstance(block, Block):
            raise wrong_type("block", block, "a raybpe.block.Block")
        arrays = {"data": block.data, "starts": block.starts, "ends": block.ends}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                raise wrong_type(f"{name} of the block", array, "a numpy array")
        try:
            starts, ends = checked_spans(block)
        except (TypeError, ValueError) as error:
            raise UsageError(f"the block cannot be encoded: it is {error}") from None
        return self._encoder.encode_documents(Block(block.data, starts, ends))

    def count_tokens(self, text: str | bytes) -> int:
        """How many ids `text` has."""
        return self._encoder.count(text)

    def decode_bytes(self, ids: Iterable[int] | npt.NDArray[Any]) -> bytes:
        """Bytes of some ids.

        Raises:
            UsageError: the vocabulary has no such id.
        """
        if isinstance(ids, np.ndarray):
            if ids.size and ids.dtype.kind not in "iuO":
                raise UsageError(f"cannot decode: ids are integers, not an array of {ids.dtype}")
            flat = ids.ravel()
            parts = range(0, len(flat), _IDS_AT_A_TIME)
            return b"".join(
                [self.decode_bytes(flat[at : at + _IDS_AT_A_TIME].tolist()) for at in parts]
            )
        try:
            return b"".join(map(self.vocabulary.tokens.__getitem__, ids))
        except KeyError as error:
            raise UsageError(
                f"cannot decode: id {quoted(error.args[0])} is not in the vocabulary"
            ) from None
        except TypeError as error:
            raise UsageError(f"cannot decode: ids are several integers ({error})") from None

    def decode(self, ids: Iterable[int] | npt.NDArray[Any], errors: str = _REPLACE) -> str:
        """Text of some ids.

        `errors` as for ``bytes.decode``, except that "replace" gives lone surrogates back that
        `encode` was given.
        """
        if errors is not _REPLACE:
            check_errors(errors)
        return decode_text(self.decode_bytes(ids), errors)

    def decode_batch(
        self, batch: Iterable[Iterable[int] | npt.NDArray[Any]], errors: str = _REPLACE
    ) -> list[str]:
        """Text of each sequence of ids."""
        check_errors(errors)
        several_ids = items("batch", batch, "several sequences of ids")
        return [self.decode(ids, errors) for ids in several_ids]

    def decode_with_offsets(self, ids: Iterable[int]) -> tuple[str, list[int]]:
        """Text, and for each id the index of the character that holds its first byte."""
        tokens = [self.decode_bytes([one]) for one in items("ids", ids, "several integers")]
        data = b"".join(tokens)
        starts = np.cumsum([0, *map(len, tokens)])[:-1]
        places = np.searchsorted(unit_starts(data), starts, side="right") - 1
        return decode_text(data), places.tolist()

    def decode_stream(self, errors: str = "replace") -> DecodeStream:
        """A decoder that is fed one id at a time and never gives out half a character."""
        return DecodeStream(self.vocabulary.tokens, errors)

    def token_bytes(self, number: int) -> bytes:
        """Bytes of one id."""
        return self.decode_bytes([whole_number("number", number)])

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Tokenizer:
        """Read a tokenizer in any format: a folder, tokenizer.json, .tiktoken, GPT-2 files, …

        `pattern` and `special_tokens`, text → id, are for files that do not hold them: a bare
        ``.tiktoken`` and GPT-2's.
        """
        from raybpe.formats import read_tokenizer

        return read_tokenizer(path, pattern=pattern, special_tokens=special_tokens)

    def save(self, path: str | PathLike[str]) -> None:
        """Write every format into the folder `path`, load each back and compare."""
        from raybpe.formats import write_tokenizer

        write_tokenizer(self, path)

    def to_hf(self) -> Any:
        """The same as a ``tokenizers.Tokenizer``; FormatError where that cannot hold it."""
        from raybpe.formats.convert import to_hf

        return to_hf(self)

    def to_tiktoken(self) -> Any:
        """The same as a ``tiktoken.Encoding``; FormatError where that cannot hold it."""
        from raybpe.formats.convert import to_tiktoken

        return to_tiktoken(self)

    def to_transformers(self) -> Any:
        """The same as a ``transformers`` fast tokenizer; FormatError where that cannot hold it."""
        from raybpe.formats.convert import to_transformers

        return to_transformers(self)

    def fingerprint(self) -> str:
        """32 hex digits that are equal exactly when two tokenizers are."""
        content = f"{self.vocabulary.fingerprint()} {self.ignore_merges} {self.pattern.regex}"
        return hashlib.sha256(content.encode()).hexdigest()[:32]

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

    def _repr_html_(self) -> str:
        rows = {
            "ids": f"{self.vocab_size:,}",
            "merges": f"{len(self.vocabulary.merge_ids):,}",
            "special tokens": ", ".join(self.special_tokens) or "none",
            "pattern": self.pattern.name or self.pattern.regex,
        }
        cells = "".join(
            f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in rows.items()
        )
        return f"<table><caption>raybpe.Tokenizer</caption>{cells}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            self.vocabulary.tokens,
            self.vocabulary.merge_ids.tobytes(),
            self.special_tokens,
            self.pattern,
            self.ignore_merges,
        )


def _thread_count(threads: int | None) -> int | None:
    return None if threads is None else count("threads", threads)


def _rebuild(
    vocab: dict[int, bytes],
    merge_ids: bytes,
    special_tokens: dict[str, int],
    pattern: Pattern,
    ignore_merges: bool,
) -> Tokenizer:
    """Unpickle."""
    merges = np.frombuffer(merge_ids, np.int32).reshape(-1, 3)
    return Tokenizer(vocab, merges, special_tokens, pattern=pattern, ignore_merges=ignore_merges)
