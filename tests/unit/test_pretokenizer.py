"""Pretokenizers: engines, special tokens, counting, caching."""

import pickle
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import regex

from raybpe.block import PADDING_BYTES, Block
from raybpe.counts.pretoken_table import PretokenTable
from raybpe.pretokenize import PATTERNS, Pattern, Pretokenizer, pretokenizer, resolve_pattern

FALLBACK = r"(?<!\w)\w+|\W"


def expected(pattern: str, text: str, specials: list[str]) -> list[bytes]:
    longest_first = sorted(specials, key=len, reverse=True)
    pieces = re.split("|".join(map(re.escape, longest_first)), text) if specials else [text]
    return [
        match.group().encode()
        for piece in pieces
        for match in regex.finditer(pattern, piece)
        if match.group()
    ]


def counted(table: PretokenTable) -> dict[bytes, int]:
    ((data, offsets, counts),) = table.export()
    text = data.tobytes()
    return {text[offsets[row] : offsets[row + 1]]: int(counts[row]) for row in range(len(counts))}


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "whitespace", FALLBACK, r"\w+"])
@pytest.mark.parametrize(
    "specials",
    [[], ["<|end|>"], ["aa"], ["a", "ab", "abc"], ["<t1>", "<t12>"], [" ", "\n "], ["é", "東"]],
    ids=str,
)
def test_special_tokens_are_cut_out_first(pattern: str, specials: list[str]) -> None:
    resolved = resolve_pattern(pattern)
    tokenizer = Pretokenizer(resolved, specials)
    rng = random.Random(str(specials))
    units = [*specials, *specials, *"aabc12 \né東.'", "<t1", "2>"]
    documents = ["".join(rng.choices(units, k=rng.randint(0, 15))) for _ in range(100)]
    every: Counter[bytes] = Counter()
    for document in documents:
        wanted = expected(resolved.regex, document, specials)
        assert tokenizer.pretokens(document.encode()) == wanted
        every.update(wanted)
    text = b"".join(document.encode() for document in documents)
    ends = np.cumsum([len(document.encode()) for document in documents])
    data = np.zeros(len(text) + PADDING_BYTES, np.uint8)
    data[: len(text)] = np.frombuffer(text, np.uint8)
    table = PretokenTable()
    tokenizer.count(table, Block(data, np.concatenate([[0], ends[:-1]]), ends))
    assert counted(table) == every
    assert table.total == every.total()


def test_engines_agree_on_real_text(sample_text: Callable[[int], bytes]) -> None:
    text = sample_text(100_000)
    for name in PATTERNS:
        tokenizer = pretokenizer(resolve_pattern(name), ["<|endoftext|>"])
        table = PretokenTable()
        tokenizer.count(table, Block.of(text))
        wanted = Counter(expected(PATTERNS[name], text.decode(), ["<|endoftext|>"]))
        assert counted(table) == wanted


def test_a_fallback_says_why() -> None:
    tokenizer = Pretokenizer(Pattern(None, FALLBACK))
    assert tokenizer.engine == "regex"
    assert tokenizer.reason
    assert "(?<!" in tokenizer.reason
    assert tokenizer.scanner is None
    empty = Pretokenizer(Pattern(None, r"\w*"))
    assert empty.engine == "regex"
    assert empty.pretokens(b"ab  c") == [b"ab", b"c"]


def test_a_pattern_that_never_matches_counts_nothing() -> None:
    for pattern in (r"\\w\+", "(?<=zzz)z"):
        table = PretokenTable()
        Pretokenizer(Pattern(None, pattern)).count(table, Block.of(b"some text"))
        assert (len(table), table.total) == (0, 0)


def test_pickles_small_and_is_shared_within_a_process() -> None:
    tokenizer = pretokenizer(resolve_pattern("o200k"), ["<s>"])
    assert pretokenizer(resolve_pattern("o200k"), ("<s>",)) is tokenizer
    data = pickle.dumps(tokenizer)
    assert len(data) < 2000
    again = pickle.loads(data)
    assert again.pattern == tokenizer.pattern
    assert again.special_tokens == ("<s>",)
    assert again.pretokens(b"Hello<s>HelloWorld") == [b"Hello", b"Hello", b"World"]


def test_compiled_tables_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pattern = Pattern(None, r"[a-f]+\d|\w|\s+")
    Pretokenizer(pattern)
    files = list((tmp_path / "raybpe").iterdir())
    assert files
    times = []
    for _ in range(5):
        began = time.perf_counter()
        tokenizer = Pretokenizer(pattern)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.010
    assert tokenizer.pretokens(b"abc1 xy") == [b"abc1", b" ", b"x", b"y"]
    for file in files:
        file.write_bytes(b"not a cache")
    assert Pretokenizer(pattern).pretokens(b"abc1 xy") == [b"abc1", b" ", b"x", b"y"]
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no/such")
    assert Pretokenizer(pattern).pretokens(b"abc1") == [b"abc1"]
