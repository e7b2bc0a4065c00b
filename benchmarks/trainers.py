"""Each trainer as a process of its own: `python trainers.py NAME CORPUS VOCAB_SIZE OUTPUT`.

A trainer gets the corpus as its users would give it and writes its own kind of file:
raybpe a folder, tokenizers and gigabpe `tokenizer.json`, the others ranks in tiktoken form, except
sentencepiece, which writes its model. `merged_tokens` reads any of them back, so that the merges
can be compared outside the timing.

What each one counts (found by running them, see check_merges.py):

- tokenizers: documents from an iterator, full byte alphabet, GPT-2's byte order;
- gigabpe: lines with their ends, the separator as ordinary text, only the bytes that occur as
  alphabet;
- gigatoken: documents split on the special token, GPT-2's byte order;
- rustbpe, bpeasy: documents from an iterator, base ids by byte value;
- sentencepiece: its own normal form and rules; nothing to compare, a time only.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

SEPARATOR = "<|endoftext|>"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
READ_BYTES = 1 << 24

PACKAGES = ("raybpe", "tokenizers", "rustbpe", "bpeasy", "gigabpe", "gigatoken", "sentencepiece")


def documents(corpus: str) -> Iterator[str]:
    """Stretches between separators, streamed, so that no rival holds the text because of us."""
    rest = b""
    mark = SEPARATOR.encode()
    with open(corpus, "rb") as file:
        while piece := file.read(READ_BYTES):
            *whole, rest = (rest + piece).split(mark)
            for document in whole:
                yield document.decode()
    yield rest.decode()


def train_raybpe(corpus: str, vocab_size: int, output: str, *more: str) -> None:
    from raybpe.cli import main

    sys.argv = [
        "raybpe", "train", corpus, "--vocab-size", str(vocab_size), "--output", output,
        "--quiet", "--executor", "local", *more,
    ]  # fmt: skip
    main()


def train_raybpe_ray(corpus: str, vocab_size: int, output: str) -> None:
    train_raybpe(corpus, vocab_size, output, "--executor", "ray")


def train_raybpe_lines(corpus: str, vocab_size: int, output: str) -> None:
    """As Hugging Face reads files: lines with their ends, the separator as ordinary text."""
    import raybpe

    with open(corpus, "rb") as lines:
        raybpe.train_from_iterator(
            lines, vocab_size, special_tokens=None, output=output, progress="none"
        )


def train_raybpe_as_rustbpe(corpus: str, vocab_size: int, output: str) -> None:
    train_raybpe(corpus, vocab_size, output, "--compat", "rustbpe")


def train_tokenizers(corpus: str, vocab_size: int, output: str) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[SEPARATOR],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents(corpus), trainer)
    tokenizer.save(output)


def train_gigabpe(corpus: str, vocab_size: int, output: str) -> None:
    import gigabpe

    gigabpe.train_tokenizer(
        [corpus], vocab_size, output, pretokenizer="bytelevel", special_tokens=[SEPARATOR]
    )


def train_gigatoken(corpus: str, vocab_size: int, output: str) -> None:
    import gigatoken

    source = gigatoken.TextFileSource([corpus], separator=SEPARATOR)
    vocab, _ = gigatoken.train_bpe(source, vocab_size, [SEPARATOR])
    write_ranks(
        output, [token for _, token in sorted(vocab.items()) if token != SEPARATOR.encode()]
    )


def train_rustbpe(corpus: str, vocab_size: int, output: str) -> None:
    import rustbpe

    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(documents(corpus), vocab_size - 1, pattern=GPT2)
    ranks = sorted(tokenizer.get_mergeable_ranks(), key=lambda row: row[1])
    write_ranks(output, [bytes(token) for token, _ in ranks])


def train_bpeasy(corpus: str, vocab_size: int, output: str) -> None:
    import bpeasy

    longest = 1 << 20  # no limit in effect: its rule for one is a rule of its own
    vocab = bpeasy.train_bpe(documents(corpus), GPT2, longest, vocab_size - 1)
    write_ranks(output, [token for token, _ in sorted(vocab.items(), key=lambda row: row[1])])


def train_sentencepiece(corpus: str, vocab_size: int, output: str) -> None:
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=corpus,
        model_prefix=output,
        vocab_size=vocab_size,
        model_type="bpe",
        byte_fallback=True,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=1 << 24,
        user_defined_symbols=[SEPARATOR],
        hard_vocab_limit=False,
        minloglevel=2,
    )


def write_ranks(path: str, tokens: list[bytes]) -> None:
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    Path(path).write_bytes(b"".join(lines))


def byte_values() -> dict[str, int]:
    """GPT-2's printable stand-ins, back to bytes; computed here to stay independent of raybpe."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(value): value for value in shown}
    hidden = (value for value in range(256) if value not in set(shown))
    return table | {chr(256 + place): value for place, value in enumerate(hidden)}


def merged_tokens(output: str) -> list[bytes]:
    """The bytes of each merge's token, in order, from what a trainer wrote."""
    path = Path(output)
    if path.is_dir():
        path = path / "tokenizer.json"
    text = path.read_bytes()
    if text[:1] != b"{":
        tokens = [base64.b64decode(line.split()[0]) for line in text.splitlines()]
        return [token for token in tokens if len(token) > 1]
    values = byte_values()
    merges = json.loads(text)["model"]["merges"]
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in merges)
    return [bytes(values[character] for character in left + right) for left, right in pairs]


TRAINERS = {
    "raybpe": train_raybpe,
    "raybpe-ray": train_raybpe_ray,
    "raybpe-lines": train_raybpe_lines,
    "raybpe-as-rustbpe": train_raybpe_as_rustbpe,
    "tokenizers": train_tokenizers,
    "gigabpe": train_gigabpe,
    "gigatoken": train_gigatoken,
    "rustbpe": train_rustbpe,
    "bpeasy": train_bpeasy,
    "sentencepiece": train_sentencepiece,
}

if __name__ == "__main__":
    NAME, CORPUS, VOCAB_SIZE, OUTPUT = sys.argv[1:]
    TRAINERS[NAME](CORPUS, int(VOCAB_SIZE), OUTPUT)
