"""The same ids as tokenizers and tiktoken, document by document, on whole corpora.

    python benchmarks/check_ids.py english.txt multilingual.txt code.txt [--vocab-size 32000]
        [--gpt2 FOLDER] [--size 20MB]

Trains one tokenizer per pattern on the first corpus, gpt2 and cl100k, and encodes every corpus with
each: raybpe, Hugging Face tokenizers on our `tokenizer.json` and tiktoken on our ranks. FOLDER
holds the published `gpt2_vocab.json` and `gpt2_merges.txt`; with it, raybpe reads GPT-2's files and
tiktoken is built from the same vocabulary.

Engines know different versions of Unicode. Where ids of a document differ, the characters that the
other engine does not know yet are cut out of it, and what is between them must be equal.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

from train import cut
from trainers import SEPARATOR, documents

import raybpe
from raybpe.formats.verify import unknown_characters
from raybpe.settings import parse_size

Encode = Callable[[list[str]], list[list[int]]]

PATTERNS = ("gpt2", "cl100k")
GROUP_CHARACTERS = 4_000_000  # documents that are encoded in one go


def groups(corpus: Path) -> Iterator[list[str]]:
    """The documents of a corpus, each with the separator behind it, some at a time."""
    found: list[str] = []
    size = 0
    for document in documents(str(corpus)):
        found.append(document + SEPARATOR)
        size += len(document)
        if size >= GROUP_CHARACTERS:
            yield found
            found, size = [], 0
    yield found


def tokenizers_of(tokenizer: raybpe.Tokenizer) -> Encode:
    theirs = tokenizer.to_hf()

    def encode(texts: list[str]) -> list[list[int]]:
        return [row.ids for row in theirs.encode_batch(texts, add_special_tokens=False)]

    return encode


def tiktoken_of(tokenizer: raybpe.Tokenizer) -> Encode:
    encoding = tokenizer.to_tiktoken()
    return lambda texts: encoding.encode_batch(texts, allowed_special="all", num_threads=2)


def compare(
    tokenizer: raybpe.Tokenizer, rivals: dict[str, Encode], corpora: Sequence[Path], name: str
) -> bool:
    """Print a row per corpus and rival; whether all is equal."""
    equal = True
    for corpus in corpora:
        began = perf_counter()
        ids = dict.fromkeys(rivals, 0)
        newer: dict[str, set[str]] = {rival: set() for rival in rivals}
        wrong: dict[str, list[str]] = {rival: [] for rival in rivals}
        for texts in groups(corpus):
            ours = tokenizer.encode_batch(texts)
            for rival, encode in rivals.items():
                for text, our_ids, their_ids in zip(texts, ours, encode(texts), strict=True):
                    ids[rival] += len(our_ids)
                    if our_ids == their_ids:
                        continue
                    unknown = unknown_characters(text, rival)
                    newer[rival] |= unknown
                    pieces = between(text, unknown)
                    if not unknown or encode(pieces) != tokenizer.encode_batch(pieces):
                        wrong[rival].append(text)
        for rival in rivals:
            result = "equal"
            if newer[rival]:
                result += f" but for {len(newer[rival])} characters that {rival} does not know yet"
            if wrong[rival]:
                equal = False
                result = f"DIFFERENT in {len(wrong[rival])} documents: {wrong[rival][0]!r:.200}"
            print(f"{name}, {corpus.name}, {rival}: {ids[rival]:,} ids {result}", flush=True)
        print(f"    {perf_counter() - began:.0f} s", flush=True)
    return equal


def between(text: str, characters: set[str]) -> list[str]:
    """The stretches of a text between some characters."""
    pieces = re.split("|".join(map(re.escape, characters)), text) if characters else [text]
    return [piece for piece in pieces if piece]


def published(folder: Path, scratch: Path) -> raybpe.Tokenizer:
    """GPT-2's own tokenizer."""
    shutil.copy(folder / "gpt2_vocab.json", scratch / "vocab.json")
    merges = (folder / "gpt2_merges.txt").read_text(encoding="utf-8")
    (scratch / "merges.txt").write_text(merges, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return raybpe.Tokenizer.load(scratch / "vocab.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--gpt2", type=Path, help="folder of GPT-2's published files")
    parser.add_argument("--size", help="use only the first part of each, such as 20MB")
    given = parser.parse_args()
    equal = True
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        corpora = given.corpora
        if given.size:
            corpora = [cut(corpus, parse_size(given.size), scratch) for corpus in corpora]
        for pattern in PATTERNS:
            tokenizer = raybpe.train(
                [str(corpora[0])],
                given.vocab_size,
                pattern=pattern,
                special_tokens=[SEPARATOR],
                progress="none",
            )
            rivals = {"tokenizers": tokenizers_of(tokenizer), "tiktoken": tiktoken_of(tokenizer)}
            equal &= compare(tokenizer, rivals, corpora, pattern)
        if given.gpt2:
            tokenizer = published(given.gpt2, scratch)
            rivals = {"tiktoken": tiktoken_of(tokenizer)}
            equal &= compare(tokenizer, rivals, corpora, "GPT-2 as published")
    if not equal:
        raise SystemExit("ids differ")


if __name__ == "__main__":
    main()
