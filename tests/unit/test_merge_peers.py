"""The same merges as other trainers, on text where the rules are equal."""

import collections
import io
from pathlib import Path

import pytest
from merge_helpers import arrays, token_bytes

from raybpe import reference
from raybpe.merges.byte_order import BYTE_TO_CHARACTER, byte_ids, bytes_to_text
from raybpe.merges.trainer import MergeTrainer

VOCAB_SIZE = 3000
TEXTS = ("stdlib", "taylorswift.txt", "german.txt", "runs.txt", "tinystories_sample.txt")


@pytest.fixture(params=TEXTS)
def text(request, sample_text) -> str:
    if request.param == "stdlib":
        return sample_text(400_000).decode()
    path = Path(__file__).resolve().parents[3] / "shared" / "fixtures" / request.param
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path.read_text(encoding="utf-8")


def test_tokenizers(text):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.train_from_iterator(
        [text],
        tokenizers.trainers.BpeTrainer(
            vocab_size=VOCAB_SIZE,
            show_progress=False,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    words = reference.count_pretokens([text])
    ours = MergeTrainer(*arrays(words), byte_ids=byte_ids("gpt2"), max_merges=VOCAB_SIZE - 257)
    ours.advance()
    # Ids too: the special token first, then the bytes in GPT-2's order, then the merges.
    tokens = ["<|endoftext|>", *map(bytes_to_text, token_bytes(ours, byte_ids("gpt2")))]
    assert made.get_vocab() == {token: i for i, token in enumerate(tokens)}
    assert sorted(tokens[1:257]) == tokens[1:257] == sorted(BYTE_TO_CHARACTER.values())


def test_rustbpe(text):
    rustbpe = pytest.importorskip("rustbpe")
    made = rustbpe.Tokenizer()
    made.train_from_iterator(iter([text]), VOCAB_SIZE, pattern=reference.GPT2_PATTERN)
    theirs = [bytes(token) for token, _ in sorted(made.get_mergeable_ranks(), key=lambda x: x[1])]
    words = reference.count_pretokens([text])
    ours = MergeTrainer(*arrays(words), byte_ids=byte_ids("value"), max_merges=VOCAB_SIZE - 256)
    ours.advance()
    assert token_bytes(ours) == theirs


def test_bpeasy(text):
    bpeasy = pytest.importorskip("bpeasy")
    length = 20
    # Its limit is exclusive and does not hold for pairs of bytes; ours is inclusive.
    theirs = bpeasy.train_bpe(iter([text]), reference.GPT2_PATTERN, length + 1, VOCAB_SIZE)
    words = reference.count_pretokens([text])
    ours = MergeTrainer(
        *arrays(words),
        byte_ids=byte_ids("value"),
        max_merges=VOCAB_SIZE - 256,
        max_token_length=length,
    )
    ours.advance()
    assert {token: i for i, token in enumerate(token_bytes(ours))} == theirs


def test_subword_nmt_on_characters(text):
    learn_bpe = pytest.importorskip("subword_nmt.learn_bpe")
    few = dict(collections.Counter(text.split()).most_common(300))
    theirs = learn_bpe_merges(learn_bpe, few, 100)
    assert reference.train_on_characters(few, 100) == theirs


def learn_bpe_merges(learn_bpe, words: dict[str, int], number: int) -> list[tuple[str, str]]:
    table = io.StringIO("".join(f"{word} {count}\n" for word, count in words.items()))
    out = io.StringIO()
    learn_bpe.learn_bpe(table, out, number, is_dict=True)
    lines = out.getvalue().splitlines()[1:]
    return [(left, right) for left, right in (line.split(" ") for line in lines)]
