"""Text to ids: equal to tiktoken, to the textbook, and the same however the text is given."""

import threading
from random import Random

import numpy as np
import pytest
from encode_helpers import END, encode_plainly, gpt2_files, random_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe import reference
from raybpe.block import Block
from raybpe.errors import UsageError
from raybpe.pretokenize import pretokenizer
from raybpe.tokenizer import Tokenizer, encoder, worker

SNIPPETS = [
    " the", "ab", "abab", "a", " ", "\n", "\n\n", "don't", "'ll", "12", "345", "é", "नमस्ते",
    "漢字", "😀", "\u00a0", "\u3000", END, "<|end", "|>", "<", "\x00", "!?", "_", "\t", "bca",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(SNIPPETS), max_size=30).map("".join)
NOISE = st.lists(
    st.one_of(st.sampled_from(SNIPPETS).map(str.encode), st.binary(max_size=3)), max_size=20
).map(b"".join)


@pytest.fixture(scope="module")
def gpt2(shared):
    vocab, merges = gpt2_files(shared / "fixtures")
    return Tokenizer(vocab, merges, [END])


@pytest.fixture(scope="module")
def tiktoken_gpt2(gpt2):
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {token: number for number, token in gpt2.vocab.items() if token != END.encode()}
    return tiktoken.Encoding(
        "gpt2", pat_str=gpt2.pattern.regex, mergeable_ranks=ranks, special_tokens={END: 50256}
    )


def trained(text, merges, **options):
    counts = reference.count_pretokens([text])
    pairs, _ = reference.train(counts, merges)
    return Tokenizer(reference.vocabulary(pairs, [END]), pairs, [END], **options)


SMALL = trained("the abab abc don't bca don'll 12345 the the ab éé नमस्ते 漢字 " * 3, 40)


def test_ids_equal_tiktokens_on_fixtures_and_small_files(gpt2, tiktoken_gpt2, shared):
    files = [*(shared / "fixtures").glob("*.txt"), *(shared / "corpora" / "small").glob("*.txt")]
    compared = 0
    for path in sorted(files):
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        expected = tiktoken_gpt2.encode(text, allowed_special="all")
        ids = gpt2.encode_to_numpy(text)
        assert ids.dtype == np.uint16
        assert ids.tolist() == expected, path.name
        assert gpt2.decode(ids) == text
        assert gpt2.encode(text, allowed_special=()) == tiktoken_gpt2.encode_ordinary(text)
        compared += 1
    assert compared > 20


def test_bytes_that_are_not_utf8_come_back(gpt2, shared):
    for path in sorted((shared / "corpora" / "small").iterdir()):
        data = path.read_bytes()
        assert gpt2.decode_bytes(gpt2.encode_to_numpy(data)) == data, path.name


@settings(deadline=None, max_examples=150)
@given(TEXTS)
def test_ids_equal_the_textbooks(text):
    expected = reference.encode(text, SMALL.vocab, SMALL.merges, SMALL.special_tokens)
    assert SMALL.encode(text) == expected
    assert SMALL.encode(text.encode()) == expected
    assert SMALL.encode_to_numpy(text).tolist() == expected
    assert SMALL.count_tokens(text) == len(expected)
    assert SMALL.decode(expected) == text


@settings(deadline=None, max_examples=150)
@given(NOISE)
def test_any_bytes_are_encoded_as_defined(data):
    expected = encode_plainly(SMALL, data)
    assert SMALL.encode(data) == expected
    assert list(SMALL.encode_iterable([data[:3], data[3:]])) == expected
    assert SMALL.decode_bytes(expected) == data


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**9), st.integers(0, 25), st.text("ab ", max_size=70))
def test_merges_in_any_order_follow_the_definition(seed, merges, text):
    made = random_tokenizer(Random(seed), merges, pattern="none")
    expected = encode_plainly(made, text.encode())
    assert made.encode(text) == expected
    # As part of one that is too long to be merged side by side with others.
    long = text + "".join(Random(seed).choices("ab ", k=60))
    assert made.encode(long) == encode_plainly(made, long.encode())


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**9),
    st.integers(0, 25),
    st.lists(st.tuples(st.sampled_from(["a", "b", "ab", "aab"]), st.integers(1, 70)), max_size=6),
)
def test_long_runs_merge_in_any_order_by_the_definition(seed, merges, runs):
    made = random_tokenizer(Random(seed), merges, pattern="none")
    text = "".join(run * count for run, count in runs)
    assert made.encode(text) == encode_plainly(made, text.encode())


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**9), st.integers(1, 150), st.integers(1, 90))
def test_new_pretokens_find_their_place_in_the_output(seed, count, longest):
    # More of them than may wait, the same one twice, known ones and special tokens between them.
    random = Random(seed)
    made = random_tokenizer(random, 25, pattern="gpt2", special_tokens=["<|endoftext|>"])
    words = ["".join(random.choices("ab", k=random.randint(1, longest))) for _ in range(count)]
    words += random.choices(words, k=count // 2)
    random.shuffle(words)
    text = "".join(random.choice([" ", " ", "<|endoftext|>", "\n"]) + word for word in words)
    expected = encode_plainly(made, text.encode())
    assert made.encode_to_numpy(text).tolist() == expected
    assert made.encode(text) == expected


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**9), st.text("ab ", max_size=50))
def test_whole_tokens_may_win_over_merges(seed, text):
    made = random_tokenizer(Random(seed), 15, ignore_merges=True)
    assert made.encode(text) == encode_plainly(made, text.encode())


def test_a_token_that_merges_do_not_make_is_found_whole_only_if_asked():
    vocab = {value: bytes([value]) for value in range(256)}
    vocab |= {256: b"abc", 257: b" " + b"x" * 300, 70_000: b" a much longer token"}
    text = "abc " + "x" * 300
    assert Tokenizer(vocab, []).encode(text) == list(text.encode())
    whole = Tokenizer(vocab, [], ignore_merges=True)
    assert whole.encode(text) == [256, 257]
    assert whole.encode("abcd") == list(b"abcd")
    assert whole.encode_to_numpy("abc").dtype == np.uint32


@pytest.mark.parametrize("char", ["a", "^", " ", "é"])
def test_a_long_run_is_encoded_in_n_log_n(char):  # rows 43, 44
    made = trained(f"{char * 64} {char * 48} {char * 7}", 12)
    for length in (47, 48, 49, 50, 255, 256, 257, 1000):
        text = char * length
        assert made.encode(text) == encode_plainly(made, text.encode())
    text = char * 100_000
    ids = made.encode(text)
    assert made.decode(ids) == text
    assert len(ids) < len(text.encode()) / 4


@pytest.mark.parametrize(
    "pattern", ["gpt2", "cl100k", "o200k", "llama3", "none", "whitespace", r"(?<=a)b+|\w+"]
)
def test_every_engine_encodes_as_defined(pattern):
    made = trained(" ".join(SNIPPETS) * 3, 60, pattern=pattern)
    for seed in range(40):
        random = Random(seed)
        data = "".join(random.choices(SNIPPETS, k=30)).encode()
        if seed % 3 == 0:
            data += bytes(random.choices(range(256), k=5)) + data
        expected = encode_plainly(made, data)
        assert made.encode(data) == expected
        assert list(made.encode_iterable([data[:9], b"", data[9:]])) == expected
        assert made.encode_batch([data, b"", data]) == [expected, [], expected]
        assert made.decode_bytes(expected) == data


def test_the_engines_are_those_meant():
    kinds = {pattern: pretokenizer(SMALL_PATTERN(pattern)).engine for pattern in ("gpt2", "o200k")}
    assert kinds == {"gpt2": "scan", "o200k": "automaton"}
    assert pretokenizer(SMALL_PATTERN(r"(?<=a)b+|\w+")).engine == "regex"


def SMALL_PATTERN(pattern):
    return Tokenizer(SMALL.vocab, [], pattern=pattern).pattern


def test_stretches_without_a_match_are_encoded_too():
    made = trained("abc abc", 4, pattern=r"[a-z]+")
    assert made.decode(made.encode("abc--ABC abc!")) == "abc--ABC abc!"
    assert made.encode("--abc") == encode_plainly(made, b"--abc")


@pytest.mark.parametrize("size", [1, 3, 1 << 20])
def test_streams_give_the_ids_of_the_joined_text(size, sample_text, monkeypatch):
    monkeypatch.setattr(encoder, "STREAM_BYTES", 64)
    data = sample_text(60_000)[:60_000]
    text = data.decode("utf-8", "ignore")
    expected = SMALL.encode(text)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(SMALL.encode_iterable(pieces)) == expected
    assert list(SMALL.encode_iterable(iter([]))) == []


def test_a_stream_starts_before_its_source_ends():
    def endless():
        while True:
            yield "the abc\n"

    stream = SMALL.encode_iterable(endless())
    head = [next(stream) for _ in range(100_000)]
    assert SMALL.decode(head).startswith("the abc\nthe abc\n")


def test_surrogates_may_be_split_over_the_items_of_a_stream():
    items = ["a\ud83d", "\ude00b"]
    assert SMALL.decode(SMALL.encode_iterable(items)) == "".join(items)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_large_texts_are_cut_for_threads_without_a_trace(threads, sample_text, monkeypatch):
    monkeypatch.setattr(encoder, "PART_BYTES", 5000)
    data = sample_text(200_000)
    for given_text in (data, data[:100_001] + b"\xff" + data[100_001:], data.decode()):
        whole = given_text.encode() if isinstance(given_text, str) else given_text
        ids = SMALL.encode_to_numpy(given_text, threads=threads)
        assert SMALL.decode_bytes(ids) == whole
    assert SMALL.encode_to_numpy(data, threads=threads).tolist() == encode_plainly(SMALL, data)


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_give_the_ids_of_each_text(threads, sample_text, monkeypatch):
    monkeypatch.setattr(encoder, "GROUP_BYTES", 3000)
    texts = [*sample_text(30_000).decode().splitlines(), "", END, "\ud800", b"\xff", b"ab", ""]
    expected = [SMALL.encode(text) for text in texts]
    assert SMALL.encode_batch(texts, threads=threads) == expected
    assert SMALL.encode_batch(iter(texts), threads=threads) == expected
    assert SMALL.encode_batch([]) == []


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_are_at_least_one(threads):
    with pytest.raises(UsageError, match="threads"):
        SMALL.encode_to_numpy("abc", threads=threads)
    with pytest.raises(UsageError, match="threads"):
        SMALL.encode_batch(["abc"], threads=threads)


@pytest.mark.parametrize("merges", [0, 400])
def test_a_cache_that_fills_up_changes_nothing(merges, sample_text, monkeypatch):
    """The cache grows, its arena grows, both start afresh, the output grows."""
    monkeypatch.setattr(worker, "CACHE_BYTES", 1 << 18)
    monkeypatch.setattr(worker, "_FIRST_ARENA", 1 << 12)
    monkeypatch.setattr(encoder, "STREAM_BYTES", 16)
    data = sample_text(400_000)
    made = trained(data[:20_000].decode(), merges)
    expected = encode_plainly(made, data[:300_000])
    for _ in range(2):
        assert made.encode_to_numpy(data[:300_000], threads=1).tolist() == expected
    (used,) = made._encoder._idle
    assert used._kept[worker.word.TABLE].nbytes <= 1 << 18
    assert used._kept[worker.word.ARENA].nbytes <= 1 << 17


def test_arrays_and_views_are_encoded_where_they_lie():
    data = b"the abc " * 2000
    expected = SMALL.encode(data)
    for view in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        assert SMALL.encode_to_numpy(view).tolist() == expected
    assert SMALL.encode_to_numpy("").shape == (0,)
    assert SMALL.encode_to_numpy(b"").dtype == np.uint16


BUFFER = np.frombuffer(b"the <s> abc" * 9, np.uint8)


@pytest.mark.parametrize(
    "view",
    [bytearray(BUFFER), memoryview(BUFFER), BUFFER, np.repeat(BUFFER, 2)[::2], BUFFER[None]],
    ids=["bytearray", "memoryview", "array", "strided", "rows"],
)
def test_every_way_to_encode_takes_every_buffer_of_bytes(view):
    made = Tokenizer(SMALL.vocab, SMALL.merges, ["<s>"])
    expected = made.encode(BUFFER.tobytes())
    assert made.encode(view) == made.encode_to_numpy(view).tolist() == expected
    assert made.encode_batch([view, b""]) == [expected, []]
    assert list(made.encode_iterable([view])) == expected
    assert made.decode_bytes(made.encode(view, dropout=0.5)) == BUFFER.tobytes()
    with pytest.raises(UsageError, match="'<s>'"):
        made.encode(view, allowed_special=(), disallowed_special="all")


@pytest.mark.parametrize("dtype", [np.uint16, np.int64, np.float64, "U1"])
def test_arrays_of_anything_but_bytes_are_no_text(dtype):
    for encode in (SMALL.encode, SMALL.encode_to_numpy, lambda a: SMALL.encode_batch([a])):
        with pytest.raises(UsageError, match="items of"):
            encode(np.zeros(3, dtype))


def test_a_batch_is_not_one_text():
    with pytest.raises(UsageError, match="several texts"):
        SMALL.encode_batch("the abc")


def test_texts_around_the_size_of_the_own_buffer():
    for size in range(worker.SMALL_TEXT - 2, worker.SMALL_TEXT + 3):
        text = ("ab c" * size)[:size]
        assert SMALL.decode(SMALL.encode(text)) == text
        assert SMALL.encode("!" * size) == [SMALL.vocabulary.byte_ids[33]] * size


def test_one_tokenizer_serves_many_threads():
    texts = ["".join(Random(seed).choices(SNIPPETS, k=200)) for seed in range(16)]
    expected = [SMALL.encode(text) for text in texts]
    wrong = []

    def run(index):
        for _ in range(200):
            if SMALL.encode(texts[index]) != expected[index]:
                wrong.append(index)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_special_token_may_lie_anywhere():
    for before in ("", "ab", " ", "x" * 63, "x" * 64, "é"):
        for after in ("", "ab", " ", END):
            text = before + END + after
            assert SMALL.encode(text) == encode_plainly(SMALL, text.encode())


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(TEXTS.map(str.encode), NOISE), max_size=8), st.integers(0, 3))
def test_documents_of_a_block_are_texts_of_their_own(documents, gap):
    """Whatever lies between them; also when it would complete a character or a special token."""
    between = b"\xac|>"[:gap]
    data = np.frombuffer(b"".join(document + between for document in documents) + bytes(128), "u1")
    sizes = np.array([len(document) for document in documents], np.int64)
    starts = np.cumsum(sizes + gap) - sizes - gap
    ids, ends = SMALL.encode_documents(Block(data, starts, starts + sizes))
    parts = [part.tolist() for part in np.split(ids, ends[:-1])] if documents else []
    assert parts == [encode_plainly(SMALL, document) for document in documents]
    assert ids.dtype == np.uint16


def test_a_stretch_between_matches_is_one_pretoken():
    vocab = {number: bytes([number]) for number in range(256)} | {256: b" '"}
    tokenizer = Tokenizer(vocab, [(b" ", b"'")], pattern=r"\p{L}+|\s+(?=\n|\Z)")
    assert tokenizer.encode("a 'b") == [ord("a"), 256, ord("b")]
    assert tokenizer.encode(" '" * 3) == [256] * 3


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["a", " ", "'", "\n", "é", "1"]), max_size=25).map("".join))
def test_stretches_between_matches_as_in_the_definition(text):
    tokenizer = random_tokenizer(Random(5), 40, b"a '\n1", pattern=r"\p{L}+|\s+(?=\n|\Z)|1{2}(?=a)")
    assert tokenizer.encode(text) == encode_plainly(tokenizer, text.encode())


def test_a_stretch_between_matches_longer_than_a_batch():
    tokenizer = random_tokenizer(Random(6), 40, b"!? ", pattern=r"\p{L}+")
    for text in ("!?" * 3000, "a" + "! " * 1000 + "b!?", "! " * 255 + "b" + "?" * 600):
        assert tokenizer.encode(text) == encode_plainly(tokenizer, text.encode())
    assert tokenizer.pattern.name is None
