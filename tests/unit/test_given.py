"""Values of a wrong type are refused at the door, with the argument's name."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import raybpe
from raybpe.errors import ArgumentTypeError, RaybpeError, UsageError

BYTES = {number: bytes([number]) for number in range(256)}
TOKENIZER: Any = raybpe.Tokenizer(BYTES, [])
WRONG = [
    None,
    5,
    1.5,
    float("nan"),
    b"x",
    [1],
    [None],
    ["a", 1],
    {"a": 1},
    {1, 2},
    object(),
    "\ud800",
]


def train(**keywords: Any) -> Any:
    return raybpe.train_from_counts(
        {"ab": 2}, **{"vocab_size": 257, "progress": "none", **keywords}
    )


def train_on_files(**keywords: Any) -> Any:
    return raybpe.train("missing.txt", 257, progress="none", executor="local", **keywords)


KEYWORDS = [
    "vocab_size",
    "pattern",
    "special_tokens",
    "invalid_utf8",
    "max_pretoken_length",
    "compat",
    "tie_break",
    "byte_order",
    "special_tokens_at",
    "min_frequency",
    "max_token_length",
    "min_pretoken_count",
    "strict",
    "executor",
    "workers",
    "verify",
    "progress",
]
OF_FILES = ["chunk_size", "fan_in", "resume", "documents", "field"]
CALLS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda value, name=name: train(**{name: value}) for name in KEYWORDS},
    **{name: lambda value, name=name: train_on_files(**{name: value}) for name in OF_FILES},
    "inputs": lambda value: raybpe.count(value, progress="none"),
    "texts": lambda value: raybpe.count_from_iterator(value, progress="none"),
    "counts": lambda value: raybpe.train_from_counts(value, 257, progress="none"),
    "Counts.load": raybpe.Counts.load,
    "Counts.sum": raybpe.Counts.sum,
    "Counts.from_mapping": raybpe.Counts.from_mapping,
    "Tokenizer": lambda value: raybpe.Tokenizer(value, []),
    "merges": lambda value: raybpe.Tokenizer(BYTES, value),
    "specials": lambda value: raybpe.Tokenizer(BYTES, [], value),
    "Tokenizer.load": raybpe.Tokenizer.load,
    "encode": TOKENIZER.encode,
    "encode_batch": TOKENIZER.encode_batch,
    "encode_iterable": lambda value: list(TOKENIZER.encode_iterable(value)),
    "encode_to_numpy": TOKENIZER.encode_to_numpy,
    "count_tokens": TOKENIZER.count_tokens,
    "decode": TOKENIZER.decode,
    "decode_batch": TOKENIZER.decode_batch,
    "decode_with_offsets": TOKENIZER.decode_with_offsets,
    "allowed_special": lambda value: TOKENIZER.encode("a", allowed_special=value),
    "disallowed_special": lambda value: TOKENIZER.encode("a", disallowed_special=value),
    "dropout": lambda value: TOKENIZER.encode("a", dropout=value),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_but_own_errors(name: str) -> None:
    for value in WRONG:
        with suppress(RaybpeError):
            CALLS[name](value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("vocab_size", None, "vocab_size must be a whole number, not None"),
        ("vocab_size", True, "not True .bool."),
        ("special_tokens", [b"x"], r"a special token must be text .str., not b'x' .bytes."),
        ("chunk_size", None, "chunk_size must be"),
        ("strict", "yes", "strict must be True or False, not 'yes'"),
        ("inputs", None, "inputs must be a path or URI"),
        ("inputs", [b"x"], "an input must be a path"),
        ("encode", None, "a text must be str or bytes, not None"),
        ("Tokenizer.load", b"x", "path must be a path"),
        ("Counts.from_mapping", [1], "must be a mapping"),
    ],
)
def test_what_is_said(name: str, value: Any, words: str) -> None:
    with pytest.raises(ArgumentTypeError, match=words) as caught:
        CALLS[name](value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, UsageError)


def test_numbers_of_numpy_are_whole_numbers() -> None:
    assert train(vocab_size=np.int64(257)).vocab_size == train().vocab_size
