"""The merge kernel against the textbook: the same merges in any slices and any room."""

import json
import random
import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merge_helpers import arrays, fast_train, result, slow_train, trainer

from raybpe import reference
from raybpe.errors import CapacityError, CountsError, UsageError
from raybpe.merges.byte_order import byte_ids
from raybpe.merges.trainer import MergeTrainer, _arrange, memory_estimate
from raybpe.merges.workspace import Tuning, Workspace

TIES = ("lowest-ids", "greatest-bytes")
# Each symbol type under several first thresholds: the kernel's own, none pruned, some and all
# pruned (so that lists are rebuilt again and again); with usual room and with none to spare.
TUNINGS = [
    Tuning(threshold=threshold, wide_symbols=wide, pool_slack=slack, room=room)
    for wide, (threshold, slack, room) in product(
        (False, True),
        ((None, 1.9, 1 << 12), (1, 1.0, 1), (40, 1.0, 2), (2**40, 1.0, 1), (2**62, 1.9, 64)),
    )
]


def random_words(chance: random.Random) -> dict[bytes, int]:
    alphabet = chance.choice([b"a", b"ab", b"abc", b"etaoin", b"\x00\x01\xff", bytes(range(256))])
    words: dict[bytes, int] = {}
    for _ in range(chance.randint(0, 40)):
        length = chance.randint(0, chance.choice([0, 1, 2, 4, 8, 30]))
        word = bytes(chance.choice(alphabet) for _ in range(length))
        words[word] = chance.choice([0, 1, 1, 2, 3, chance.randint(1, 10**4), 2**33])
    if chance.random() < 0.3:
        words[alphabet[:1] * chance.randint(2, 300)] = chance.randint(1, 9)
    return words


@pytest.mark.parametrize("tuning", TUNINGS, ids=str)
def test_random_words_equal_the_reference(tuning):
    chance = random.Random(str(tuning))
    for _ in range(150):
        words = random_words(chance)
        options = {
            "tie_break": chance.choice(TIES),
            "min_frequency": chance.choice([1, 1, 1, 2, 7]),
            "max_token_length": chance.choice([None, None, None, 1, 2, 3, 9]),
            "byte_ids": chance.choice([range(256), chance.sample(range(256), 256)]),
        }
        merges = chance.choice([0, 1, 7, 40, 200])
        want = reference.train(words, merges, **options)
        assert fast_train(words, merges, tuning=tuning, **options) == want, (words, options)


@given(
    st.dictionaries(
        st.one_of(st.binary(max_size=12), st.text("aab", max_size=24).map(str.encode)),
        st.integers(0, 50),
        max_size=12,
    ),
    st.sampled_from(TIES),
    st.sampled_from(TUNINGS),
)
@settings(deadline=None, max_examples=50)
def test_any_words_equal_the_reference(words, tie_break, tuning):
    want = reference.train(words, 60, tie_break=tie_break)
    assert fast_train(words, 60, tie_break=tie_break, tuning=tuning) == want


@pytest.mark.parametrize("tie_break", TIES)
@pytest.mark.parametrize("tuning", TUNINGS[1::3], ids=str)
def test_runs_overlaps_and_long_words(tie_break, tuning):
    cycle = bytes(b"abcab"[i % 5] for i in range(1000))
    mixed = bytes(random.Random(1).choice(b"ab") for _ in range(1000))
    words = {b"a" * 1000: 3, b"ab" * 500: 2, b"aab" * 7 + b"a": 5, cycle: 1, mixed: 1}
    words |= {b"": 9, b"a": 9, b"\x00\x00\x00": 4, b"\x00": 1}
    want = reference.train(words, 90, tie_break=tie_break)
    assert fast_train(words, 90, tie_break=tie_break, tuning=tuning) == want


@pytest.mark.parametrize("tie_break", TIES)
def test_real_text_in_tight_room(tie_break, sample_text, monkeypatch):
    words = reference.count_pretokens([sample_text(60_000).decode()])
    calls = {"_compact": 0, "_grow": 0, "_grow_pairs": 0, "rebuild": 0}

    def counted(name):
        real = getattr(Workspace, name)

        def wrapper(self, *arguments):
            calls[name] += 1
            return real(self, *arguments)

        monkeypatch.setattr(Workspace, name, wrapper)

    for name in calls:
        counted(name)
    # Room for nothing more than is asked for, every time.
    monkeypatch.setattr("raybpe.merges.workspace.GROWTH", 0.0)
    roomy = fast_train(words, 3000, tie_break=tie_break, tuning=Tuning(threshold=1))
    calls.update(dict.fromkeys(calls, 0))
    for wide in (False, True):
        tight = Tuning(threshold=10**9, wide_symbols=wide, pool_slack=1.0, room=1)
        assert fast_train(words, 3000, tie_break=tie_break, tuning=tight) == roomy
    assert calls["_compact"] > 50
    assert calls["_grow"] + calls["_grow_pairs"] > 50
    assert calls["rebuild"] >= 4
    if tie_break == "greatest-bytes":
        assert roomy == slow_train(words, 3000)
    assert roomy[0][:40] == reference.train(words, 40, tie_break=tie_break)[0]


def test_compacting_between_merges_changes_nothing(sample_text):
    words = reference.count_pretokens([sample_text(40_000).decode()])
    made = trainer(words, 2000)
    while not made.done:
        made.advance(1)
        workspace = made._work
        workspace._compact(drop_stale=made.made % 2 == 0)
        if made.made % 5 == 0:
            workspace._grow_pairs()
        if made.made % 500 == 0:
            workspace.rebuild(workspace.threshold)
    assert result(made) == fast_train(words, 2000)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_slices_equal_one_go(size, sample_text):
    words = reference.count_pretokens([sample_text(30_000).decode()])
    whole = fast_train(words, 500)
    sliced = trainer(words, 500)
    made = 0
    while not sliced.done:
        assert sliced.made == made
        made = sliced.advance(size)
        assert made <= sliced.made
        assert len(sliced.left) == len(sliced.counts) == made
    assert result(sliced) == whole
    timed = trainer(words, 500)
    while not timed.done:
        timed.advance(seconds=0.001)
    assert result(timed) == whole


def test_counts_of_merges_never_rise(sample_text):
    _, counts = fast_train(reference.count_pretokens([sample_text(100_000).decode()]), 2000)
    assert np.all(np.diff(counts) <= 0)


def test_an_advance_ends_soon_after_its_seconds(sample_text):
    made = trainer(reference.count_pretokens([sample_text(30_000).decode()]), 10**6)
    assert made.advance(seconds=0) < 10**6
    assert made.advance(0) == made.advance(-1) == made.made


def test_threads_train_side_by_side(sample_text):
    words = reference.count_pretokens([sample_text(30_000).decode()])
    trainers = [trainer(words, 400) for _ in range(4)]
    threads = [threading.Thread(target=made.advance) for made in trainers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result(made) == result(trainers[0]) for made in trainers)


def test_nothing_to_merge():
    for words in ({}, {b"": 5}, {b"a": 5, b"b": 1}, {b"ab": 0}):
        made = trainer(words, 10)
        assert made.advance() == 0
        assert (made.done, made.exhausted) == (True, True)
        assert len(made.left) == 0
    none_wanted = trainer({b"ab": 5}, 0)
    assert (none_wanted.done, none_wanted.exhausted) == (True, False)
    assert none_wanted.advance() == 0


def test_counts_near_the_largest_integer():
    most = 2**63 - 1
    assert fast_train({b"ab": most}, 1) == ([(b"a", b"b")], [most])
    assert fast_train({b"ab": most - 5, b"cd": 5}, 2)[1] == [most - 5, 5]
    assert fast_train({b"abc": 2**62 - 1, b"x": most, b"": most}, 2)[1] == [2**62 - 1] * 2
    for words in ({b"abc": most}, {b"ab": most, b"cd": 1}, {b"a" * 2**16: 2**50}):
        with pytest.raises(CapacityError, match="2\\^63"):
            trainer(words, 1)


def test_more_bytes_than_positions_can_name_are_refused():
    with pytest.raises(CapacityError, match="2\\^32"):
        _arrange(np.array([0, 2**32]), np.array([1]))


def test_bad_arrays_are_refused():
    data, offsets, counts = arrays({b"ab": 1, b"cd": 2})
    ids = np.arange(256, dtype=np.uint8)

    def make(*given, **options):
        return MergeTrainer(*given, **{"byte_ids": ids, "max_merges": 1} | options)

    with pytest.raises(CountsError, match="negative"):
        make(data, offsets, np.array([1, -2]))
    with pytest.raises(CountsError, match="offsets"):
        make(data, offsets[:-1], counts)
    with pytest.raises(CountsError, match="ascend"):
        make(data, np.array([0, 3, 2]), counts)
    with pytest.raises(CountsError, match="inside"):
        make(data, np.array([0, 2, 9]), counts)
    with pytest.raises(UsageError, match="tie rule"):
        make(data, offsets, counts, tie_break="first")
    with pytest.raises(UsageError, match="negative"):
        make(data, offsets, counts, max_merges=-1)


def test_repeated_words_add_up():
    data = np.frombuffer(b"abab", np.uint8)
    made = MergeTrainer(
        data, np.array([0, 2, 4]), np.array([3, 4]), byte_ids=byte_ids("gpt2"), max_merges=5
    )
    made.advance()
    assert made.counts.tolist() == [7]


def test_ties_between_long_tokens_compare_all_their_bytes():
    # Tokens that agree in their first eight bytes, are prefixes of one another, or hold zeros.
    stems = [b"0123456789", b"01234567\x00", b"01234567", b"0123456\x00", b"0123456"]
    words = {stem + end: 1 for stem in stems for end in (b"xy", b"\x00y", b"y")}
    assert fast_train(words, 200, tie_break="greatest-bytes") == slow_train(words, 200)


def test_many_merges_need_wide_symbols():
    chance = random.Random(4)
    words = {chance.randbytes(12): chance.randint(1, 10**6) for _ in range(9000)}
    merges, counts = fast_train(words, 70_000, tie_break="greatest-bytes")
    assert len(merges) == 70_000
    assert (merges, counts) == slow_train(words, 70_000)


def test_the_estimate_covers_what_is_held(sample_text):
    words = reference.count_pretokens([sample_text(200_000).decode()])
    made = trainer(words, 2000)
    made.advance()
    symbols = sum(map(len, words))
    assert made.memory_bytes <= memory_estimate(symbols, len(words), 2000)


def test_the_cs336_corpus_and_word_counts_at_ten_thousand(shared):
    text = (shared / "fixtures" / "corpus.en").read_text(encoding="utf-8")
    table = json.loads((shared / "fixtures" / "tinystories_word_counts.json").read_text())
    for words in (
        reference.count_pretokens([text]),
        {word.encode(): count for word, count in table.items()},
    ):
        fast = fast_train(words, 10_000, tie_break="greatest-bytes")
        assert fast == slow_train(words, 10_000)
