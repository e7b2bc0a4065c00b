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
from functools import cached_property
from operator import add, itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from raybpe.config import MAX_VOCAB_SIZE, check_in_order
from raybpe.errors import FormatError
from raybpe.given import items, quoted, several, special_ids, wrong_type

Merges = Iterable[tuple[bytes, bytes]] | npt.NDArray[np.integer[Any]]
SpecialTokens = Sequence[str] | Mapping[str, int]  # no set: ids follow the order


class Vocabulary:
    """Tokens, merges and special tokens, checked.

    Attributes:
        tokens: id → bytes, in id order, special tokens included.
        special_tokens: text → id, in id order.
        ordinary: bytes → id of every token that is not a special token. Of several ids with the
            same bytes the lowest is used.
        merge_ids: int32 (merges, 3): left id, right id, id of the result, in rank order.
        byte_ids: int32 (256,): id of each single byte.

    Merges are given as pairs of bytes or as rows like those of `merge_ids`.
    """

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Merges,
        special_tokens: SpecialTokens | None = None,
    ) -> None:
        _check_tokens(vocab)
        numbers = list(vocab)
        in_order = numbers == sorted(numbers)
        tokens = dict(vocab) if in_order else dict(sorted(vocab.items()))
        specials = _place_specials(tokens, special_tokens)
        self.special_tokens: dict[str, int] = dict(sorted(specials.items(), key=lambda s: s[1]))
        self.tokens: dict[int, bytes] = (
            tokens if len(tokens) == len(vocab) else dict(sorted(tokens.items()))
        )
        special_ids = set(specials.values())
        self.ordinary: dict[bytes, int] = _first_ids(self.tokens, special_ids)
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
        if isinstance(merges, np.ndarray):
            rows = _checked_rows(merges, self.tokens)
            if len(known) < len(self.tokens):  # of ids with the same bytes, the one that is used
                columns = _columns(rows, self.tokens)[:2]
                rows = _merge_ids(list(zip(*columns, strict=True)), known)
        else:
            pairs = several("merges", merges, "a list of pairs of bytes")
            rows = _merge_ids(
                [tuple(items("a merge", pair, "two tokens")) for pair in pairs], known
            )
        self.merge_ids: npt.NDArray[np.int32] = rows
        _refuse_repetition(self.merge_ids, self.tokens)

    @cached_property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """(left bytes, right bytes) in rank order."""
        left, right, _ = _columns(self.merge_ids, self.tokens)
        return list(zip(left, right, strict=True))

    @property
    def id_limit(self) -> int:
        """One more than the highest id."""
        return next(reversed(self.tokens)) + 1

    def fingerprint(self) -> str:
        """32 hex digits that are equal exactly when tokens, merges and special tokens are."""
        specials = {number: text.encode() for text, number in self.special_tokens.items()}
        digest = hashlib.sha256()
        for tokens in (self.tokens, specials):
            values = tokens.values()
            for numbers in (tokens, map(len, values)):
                row = np.fromiter(numbers, "<i4", len(tokens))
                digest.update(len(row).to_bytes(4, "little") + row.tobytes())
            digest.update(b"".join(values))
        digest.update(np.ascontiguousarray(self.merge_ids, "<i4").tobytes())
        return digest.hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return (
            self.tokens == other.tokens
            and self.special_tokens == other.special_tokens
            and np.array_equal(self.merge_ids, other.merge_ids)
        )

    __hash__ = None  # type: ignore[assignment]


def _check_tokens(tokens: Mapping[Any, Any]) -> None:
    """Refuse what is not {small non-negative int: non-empty bytes}."""
    if not isinstance(tokens, Mapping):
        raise wrong_type("vocab", tokens, "a mapping from ids to bytes")
    if not tokens:
        raise FormatError("the vocabulary is empty; a byte-level vocabulary holds all 256 bytes")
    if (
        set(map(type, tokens)) == {int}
        and min(tokens) >= 0
        and max(tokens) < MAX_VOCAB_SIZE
        and set(map(type, tokens.values())) == {bytes}
        and all(tokens.values())
    ):
        return
    for number, token in tokens.items():
        if type(number) is not int or not 0 <= number < MAX_VOCAB_SIZE:
            raise FormatError(
                f"the vocabulary has the id {quoted(number)}; ids are integers from 0 to "
                f"{MAX_VOCAB_SIZE - 1}"
            )
        if type(token) is not bytes or not token:
            raise FormatError(
                f"the vocabulary gives {quoted(token)} for id {number}; a token is one or more "
                "bytes"
            )


def _place_specials(tokens: dict[int, bytes], given: SpecialTokens | None) -> dict[str, int]:
    """The id of each special token; those without one are added to `tokens` after the last."""
    if given is None:
        return {}
    check_in_order(given, FormatError)
    form = "a list of texts, or a mapping from text to id"
    texts: list[Any] = list(items("special_tokens", given, form))
    for text in texts:
        if not isinstance(text, str) or not text:
            raise FormatError(f"{quoted(text)} is not a special token; give each one some text")
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
        return _check_special_ids(tokens, special_ids(given), encoded)
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
    tokens: dict[int, bytes], given: dict[str, int], encoded: dict[str, bytes]
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
    return given


def _first_ids(tokens: dict[int, bytes], left_out: set[int]) -> dict[bytes, int]:
    """Bytes → lowest id, of all tokens but those left out; ids are in order."""
    first = dict(zip(reversed(tokens.values()), reversed(tokens), strict=True))
    if len(first) == len(tokens):
        for number in left_out:
            del first[tokens[number]]
        return first
    return {t: n for n, t in reversed(tokens.items()) if n not in left_out}


def _merge_ids(merges: list[tuple[bytes, bytes]], known: dict[bytes, int]) -> npt.NDArray[np.int32]:
    """Merges as rows of ids, refusing what is unknown or listed twice."""
    if len(merges) >= MAX_VOCAB_SIZE:
        raise FormatError(
            f"there are {len(merges)} merges; at most {MAX_VOCAB_SIZE - 1} can be used"
        )
    if set(map(len, merges)) - {2}:
        raise _bad_merge(merges, known)
    left, right = list(map(itemgetter(0), merges)), list(map(itemgetter(1), merges))
    rows = np.zeros((len(merges), 3), np.int32)
    try:
        for column, parts in enumerate((left, right, map(add, left, right))):
            rows[:, column] = np.fromiter(map(known.__getitem__, parts), np.int32, len(merges))
    except (KeyError, TypeError):
        raise _bad_merge(merges, known) from None
    return rows


def _checked_rows(
    rows: npt.NDArray[np.integer[Any]], tokens: dict[int, bytes]
) -> npt.NDArray[np.int32]:
    """`rows`, refused if they are not ids of left, right and what these make."""
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise FormatError(f"merges given as an array are rows of three ids, not {rows.shape}")
    try:
        left, right, made = _columns(rows, tokens)
    except KeyError as error:
        raise FormatError(f"a merge has the id {error}, which the vocabulary has not") from None
    if list(map(add, left, right)) != list(made):
        rank = next(i for i, parts in enumerate(zip(left, right, made, strict=True))
                    if parts[0] + parts[1] != parts[2])  # fmt: skip
        raise FormatError(
            f"merge {rank} of {left[rank]!r} and {right[rank]!r} cannot make {made[rank]!r}"
        )
    return np.ascontiguousarray(rows, np.int32)


def _columns(
    rows: npt.NDArray[np.integer[Any]], tokens: dict[int, bytes]
) -> tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes]]:
    """Bytes of the left, right and resulting token of each row."""
    left, right, made = (list(map(tokens.__getitem__, ids)) for ids in rows.T.tolist())
    return left, right, made


def _refuse_repetition(rows: npt.NDArray[np.int32], tokens: dict[int, bytes]) -> None:
    """Each pair can be listed once."""
    pairs = rows[:, 0].astype(np.int64) << 32 | rows[:, 1]
    ordered = np.sort(pairs)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    seen: dict[int, int] = {}
    for rank, pair in enumerate(pairs.tolist()):
        first = seen.setdefault(pair, rank)
        if first != rank:
            left, right = (tokens[number] for number in rows[rank, :2].tolist())
            raise FormatError(
                f"merge {rank} ({left!r}, {right!r}) is a repetition of merge {first}; each pair "
                "can be listed once"
            )


def _bad_merge(merges: list[Any], known: dict[bytes, int]) -> FormatError:
    """What is wrong with the first merge that cannot be used."""
    for rank, merge in enumerate(merges):
        if len(merge) != 2 or any(type(part) is not bytes for part in merge):
            return FormatError(f"merge {rank} is {quoted(merge)}; a merge is two byte strings")
        for part in (*merge, merge[0] + merge[1]):
            if part not in known:
                return FormatError(
                    f"merge {rank} ({merge[0]!r}, {merge[1]!r}) needs the token {part!r}, which "
                    "the vocabulary does not have"
                )
    raise AssertionError("every merge is usable")
