"""Settings: sizes, presets, refusals, and what a fingerprint tells apart."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

import raybpe
from raybpe.config import PRESETS, CountConfig, RunOptions, TrainConfig, apply_preset
from raybpe.errors import FormatError, UsageError
from raybpe.settings import count_config, parse_size, run_options, train_config


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MB", 64_000_000), ("1 MiB", 1 << 20), ("4k", 4000), ("7", 7), ("7B", 7), ("1.5kb", 1500),
     (512, 512), ("2GiB", 2 << 30)],
)  # fmt: skip
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1e6", "64 MBs", "0", "0.1", "9999999999TB"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="size"):
        parse_size(text)


def test_presets_and_what_wins_over_them() -> None:
    assert apply_preset("cs336")["tie_break"] == "greatest-bytes"
    assert apply_preset("rustbpe", special_tokens_at="start") == {
        "tie_break": "lowest-ids",
        "byte_order": "value",
        "special_tokens_at": "start",
        "min_frequency": 1,
    }
    with pytest.raises(UsageError, match="hf, cs336"):
        apply_preset("huggingface")


def test_train_config_takes_the_preset() -> None:
    config = train_config(300, count_config(), compat="rustbpe", tie_break="greatest-bytes")
    assert (config.byte_order, config.tie_break) == ("value", "greatest-bytes")
    assert config.max_merges == 300 - 256 - 1


def test_fingerprint_changes_with_every_field() -> None:
    config = TrainConfig(300, CountConfig("a+"))
    other = {
        "vocab_size": 301,
        "counting": CountConfig("b+"),
        "tie_break": "greatest-bytes",
        "byte_order": "value",
        "special_tokens_at": "end",
        "min_frequency": 2,
        "max_token_length": 5,
        "min_pretoken_count": 2,
        "strict": True,
    }
    assert set(other) == {field.name for field in fields(TrainConfig)}
    prints = {replace(config, **{name: value}).fingerprint() for name, value in other.items()}
    assert len(prints | {config.fingerprint()}) == len(other) + 1
    assert TrainConfig(300, CountConfig("a+")).fingerprint() == config.fingerprint()


def test_special_tokens_given_as_one_text() -> None:
    with pytest.raises(UsageError, match="list"):
        count_config(special_tokens="<|endoftext|>")
    assert count_config(special_tokens=None).special_tokens == ()


@pytest.mark.parametrize("kind", [set, frozenset])
@pytest.mark.parametrize("texts", [["<a>", "<b>"], []])
def test_special_tokens_given_as_a_set_have_no_order(
    kind: Callable[[list[str]], Any], texts: list[str]
) -> None:
    given = kind(texts)
    makers: list[Callable[[], object]] = [
        lambda: count_config(special_tokens=given),
        lambda: CountConfig("a+", special_tokens=given),
        lambda: raybpe.train("no file", 300, special_tokens=given),
        lambda: raybpe.train_from_iterator(["a"], 300, special_tokens=given),
        lambda: raybpe.train_from_counts({"a": 1}, 300, special_tokens=given),
        lambda: raybpe.count("no file", special_tokens=given),
        lambda: raybpe.count_from_iterator(["a"], special_tokens=given),
        lambda: raybpe.train_bpe("no file", 300, given),
    ]
    for make in makers:
        with pytest.raises(UsageError, match=r"give a list, for example sorted"):
            make()
    with pytest.raises(FormatError, match=r"give a list, for example sorted"):
        raybpe.Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], given)


def test_special_tokens_of_a_mapping_are_in_order() -> None:
    ids = {"<b>": 256, "<a>": 257}
    assert count_config(special_tokens=ids.keys()).special_tokens == ("<b>", "<a>")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [{"workers": 0}, {"chunk_bytes": 0}, {"fan_in": 1}],
)
def test_run_options_that_cannot_work(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        RunOptions(**wrong)  # type: ignore[arg-type]


def test_an_address_needs_ray() -> None:
    with pytest.raises(UsageError, match="address"):
        run_options(executor="local", address="auto")


@pytest.mark.parametrize("size", [256, 0, -1, 2**24 + 1])
def test_vocab_sizes_that_cannot_be(size: int) -> None:
    with pytest.raises(UsageError, match="vocab size"):
        train_config(size, count_config())


def test_every_preset_is_documented(root: object) -> None:
    from pathlib import Path

    readme = Path(str(root), "README.md").read_text()
    assert all(f"`{name}`" in readme for name in PRESETS)
