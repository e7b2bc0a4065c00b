"""The counting table against `collections.Counter` and plain Python twins of its hash and keys."""

import threading
from collections import Counter

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe.block import Block
from raybpe.counts import pretoken_table
from raybpe.counts.columns import exact_sum
from raybpe.counts.pretoken_table import PretokenTable
from raybpe.errors import CapacityError
from raybpe.kernels import table as layout
from raybpe.kernels.scanner import Scanner
from raybpe.kernels.special_table import compile_specials
from raybpe.pretokenize.gpt2_classes import gpt2_tables

PATTERN = regex.compile(
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
)
END = "<|endoftext|>"
LARGEST = 2**63 - 1


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner("gpt2", gpt2_tables())


def rows_of(counts: dict[bytes, int]):
    data = np.frombuffer(b"".join(counts), np.uint8)
    offsets = np.cumsum([0, *map(len, counts)], dtype=np.int64)
    return data, offsets, np.array(list(counts.values()), np.int64)


def as_dict(*tables_of_rows) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for data, offsets, counts in tables_of_rows:
        text = data.tobytes()
        for i, number in enumerate(counts.tolist()):
            pretoken = text[offsets[i] : offsets[i + 1]]
            assert pretoken not in found
            found[pretoken] = number
    return found


def table_of(counts: dict[bytes, int]) -> PretokenTable:
    table = PretokenTable()
    table.insert(*rows_of(counts))
    return table


def expected(text: bytes, *specials: str) -> Counter[bytes]:
    pieces = [text.decode()]
    if specials:
        longest_first = sorted(specials, key=len, reverse=True)
        pieces = regex.split("|".join(map(regex.escape, longest_first)), pieces[0])
    return Counter(m.group().encode() for piece in pieces for m in PATTERN.finditer(piece))


def many_pretokens(number: int, seed: int = 0) -> dict[bytes, int]:
    """Distinct ones of 1 to 40 bytes, with counts."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 41, number)
    return {
        f"{i:x}.".encode() + bytes(rng.integers(0, 256, size, np.uint8)): i % 1000 + 1
        for i, size in enumerate(sizes)
    }


# -- counting --------------------------------------------------------------------------------


def test_real_text(scanner, sample_text):
    text = sample_text(400_000)
    table = PretokenTable()
    table.count(scanner, Block.of(text), compile_specials([END.encode()]))
    counts = expected(text, END)
    assert as_dict(*table.export()) == counts
    assert (len(table), table.total) == (len(counts), sum(counts.values()))


def test_blocks_add_up(scanner, sample_text):
    lines = sample_text(20_000)[:20_000].split(b"\n")
    table = PretokenTable()
    for line in lines:
        table.count(scanner, Block.of(line))
    assert as_dict(*table.export()) == sum((expected(line) for line in lines), Counter())


def test_documents_of_every_size_with_gaps(scanner, sample_text):
    text = sample_text(60_000).decode("ascii", "ignore").encode()
    starts = np.cumsum(np.arange(300)) + np.arange(300) * 2
    ends = starts + np.arange(300)
    block = Block(np.frombuffer(text + bytes(128), np.uint8), starts, ends)
    table = PretokenTable()
    table.count(scanner, block)
    counts = sum((expected(text[s:e]) for s, e in zip(starts, ends, strict=True)), Counter[bytes]())
    assert as_dict(*table.export()) == counts


@pytest.mark.parametrize("size", [1, 5, 14, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100_000, 3_000_000])
def test_long_pretokens(scanner, size):
    text = b" ".join([b"a" * size, b"b" * size, b"a" * size, b"a" * (size - 1) + b"c"])
    table = PretokenTable()
    table.count(scanner, Block.of(text))
    assert as_dict(*table.export()) == expected(text)


def test_specials_beside_each_other_and_at_the_ends(scanner):
    specials = ["<|a|>", "<|a|><|b|>", "x"]
    tokens = compile_specials([s.encode() for s in specials])
    for text in (
        "",
        "x",
        "xx",
        "<|a|>",
        "<|a|><|a|>  x y<|a|><|b|>",
        " <|a|>'s<|a|> 's <|a",
        "xax",
    ):
        table = PretokenTable()
        table.count(scanner, Block.of(text.encode()), tokens)
        assert as_dict(*table.export()) == expected(text.encode(), *specials), text


def test_small_corpora(scanner, shared):
    for path in sorted((shared / "corpora" / "small").iterdir()):
        text = path.read_bytes().decode("utf-8", "ignore").encode()
        table = PretokenTable()
        table.count(scanner, Block.of(text), compile_specials([END.encode()]))
        assert as_dict(*table.export()) == expected(text, END), path.name


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "'s", " ", "\n", "\u3000", "é", "1", "!", END, "q" * 20]))
        .map("".join),
        max_size=6,
    )
)  # fmt: skip
def test_random_documents(scanner, documents):
    text = "".join(documents).encode()
    ends = np.cumsum([len(d.encode()) for d in documents], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends])[: len(documents)]
    table = PretokenTable()
    block = Block(np.frombuffer(text + bytes(128), np.uint8), starts, ends)
    table.count(scanner, block, compile_specials([END.encode()]))
    counts = sum((expected(d.encode(), END) for d in documents), Counter[bytes]())
    assert as_dict(*table.export()) == counts


def test_a_block_that_kernels_could_not_read_safely_is_refused(scanner):
    data, start = np.zeros(200, np.uint8), np.zeros(1, np.int64)
    for block in (
        Block(data, start, np.array([73])),
        Block(data, start - 1, np.array([5])),
        Block(data, start + 6, np.array([5])),
        Block(data[::2], start, np.array([5])),
        Block(data, start, np.array([5, 6])),
    ):
        with pytest.raises(ValueError, match="a block w"):
            PretokenTable().count(scanner, block)


def test_two_threads_count_at_the_same_time(scanner, sample_text):
    text = sample_text(200_000)
    tables = [PretokenTable() for _ in range(4)]
    work = [
        threading.Thread(target=table.count, args=(scanner, Block.of(text))) for table in tables
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    counts = expected(text)
    assert all(as_dict(*table.export()) == counts for table in tables)


# -- rows and tables -------------------------------------------------------------------------


def test_rows_of_every_length_to_the_last_readable_byte():
    for size in range(60):
        for number in (1, 3):
            counts = {bytes([65 + i]) * size: i + 1 for i in range(number if size else 1)}
            assert as_dict(*table_of(counts).export()) == counts


def test_growth_from_rows_from_sorted_rows_and_from_tables():
    counts = many_pretokens(150_000)
    table = table_of(counts)
    rows = table.export()[0]  # in hash order, which fills a small table from one end
    assert as_dict(rows) == counts

    grown = PretokenTable()
    grown.insert(*rows_of({b"first": 1}))
    grown.insert(*rows)
    assert as_dict(*grown.export()) == counts | {b"first": 1}

    added = table_of({b"first": 2})
    added.add(table)
    added.add(table)
    assert as_dict(*added.export()) == {k: 2 * n for k, n in counts.items()} | {b"first": 2}
    assert added.total == 2 * sum(counts.values()) + 2


def test_growth_in_many_small_steps(monkeypatch):
    monkeypatch.setattr(pretoken_table, "_FIRST_BITS", 9)
    monkeypatch.setattr(pretoken_table, "_FAST_BITS", 10)
    monkeypatch.setattr(pretoken_table, "_FIRST_ARENA", 1)
    counts = many_pretokens(20_000)
    table = PretokenTable()
    table.insert(*rows_of({b"a": 1}))
    table.insert(*rows_of(counts))
    other = PretokenTable()
    other.insert(*rows_of({b"a": 1}))
    other.add(table)
    assert as_dict(*other.export()) == counts | {b"a": 2}


def test_adding_to_itself_doubles():
    counts = many_pretokens(70_000)
    table = table_of(counts)
    table.add(table)
    assert as_dict(*table.export()) == {k: 2 * n for k, n in counts.items()}
    assert table.total == 2 * sum(counts.values())


def test_adding_nothing():
    table = table_of({b"a": 1})
    table.add(PretokenTable())
    table.insert(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64))
    assert as_dict(*table.export()) == {b"a": 1}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(1, 2**40)), max_size=60))
def test_repeated_rows_add_up(rows):
    table = PretokenTable()
    offsets = np.cumsum([0, *(len(pretoken) for pretoken, _ in rows)], dtype=np.int64)
    counts = np.array([number for _, number in rows], np.int64)
    table.insert(np.frombuffer(b"".join(p for p, _ in rows), np.uint8), offsets, counts)
    total = Counter[bytes]()
    for pretoken, number in rows:
        total[pretoken] += number
    assert as_dict(*table.export()) == total
    assert table.total == sum(total.values())


def test_rows_that_break_the_rules_are_refused():
    data = np.frombuffer(b"abc", np.uint8)
    for offsets, counts in (
        ([0, 4], [1]),
        ([-1, 2], [1]),
        ([0, 2, 1], [1, 1]),
        ([0, 1], [1, 1]),
        ([0, 1], [0]),
        ([0, 1], [-5]),
    ):
        table = PretokenTable()
        with pytest.raises(ValueError):
            table.insert(data, np.array(offsets), np.array(counts))
        assert len(table) == 0


# -- limits ----------------------------------------------------------------------------------


def test_counts_reach_the_limit_and_never_pass_it(scanner):
    table = table_of({b"a": LARGEST - 1, b"x" * 20: LARGEST})
    table.count(scanner, Block.of(b"a"))
    assert as_dict(*table.export()) == {b"a": LARGEST, b"x" * 20: LARGEST}
    assert table.total == 2 * LARGEST
    assert exact_sum(table.export()[0][2]) == 2 * LARGEST
    for add in (
        lambda: table.count(scanner, Block.of(b"a")),
        lambda: table.count(scanner, Block.of(b"x" * 20)),
        lambda: table.insert(*rows_of({b"a": 1})),
        lambda: table.add(table_of({b"x" * 20: LARGEST})),
    ):
        with pytest.raises(CapacityError, match="2\\^63"):
            add()
    assert as_dict(*table.export()) == {b"a": LARGEST, b"x" * 20: LARGEST}


def test_no_memory_is_a_capacity_error(monkeypatch):
    rows = rows_of(many_pretokens(50_000))
    table = table_of({b"a": 1})

    def refuse(size):
        raise MemoryError

    monkeypatch.setattr(pretoken_table, "_aligned_zeros", refuse)
    with pytest.raises(CapacityError, match="MB for slots"):
        table.insert(*rows)


def test_reset_forgets():
    table = table_of(many_pretokens(100_000))
    large = table.memory_bytes
    table.reset()
    assert (len(table), table.total, as_dict(*table.export())) == (0, 0, {})
    assert table.memory_bytes < large / 4
    table.insert(*rows_of({b"x" * 30: 2}))
    assert as_dict(*table.export()) == {b"x" * 30: 2}


# -- export ----------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 64])
def test_partitions_are_disjoint_and_depend_on_the_bytes_only(partitions):
    counts = many_pretokens(5_000)
    parts = table_of(counts).export(partitions)
    assert as_dict(*parts) == counts
    backwards = table_of(dict(reversed(counts.items()))).export(partitions)
    assert [as_dict(part) for part in parts] == [as_dict(part) for part in backwards]
    for data, offsets, numbers in parts:
        assert (data.dtype, offsets.dtype, numbers.dtype) == (np.uint8, np.int64, np.int64)
        assert (offsets[0], offsets[-1], len(offsets)) == (0, len(data), len(numbers) + 1)
        if partitions < 64:
            assert len(numbers) > 5_000 / partitions / 2


def test_export_leaves_out_what_is_too_long():
    counts = many_pretokens(3_000)
    table = table_of(counts)
    for longest in (0, 1, 5, 15, 16, 20, 100):
        kept = {k: n for k, n in counts.items() if len(k) <= longest}
        gone = {k: n for k, n in counts.items() if len(k) > longest}
        assert as_dict(*table.export(3, max_length=longest)) == kept
        assert table.left_out(longest) == pretoken_table.LeftOut(
            len(gone), sum(gone.values()), sum(map(len, gone))
        )
    assert as_dict(*table.export()) == counts


# -- twins -----------------------------------------------------------------------------------

MASK = 2**64 - 1
K1, K2, K3 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F


def mum(a: int, b: int) -> int:
    return (a * b & MASK) ^ (a * b >> 64)


def key_of(pretoken: bytes) -> tuple[int, int]:
    size = len(pretoken)
    if size <= 15:
        padded = int.from_bytes(pretoken, "little") | (size | 0x40) << 120
        return padded & MASK, padded >> 64
    mixed = size ^ K3
    for at in range(0, size - 16, 16):
        low, high = (int.from_bytes(pretoken[at + i : at + i + 8], "little") for i in (0, 8))
        mixed = mum(low ^ mixed, high ^ K1)
    low, high = (int.from_bytes(pretoken[i : i + 8 or None], "little") for i in (-16, -8))
    return mum(low ^ mixed, high ^ K2), 1 << 63 | size


def test_keys_hashes_and_partitions_are_as_written_down():
    """Partitions meet from different machines and versions, so the hash is for ever."""
    counts = many_pretokens(2_000) | {b"": 1, b"x" * 1000: 2}
    table = table_of(counts)
    slots = table._slots.view(np.uint64).reshape(-1, 4)
    used = slots[slots[:, 1] != 0]
    assert {(int(s[0]), int(s[1])): int(s[2]) for s in used} == {
        key_of(pretoken): number for pretoken, number in counts.items()
    }
    for number, part in enumerate(table.export(10)):
        for pretoken in as_dict(part):
            low, high = key_of(pretoken)
            assert (mum(low ^ K1, high ^ K2) >> 32) * 10 >> 32 == number


def test_every_pretoken_is_found_from_its_first_slot():
    counts = many_pretokens(60_000)
    table = table_of(counts)
    slots = table._slots.view(np.uint64).reshape(-1, 4)
    shift = int(table._words[layout.SHIFT])
    assert len(slots) == 2 << (64 - shift)
    assert len(table) <= 0.6 * len(slots)
    full = slots[:, 1] != 0
    for pretoken in list(counts)[::50]:
        low, high = key_of(pretoken)
        place = 2 * (mum(low ^ K1, high ^ K2) >> shift)
        while (int(slots[place, 0]), int(slots[place, 1])) != (low, high):
            assert full[place]
            place = (place + 1) % len(slots)
