"""tiktoken's rank files: one token per line in base64, a space, its rank, in rank order.

Ranks are ids, special tokens are not in the file, and neither are merges or the pattern. tiktoken
merges whatever two neighbours make the token of lowest rank. That gives the ids of this tokenizer
exactly when every token is what its merge says: encoding its bytes with the tokens of lower rank
ends in the two parts of its merge. Both directions check this with one kernel: what it finds when
a file is read are the merges, and a vocabulary for which it finds others is refused before writing.
"""

from __future__ import annotations

import binascii
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from raybpe.config import MAX_VOCAB_SIZE
from raybpe.errors import FormatError
from raybpe.formats.dialects import translate
from raybpe.formats.files import read_file
from raybpe.formats.parts import Parts
from raybpe.formats.source import Source

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern
    from raybpe.tokenizer.tokenizer import Tokenizer

_LINE = rb"[A-Za-z0-9+/]+={0,2} [0-9]{1,8}"
_LINES = re.compile(_LINE + rb"(?:\n" + _LINE + rb")*")
_END = "<|endoftext|>"
_FIM = {"<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260}
PUBLISHED: dict[str, tuple[str, dict[str, int]]] = {
    # The file says neither, and these names are known: pattern and special tokens by name.
    "r50k_base": ("gpt2", {_END: 50256}),
    "p50k_base": ("gpt2", {_END: 50256}),
    "cl100k_base": ("cl100k", {_END: 100257, **_FIM, "<|endofprompt|>": 100276}),
    "o200k_base": ("o200k", {_END: 199999, "<|endofprompt|>": 200018}),
}


def ranks_of(tokenizer: Tokenizer) -> dict[bytes, int]:
    """Token → rank (its id), in rank order, without special tokens: tiktoken's mergeable ranks.

    Raises:
        FormatError: tiktoken would merge otherwise.
    """
    vocabulary = tokenizer.vocabulary
    special_ids = set(vocabulary.special_tokens.values())
    ranks = {t: n for n, t in vocabulary.tokens.items() if n not in special_ids}
    if len(ranks) != len(vocabulary.tokens) - len(special_ids):
        raise FormatError(
            "two ids stand for the same bytes, and tiktoken's ranks can hold one of them only"
        )
    byte = next((bytes([b]) for b in range(256) if bytes([b]) not in ranks), None)
    if byte is not None:
        raise FormatError(
            f"the byte {byte!r} is a special token only, and tiktoken's ranks need every byte"
        )
    left, right = recover_merges(list(ranks))
    ids = np.fromiter(ranks.values(), np.int64, len(ranks))
    merged = np.flatnonzero(left >= 0)
    found = np.stack([ids[left[merged]], ids[right[merged]], ids[merged]], axis=1)
    rows = vocabulary.merge_ids
    if len(rows) == len(found) and np.array_equal(rows, found):
        return ranks
    # Published conversions list several ways to make one token; the extra ones never apply.
    listed = set(map(tuple, rows.tolist()))
    for one, other, result in found.tolist():
        if (one, other, result) not in listed:
            tokens = vocabulary.tokens
            raise FormatError(
                f"tiktoken would make the token {tokens[result]!r} of {tokens[one]!r} and "
                f"{tokens[other]!r}, which is not one of the merges"
            )
    if (np.diff(rows[:, 2]) < 0).any():
        raise FormatError(
            "the merges are not in the order of the ids that they make, and tiktoken merges in "
            "the order of ids"
        )
    return ranks


def fancy_pattern(pattern: Pattern) -> str:
    """The pattern for tiktoken, which drops text that a pattern does not match.

    The named patterns match every text. Any other gets an alternative for the stretches in between.

    Raises:
        FormatError: tiktoken's engine reads it differently.
    """
    regex = translate(pattern.regex, "regex", "fancy-regex")
    if pattern.name is not None:
        return regex
    return rf"(?:{regex})|(?:(?!{regex})[\s\S])+"


def render_ranks(source: Source) -> bytes:
    """The file.

    Raises:
        FormatError: tiktoken would merge otherwise, or cannot be given the pattern with the file.
    """
    fancy_pattern(source.tokenizer.pattern)
    ranks = ranks_of(source.tokenizer)
    pieces = [b""] * (2 * len(ranks))
    pieces[0::2] = map(partial(binascii.b2a_base64, newline=False), ranks)
    pieces[1::2] = map(b" %d\n".__mod__, ranks.values())
    return b"".join(pieces)


def read_ranks(path: Path) -> dict[int, bytes]:
    """Rank → token, in rank order.

    Raises:
        FormatError: a line is not a token and a rank (with its number), or one is there twice.
    """
    data = read_file(path).replace(b"\r\n", b"\n").rstrip(b"\n")
    if not data:
        raise FormatError(f"{path} has no ranks in it")
    if _LINES.fullmatch(data) is None:
        number, line = next(
            (i, line) for i, line in enumerate(data.split(b"\n"), 1) if not _LINES.fullmatch(line)
        )
        raise FormatError(
            f"{path}: line {number} is {line!r:.80}, not a token in base64, a space and a rank"
        )
    fields = data.split()
    try:
        tokens = list(map(binascii.a2b_base64, fields[0::2]))
        numbers = list(map(int, fields[1::2]))
    except binascii.Error:
        raise _bad_base64(path, fields[0::2]) from None
    ranks = dict(zip(numbers, tokens, strict=True))
    if len(ranks) != len(numbers) or max(numbers) >= MAX_VOCAB_SIZE or b"" in tokens:
        seen: set[int] = set()
        for at, (number, token) in enumerate(zip(numbers, tokens, strict=True), 1):
            if number in seen:
                raise FormatError(f"{path}: line {at} has the rank {number} a second time")
            if number >= MAX_VOCAB_SIZE or not token:
                raise FormatError(
                    f"{path}: line {at} has the rank {number} for {token!r}; ranks are below "
                    f"{MAX_VOCAB_SIZE} and tokens are not empty"
                )
            seen.add(number)
    return dict(sorted(ranks.items()))


def _bad_base64(path: Path, texts: list[bytes]) -> FormatError:
    for at, text in enumerate(texts, 1):
        try:
            binascii.a2b_base64(text)
        except binascii.Error as error:
            return FormatError(f"{path}: line {at}: {error} in {text!r:.80}")
    raise AssertionError("every token is base64")


def parts_of_ranks(path: Path, ranks: dict[int, bytes], special_tokens: dict[str, int]) -> Parts:
    """The tokenizer of a rank file: its merges recovered.

    Raises:
        FormatError: two ranks have the same bytes, or the ranks do not determine the merges.
    """
    numbers, tokens = list(ranks), list(ranks.values())
    known = set(tokens)
    if len(known) != len(tokens):
        seen: dict[bytes, int] = {}
        for number, token in ranks.items():
            if token in seen:
                raise FormatError(f"{path}: ranks {seen[token]} and {number} are both {token!r}")
            seen[token] = number
    missing = [byte for byte in range(256) if bytes([byte]) not in known]
    if missing:
        names = ", ".join(f"0x{byte:02x}" for byte in missing[:16])
        more = f" and {len(missing) - 16} more" if len(missing) > 16 else ""
        raise FormatError(
            f"{path} has no rank for the single bytes {names}{more}, so it cannot encode every text"
        )
    try:
        left, right = recover_merges(tokens)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    made = np.flatnonzero(left >= 0)
    merges = np.array(numbers, np.int32)[np.stack([left[made], right[made], made], axis=1)]
    vocab = dict(zip(numbers, tokens, strict=True))
    for text, number in special_tokens.items():
        if vocab.get(number, text.encode()) != text.encode():
            raise FormatError(f"{path}: the special token {text!r} has the rank of another token")
        vocab[number] = text.encode()
    return Parts(dict(sorted(vocab.items())), merges, special_tokens)


def recover_merges(tokens: list[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Positions of the two parts of each token, -1 for single bytes.

    Args:
        tokens: distinct byte strings in rank order.

    Raises:
        FormatError: the ranks do not determine a merge for some token.
    """
    from raybpe.kernels.entries import recover_merges as recover
    from raybpe.kernels.entry import address

    data = np.frombuffer(b"".join(tokens), np.uint8)
    offsets = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, tokens), np.int64, len(tokens)), out=offsets[1:])
    left, right = np.full((2, len(tokens)), -1, np.int64)
    slots = np.full(1 << (2 * len(tokens) + 1).bit_length(), -1, np.int64)
    failed = recover(
        address(data),
        address(offsets),
        len(tokens),
        address(slots),
        len(slots) - 1,
        address(left),
        address(right),
    )
    if failed >= 0:
        raise FormatError(
            f"the ranks do not determine a merge for the token {tokens[failed]!r}: with the tokens "
            "of lower rank its bytes do not end in two tokens"
        )
    return left, right
