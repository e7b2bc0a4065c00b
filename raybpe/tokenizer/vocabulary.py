"""A checked vocabulary: which bytes each id stands for, and which pairs of ids merge into which.

`Vocabulary` is what every part of the tokenizer shares and never changes. Ids are arbitrary: gaps,
any order, and several ids for the same bytes are allowed, because published vocabularies have
them. It is refused (`FormatError`) when it could not encode every text exactly: a byte without a
token, a merge of unknown tokens, a merge listed twice.

Memory: the mappings given, and 12 bytes per merge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from raybpe.config import MAX_VOCAB_SIZE
from raybpe.errors import FormatError

SpecialTokens = Sequence[str] | Mapping[str, int]


class Vocabulary:
    """Tokens, merges and special tokens, checked.

    Attributes:
        tokens: id → bytes, in id order, special tokens included.
        merges: (left bytes, right bytes) in rank order.
        special_tokens: text → id, in id order.
        ordinary: bytes → id of every token that is not a special token. Of several ids with the
            same bytes the lowest is used.
        merge_ids: int32 (merges, 3): left id, right id, id of the result, in rank order.
        byte_ids: int32 (256,): id of each single byte.
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Iterable[tuple[bytes, bytes]],
        special_tokens: SpecialTokens | None = None,
    ) -> None:
        _check_tokens(vocab)
        tokens = dict(sorted(vocab.items()))
        specials = _place_specials(tokens, special_tokens)
        self.special_tokens: dict[str, int] = dict(sorted(specials.items(), key=lambda s: s[1]))
        self.tokens: dict[int, bytes] = (
            tokens if len(tokens) == len(vocab) else dict(sorted(tokens.items()))
        )
        special_ids = set(specials.values())
        self.ordinary: dict[bytes, int] = {
            token: number
            for number, token in reversed(self.tokens.items())
            if number not in special_ids
        }
        # A special token's text may also be what merges make, or a single byte, under one id.
        known = {self.tokens[number]: number for number in special_ids} | self.ordinary
        missing = [byte for byte in range(256) if bytes([byte]) not in known]
        if missing:
            names = ", ".join(f"0x{byte:02x}" for byte in missing[:16])
            more = f" and {len(missing) - 16} more" if len(missing) > 16 else ""
            raise FormatError(
                f"the vocabulary has no token for the single bytes {names}{more}, so it cannot "
                "encode every text; a byte-level vocabulary holds all 256 bytes"
            )
        self.byte_ids: npt.NDArray[np.int32] = np.array(
            [known[bytes([byte])] for byte in range(256)], np.int32
        )
        self.merges: list[tuple[bytes, bytes]] = [tuple(merge) for merge in merges]  # type: ignore[misc]
        self.merge_ids: npt.NDArray[np.int32] = _merge_ids(self.merges, known)

    @property
    def id_limit(self) -> int:
        """One more than the highest id."""
        return next(reversed(self.tokens)) + 1

    def fingerprint(self) -> str:
        """32 hex digits that are equal exactly when tokens, merges and special tokens are."""
        digest = hashlib.sha256()
        for number, token in self.tokens.items():
            digest.update(b"%d %d " % (number, len(token)) + token)
        digest.update(b"merges" + np.ascontiguousarray(self.merge_ids, "<i4").tobytes())
        for text, number in self.special_tokens.items():
            encoded = text.encode()
            digest.update(b"%d %d " % (number, len(encoded)) + encoded)
        return digest.hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return (
            self.tokens == other.tokens
            and self.special_tokens == other.special_tokens
            and self.merges == other.merges
        )

    __hash__ = None  # type: ignore[assignment]


def _check_tokens(tokens: Mapping[Any, Any]) -> None:
    """Refuse what is not {small non-negative int: non-empty bytes}."""
    if not tokens:
        raise FormatError("the vocabulary is empty; a byte-level vocabulary holds all 256 bytes")
    for number, token in tokens.items():
        if type(number) is not int or not 0 <= number < MAX_VOCAB_SIZE:
            raise FormatError(
                f"the vocabulary has the id {number!r}; ids are integers from 0 to "
                f"{MAX_VOCAB_SIZE - 1}"
            )
        if type(token) is not bytes or not token:
            raise FormatError(
                f"the vocabulary gives {token!r} for id {number}; a token is one or more bytes"
            )


def _place_specials(tokens: dict[int, bytes], given: SpecialTokens | None) -> dict[str, int]:
    """The id of each special token; those without one are added to `tokens` after the last."""
    if given is None:
        return {}
    texts = list(given)
    for text in texts:
        if not isinstance(text, str) or not text:
            raise FormatError(f"{text!r} is not a special token; give each one some text")
    if len(set(texts)) != len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise FormatError(f"special token {twice!r} is listed twice; list it once")
    try:
        encoded = {text: text.encode() for text in texts}
    except UnicodeEncodeError as error:
        raise FormatError(
            f"special token {error.object!r} holds a lone surrogate and cannot be written as UTF-8"
        ) from None
    if isinstance(given, Mapping):
        return _check_special_ids(tokens, given, encoded)
    wanted = set(encoded.values())
    first_ids = {t: n for n, t in reversed(tokens.items()) if t in wanted}
    placed = {}
    for text in texts:
        number = first_ids.get(encoded[text])
        if number is None:
            number = max(tokens) + 1
            tokens[number] = encoded[text]
        placed[text] = number
    return placed


def _check_special_ids(
    tokens: dict[int, bytes], given: Mapping[str, int], encoded: dict[str, bytes]
) -> dict[str, int]:
    """Special tokens with ids of the caller's choice."""
    if len(set(given.values())) != len(given):
        raise FormatError("two special tokens have the same id; give each its own")
    for text, number in given.items():
        if tokens.setdefault(number, encoded[text]) != encoded[text]:
            raise FormatError(
                f"special token {text!r} has the id {number}, which the vocabulary gives to "
                f"{tokens[number]!r}"
            )
    _check_tokens({number: tokens[number] for number in given.values()} or {0: b"\0"})
    return dict(given)


def _merge_ids(merges: list[tuple[bytes, bytes]], known: dict[bytes, int]) -> npt.NDArray[np.int32]:
    """Merges as rows of ids, refusing what is unknown or listed twice."""
    if len(merges) >= MAX_VOCAB_SIZE:
        raise FormatError(
            f"there are {len(merges)} merges; at most {MAX_VOCAB_SIZE - 1} can be used"
        )
    try:
        distinct = len(set(merges))
    except TypeError:
        raise _bad_merge(merges, known) from None
    if distinct != len(merges):
        seen: dict[tuple[bytes, bytes], int] = {}
        for rank, merge in enumerate(merges):
            first = seen.setdefault(merge, rank)
            if first != rank:
                raise FormatError(
                    f"merge {rank} ({merge[0]!r}, {merge[1]!r}) is a repetition of merge {first}; "
                    "each pair can be listed once"
                )
    try:
        ids = [
            number
            for left, right in merges
            for number in (known[left], known[right], known[left + right])
        ]
    except (KeyError, TypeError, ValueError):
        raise _bad_merge(merges, known) from None
    return np.array(ids, np.int32).reshape(-1, 3)


def _bad_merge(merges: list[Any], known: dict[bytes, int]) -> FormatError:
    """What is wrong with the first merge that cannot be used."""
    for rank, merge in enumerate(merges):
        if len(merge) != 2 or any(type(part) is not bytes for part in merge):
            return FormatError(f"merge {rank} is {merge!r}; a merge is two byte strings")
        for part in (*merge, merge[0] + merge[1]):
            if part not in known:
                return FormatError(
                    f"merge {rank} ({merge[0]!r}, {merge[1]!r}) needs the token {part!r}, which "
                    "the vocabulary does not have"
                )
    raise AssertionError("every merge is usable")
