"""Values of a wrong type are refused at the door, with the argument's name."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raybpe
from raybpe.block import Block
from raybpe.errors import ArgumentTypeError, RaybpeError, UsageError


class Unshowable:
    """What cannot even be shown in a message."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


BYTES = {number: bytes([number]) for number in range(256)}
TOKENIZER: Any = raybpe.Tokenizer(BYTES, [])
COUNTS: Any = raybpe.Counts.from_mapping({"a": 2})
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
    "a\0b",
    np.array(["a", "b"]),
    np.array([1.5, 2.5]),
    Unshowable(),
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
CHOSEN = ["invalid_utf8", "tie_break", "byte_order", "special_tokens_at"]
CHOSEN += ["executor", "progress", "documents"]
CALLS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda value, name=name: train(**{name: value}) for name in KEYWORDS},
    **{name: lambda value, name=name: train_on_files(**{name: value}) for name in OF_FILES},
    "inputs": lambda value: raybpe.count(value, progress="none"),
    "texts": lambda value: raybpe.count_from_iterator(value, progress="none"),
    "counts": lambda value: raybpe.train_from_counts(value, 257, progress="none"),
    "Counts.load": raybpe.Counts.load,
    "Counts.sum": raybpe.Counts.sum,
    "Counts.from_mapping": raybpe.Counts.from_mapping,
    "config": lambda value: raybpe.Counts.from_mapping({"a": 1}, value),
    "a count": lambda value: raybpe.Counts.from_mapping({"a": value}),
    "Counts.top": COUNTS.top,
    "Counts.save": COUNTS.save,
    "output": lambda value: train(output=value),
    "Tokenizer": lambda value: raybpe.Tokenizer(value, []),
    "merges": lambda value: raybpe.Tokenizer(BYTES, value),
    "specials": lambda value: raybpe.Tokenizer(BYTES, [], value),
    "an id of specials": lambda value: raybpe.Tokenizer(BYTES, [], {"<|q|>": value}),
    "ignore_merges": lambda value: raybpe.Tokenizer(BYTES, [], ignore_merges=value),
    "Tokenizer.load": raybpe.Tokenizer.load,
    "encode": TOKENIZER.encode,
    "encode_batch": TOKENIZER.encode_batch,
    "threads": lambda value: TOKENIZER.encode_batch(["a"], threads=value),
    "threads of one": lambda value: TOKENIZER.encode_to_numpy("a", threads=value),
    "encode_documents": TOKENIZER.encode_documents,
    "encode_iterable": lambda value: list(TOKENIZER.encode_iterable(value)),
    "encode_to_numpy": TOKENIZER.encode_to_numpy,
    "count_tokens": TOKENIZER.count_tokens,
    "decode": TOKENIZER.decode,
    "decode_batch": TOKENIZER.decode_batch,
    "token_bytes": TOKENIZER.token_bytes,
    "errors": lambda value: TOKENIZER.decode([97], value),
    "errors of a batch": lambda value: TOKENIZER.decode_batch([], value),
    "errors of a stream": TOKENIZER.decode_stream,
    "ids of a stream": lambda value: TOKENIZER.decode_stream().decode(value),
    "decode_with_offsets": TOKENIZER.decode_with_offsets,
    "allowed_special": lambda value: TOKENIZER.encode("a", allowed_special=value),
    "disallowed_special": lambda value: TOKENIZER.encode("a", disallowed_special=value),
    "dropout": lambda value: TOKENIZER.encode("a", dropout=value),
    "seed": lambda value: TOKENIZER.encode("a", dropout=0.5, seed=value),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_but_own_errors(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some of them are good names for what is written
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
        ("config", "gpt2", "config must be a raybpe.config.CountConfig, not 'gpt2'"),
        ("a count", True, "the count of 'a' must be a whole number, not True"),
        ("Counts.top", 1.5, "number must be a whole number"),
        ("an id of specials", [], r"id of the special token '<.q.>' must be a whole number"),
        ("ignore_merges", "abc", "ignore_merges must be True or False"),
        ("threads", "x", "threads must be a whole number"),
        ("threads", True, "threads must be a whole number"),
        ("threads of one", 1.5, "threads must be a whole number"),
        ("threads of one", float("inf"), "threads must be a whole number"),
        ("encode_documents", None, "block must be a raybpe.block.Block, not None"),
        ("errors", None, "errors must be text"),
        ("errors of a stream", None, "errors must be text"),
        ("ids of a stream", 5, "ids must be several integers, not 5"),
        ("token_bytes", True, "number must be a whole number, not True"),
        ("dropout", "", "dropout must be a probability, from 0 to 1, not ''"),
        ("dropout", [], "dropout must be a probability"),
        ("dropout", True, "dropout must be a probability"),
        ("dropout", np.array([0.5, 0.5]), "dropout must be a probability"),
        ("seed", [], "seed must be a whole number"),
        ("seed", "\ud800", "seed must be a whole number"),
        ("allowed_special", np.array([1, 2]), "each of allowed_special must be text"),
        ("disallowed_special", np.array([1, 2]), "each of disallowed_special must be text"),
        *((name, np.array(["a", "b"]), f"{name} must be text") for name in CHOSEN),
        ("vocab_size", Unshowable(), "vocab_size must be .* a value that cannot be shown"),
    ],
)
def test_what_is_said(name: str, value: Any, words: str) -> None:
    with pytest.raises(ArgumentTypeError, match=words) as caught:
        CALLS[name](value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, UsageError)


def test_numbers_of_numpy_are_whole_numbers() -> None:
    assert train(vocab_size=np.int64(257)).vocab_size == train().vocab_size


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("a count", -1, "the count of 'a' is -1, but must be at least 0"),
        ("threads", 0, "threads is 0, but must be at least 1"),
        ("threads of one", -1, "threads is -1, but must be at least 1"),
        ("errors", "a\0b", r"errors='a\\x00b' is no way to decode"),
        ("errors", "unknown", "errors='unknown' is no way to decode"),
        ("errors of a batch", "unknown", "errors='unknown' is no way to decode"),
        ("errors of a stream", "xmlcharrefreplace", "errors='xmlcharrefreplace' is no way"),
        ("dropout", 1.5, "dropout=1.5 must be a probability"),
        ("decode", np.array([97.0]), "not an array of float64"),
        ("decode", np.array([True]), "not an array of bool"),
    ],
)
def test_values_that_cannot_be(name: str, value: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CALLS[name](value)


NO_ARRAY: Any = None
DATA, ONE = np.zeros(200, np.uint8), np.ones(1, np.int64)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (Block(NO_ARRAY, ONE, ONE), "data of the block must be a numpy array, not None"),
        (Block(DATA, NO_ARRAY, ONE), "starts of the block must be"),
        (Block(DATA, ONE, NO_ARRAY), "ends of the block must be"),
        (Block(DATA, ONE, ONE + 10**9), "not spans of its contiguous uint8 data"),
        (Block(DATA, ONE - 10**9, ONE), "not spans"),
        (Block(DATA, ONE * 5, ONE), "not spans"),
        (Block(DATA.astype(float), ONE, ONE), "not spans"),
        (Block(DATA, ONE, np.array([1, 2])), "1 starts and 2 ends"),
        (Block(DATA, np.array(["a"]), ONE), "cannot be encoded"),
    ],
)
def test_blocks_that_reach_beyond_their_data(block: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        TOKENIZER.encode_documents(block)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (5, "special_tokens must be a mapping from text to id, not 5"),
        ("abc", "special_tokens must be a mapping"),
        (["a"], "special_tokens must be a mapping"),
        ({1: "a"}, "a special token must be text"),
        ({"<|q|>": None}, r"id of the special token '<.q.>' must be a whole number, not None"),
        ({"<|q|>": []}, "must be a whole number"),
        ({"\ud800": 256}, "holds a lone surrogate"),
    ],
)
def test_special_tokens_of_a_file(tmp_path: Path, value: Any, words: str) -> None:
    TOKENIZER.save(tmp_path)
    with pytest.raises(UsageError, match=words):
        raybpe.Tokenizer.load(tmp_path / "tokenizer.tiktoken", special_tokens=value)


def test_arguments_that_are_written_otherwise_are_the_same() -> None:
    text = "ab" * 9
    assert TOKENIZER.encode(text, allowed_special=str(b"all", "ascii")) == TOKENIZER.encode(text)
    assert TOKENIZER.encode(text, dropout=np.float32(0), seed=np.int64(3)) == list(text.encode())
    assert TOKENIZER.decode(np.array([])) == ""
    assert TOKENIZER.encode_documents(Block.of(b"ab"))[1].tolist() == [2]
