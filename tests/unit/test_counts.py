"""Counts: exact, checked, added only when made alike, and warned about when they explode."""

import random

import numpy as np
import pytest

from raybpe.config import CountConfig
from raybpe.counts.arrow import from_arrow, to_arrow
from raybpe.counts.counts import CountedSource, Counts
from raybpe.errors import CapacityError, CountsError, UsageError

GPT2 = CountConfig("a pattern", "gpt2")
LARGEST = 2**63 - 1


def test_text_and_bytes_are_the_same_pretoken() -> None:
    counts = Counts.from_mapping({"é": 5, "é".encode(): 2, b"\xff": 1, "": 3})
    assert dict(counts.items()) == {"é".encode(): 7, b"\xff": 1, b"": 3}
    assert counts.total == 11
    assert len(counts) == 3


def test_numpy_integers_are_integers() -> None:
    assert Counts.from_mapping({"a": np.int32(3)}).total == 3


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ({"a": -1}, UsageError),
        ({"a": 1.5}, UsageError),
        ({"a": "1"}, UsageError),
        ({3: 1}, UsageError),
        ({"\ud800": 1}, UsageError),
        ({"a": LARGEST + 1}, CapacityError),
        ({"a": LARGEST, b"a": 1}, CapacityError),
    ],
)
def test_bad_mappings(mapping, error) -> None:
    with pytest.raises(error):
        Counts.from_mapping(mapping)


def test_items_are_in_canonical_order() -> None:
    rng = random.Random(5)
    mapping = {rng.randbytes(rng.randrange(0, 12)): rng.randrange(1, 6) for _ in range(3000)}
    mapping |= {b"prefix-of-more-than-8" + rng.randbytes(2): rng.randrange(4) for _ in range(500)}
    mapping |= {b"\x00" * n: 2 for n in range(20)}
    expected = sorted(mapping.items(), key=lambda item: (-item[1], item[0]))
    assert list(Counts.from_mapping(mapping).items()) == expected


def test_adding_is_exact_and_keeps_sources() -> None:
    one = Counts(Counts.from_mapping({"a": 1, "b": 2}).table, GPT2, (CountedSource("x", 1),))
    two = Counts(Counts.from_mapping({"b": 5, "c": 9}).table, GPT2, (CountedSource("y", 2),))
    total = one + two
    assert dict(total.items()) == {b"a": 1, b"b": 7, b"c": 9}
    assert total.config == GPT2
    assert {source.uri for source in total.sources} == {"x", "y"}
    assert total == two + one
    assert total != one


def test_adding_past_the_largest_count_is_refused() -> None:
    one = Counts.from_mapping({"a": LARGEST})
    with pytest.raises(CapacityError):
        _ = one + Counts.from_mapping({"a": 1})


def test_totals_beyond_64_bits_are_exact() -> None:
    counts = Counts.from_mapping({"a": LARGEST, "bc": LARGEST, "d": 5})
    assert counts.total == 2 * LARGEST + 5
    assert counts.stats()["text_bytes"] == 3 * LARGEST + 5


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (CountConfig("another pattern"), "pattern 'a pattern' and 'another pattern'"),
        (CountConfig("a pattern", special_tokens=("<s>",)), "special tokens"),
        (CountConfig("a pattern", invalid_utf8="skip"), "invalid utf8"),
        (CountConfig("a pattern", max_pretoken_length=9), "max pretoken length"),
        (None, "pattern"),
    ],
)
def test_adding_counts_made_with_other_settings_is_refused(other, named: str) -> None:
    one = Counts.from_mapping({"a": 1}, GPT2)
    with pytest.raises(CountsError, match=named):
        _ = one + Counts.from_mapping({"a": 1}, other)


def test_adding_counts_of_another_unicode_version_is_refused() -> None:
    table = Counts.from_mapping({"a": 1}).table
    with pytest.raises(CountsError, match="Unicode version"):
        _ = Counts(table, GPT2) + Counts(table, GPT2, unicode="12.0")


def test_nothing_to_add() -> None:
    with pytest.raises(CountsError, match="no counts"):
        Counts.sum([])


def test_a_pattern_may_have_two_names() -> None:
    one = Counts.from_mapping({"a": 1}, GPT2)
    assert (one + Counts.from_mapping({"a": 1}, CountConfig("a pattern"))).total == 2


def test_sliced_tables_are_read_right() -> None:
    counts = Counts.from_mapping({"a": 1, "bb": 2, "ccc": 3, "dddd": 4})
    (columns,) = from_arrow(counts.table.slice(1, 2))
    assert dict(Counts(to_arrow(columns)).items()) == {b"bb": 2, b"ccc": 3}


def test_statistics() -> None:
    stats = Counts.from_mapping({"a": 1, "bcd": 10, "e" * 300: 1}).stats()
    assert stats["distinct_pretokens"] == 3
    assert stats["pretokens"] == 12
    assert stats["text_bytes"] == 331
    assert stats["longest_pretoken"] == 300
    assert stats["seen_once"] == 2
    assert stats["long_bytes"] == 300
    assert Counts.from_mapping({}).stats()["pretokens"] == 0


def test_top() -> None:
    counts = Counts.from_mapping({"a": 1, "bc": 10, "def": 4, "defg": 4, "x" * 9: 2})
    assert counts.top(3) == [(b"bc", 10), (b"def", 4), (b"defg", 4)]
    assert counts.top(0) == counts.top(-1) == Counts.from_mapping({}).top() == []


def test_what_never_occurs_adds_nothing() -> None:
    one = Counts.from_mapping({"a": 0, "b": 2, "long" * 9: 0})
    assert dict((one + one).items()) == {b"b": 4}


def test_html_escapes_what_was_counted() -> None:
    shown = Counts.from_mapping({"<script>": 3, b"\xff": 1, "x" * 99: 1}, GPT2)._repr_html_()
    assert "x" * 60 + "&#x27;… (99 bytes)" in shown
    assert "x" * 61 not in shown
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert "gpt2" in shown
