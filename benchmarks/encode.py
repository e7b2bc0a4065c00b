"""Encoding side by side with other tokenizers: same text, same vocabulary, ids compared.

    python benchmarks/encode.py tokenizer/ english.txt [--size 50MB] [--repeats 5] [--threads 1]

TOKENIZER is what `raybpe train` wrote. Each encoder is loaded from the files in that folder; one
that cannot take them is named with its reason. bpe-openai and quicktok only run the vocabularies
that they bring along, so for them raybpe takes theirs: a second table, on `cl100k_base`.

Contenders take turns, so that whatever else the machine does meets all of them alike. `first` is
the first call of a new encoder, after another one of its kind has compiled or loaded its code;
`again` the median of the later ones. MB/s are 10**6 bytes of text per second. What a contender
returns is its own: arrays of raybpe, awkward arrays of gigatoken, lists of the others.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from train import cut

import raybpe
from raybpe.settings import parse_size

SPECIAL = "<|endoftext|>"
CL100K_SPECIAL = 100257
CL100K_TOKENS = 100256
MOST_BYTES = 10**6  # longest document that bpe-openai takes
SLOW_BYTES = 4 * 10**6  # text for contenders of a few MB/s
SHORT_TEXTS = ("a", "Hello, world!", "The quick brown fox jumps over the lazy dog, 12 times a day.")
SHORT_CALLS = 5000

Encode = Callable[[bytes], Any]
Make = Callable[[], Encode]


class Contender:
    """An encoder: its package, how to make a new one, and whether it is slow."""

    def __init__(self, package: str, make: Make, *, slow: bool = False) -> None:
        self.name = f"{package} {raybpe.__version__ if package == 'raybpe' else version(package)}"
        self.make = make
        self.slow = slow
        self.first: list[float] = []
        self.again: list[float] = []
        self.ids: Any = None


def flat(ids: Any) -> np.ndarray:
    """Ids as one array, whatever the contender returned."""
    return np.asarray(ids, np.int64)


def contenders(folder: Path, text_file: Path, threads: int) -> list[Contender]:
    """Those that can load the vocabulary in `folder`."""
    own = raybpe.Tokenizer.load(folder)

    def ours() -> Encode:
        tokenizer = raybpe.Tokenizer.load(folder)
        return lambda text: tokenizer.encode_to_numpy(text, threads=threads)

    def tiktoken() -> Encode:
        encoding = own.to_tiktoken()
        return lambda text: encoding.encode(text.decode(), allowed_special="all")

    def tokenizers() -> Encode:
        tokenizer = own.to_hf()
        return lambda text: tokenizer.encode(text.decode()).ids

    def gigatoken() -> Encode:
        import gigatoken

        tokenizer = gigatoken.Tokenizer(folder / "tokenizer.json")
        parallel = threads > 1
        # Its fast way is to read files itself; text of another size than the file is given whole.
        return lambda text: (
            tokenizer.encode_files(text_file, parallel=parallel)[0]
            if len(text) == text_file.stat().st_size
            else tokenizer.encode(text)
        )

    found = []
    for package, make, slow in (
        ("raybpe", ours, False),
        ("gigatoken", gigatoken, False),
        ("tiktoken", tiktoken, True),
        ("tokenizers", tokenizers, True),
    ):
        try:
            contender = Contender(package, make, slow=slow)
            contender.make()(b"Code is loaded, kernels are compiled.")
            found.append(contender)
        except Exception as reason:
            if package == "raybpe":
                raise
            print(f"{package}: left out, {type(reason).__name__}: {str(reason)[:100]}")
    return found


def published_contenders(name: str, threads: int) -> list[Contender]:
    """Those that bring their own `name`, and raybpe with the ranks of the first of them."""
    found: list[Contender] = []
    ranks: dict[bytes, int] = {}

    def bpe_openai() -> Encode:
        import bpe_openai as package

        encoding = package.get_encoding(name)
        ranks.update({token: number for number, token in enumerate(encoding.token_byte_values())})
        return by_document(encoding.encode_ordinary)

    def quicktok() -> Encode:
        import quicktok as package

        encoding = package.get_encoding(name)
        return by_document(encoding.encode_ordinary)

    def ours() -> Encode:
        tokenizer = from_ranks(ranks)
        return lambda text: tokenizer.encode_to_numpy(text, threads=threads)

    for package, make in (("bpe-openai", bpe_openai), ("quicktok-v1", quicktok), ("raybpe", ours)):
        try:
            contender = Contender(package, make, slow=package != "raybpe")
            contender.make()(b"Code is loaded, kernels are compiled.")
            found.append(contender)
        except Exception as reason:
            if package == "raybpe":
                raise
            print(f"{package}: left out, {type(reason).__name__}: {str(reason)[:100]}")
    return found[-1:] + found[:-1]


def by_document(encode: Callable[[str], list[int]]) -> Encode:
    """Encodes the documents of a text one by one, as some must have it."""

    def encode_all(text: bytes) -> list[int]:
        ids: list[int] = []
        for document in text.decode().split(SPECIAL):
            ids += encode(document)
            ids.append(CL100K_SPECIAL)
        return ids[:-1]

    return encode_all


def from_ranks(ranks: dict[bytes, int]) -> raybpe.Tokenizer:
    """A tokenizer of published cl100k ranks, by way of its file."""
    import base64

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cl100k_base.tiktoken"
        rows = sorted(ranks.items(), key=lambda row: row[1])[:CL100K_TOKENS]
        lines = [b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in rows]
        path.write_bytes(b"".join(lines))
        return raybpe.Tokenizer.load(path)


def measure(found: list[Contender], text: bytes, repeats: int) -> None:
    """Time all contenders in turn."""
    part = text[:SLOW_BYTES].decode("utf-8", "ignore").encode()
    for contender in found:
        given = part if contender.slow else text
        encode = contender.make()
        began = perf_counter()
        contender.ids = encode(given)
        contender.first.append(len(given) / (perf_counter() - began) / 1e6)
        contender.make = lambda encode=encode: encode
    for _ in range(repeats):
        for contender in found:
            given = part if contender.slow else text
            encode = contender.make()
            began = perf_counter()
            encode(given)
            contender.again.append(len(given) / (perf_counter() - began) / 1e6)


def report(found: list[Contender], text: bytes) -> None:
    """A table of speeds, of ratios to the first contender, and of whether the ids agree."""
    part = text[:SLOW_BYTES].decode("utf-8", "ignore").encode()
    ours = found[0]
    of_part = flat(ours.make()(part))
    print("\n| encoder | first MB/s | raybpe is | again MB/s | raybpe is | ids |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for contender in found:
        expected = of_part if contender.slow else flat(ours.ids)
        equal = "equal" if np.array_equal(flat(contender.ids), expected) else "DIFFER"
        first, again = contender.first[0], median(contender.again)
        print(
            f"| {contender.name} | {first:,.1f} | {ours.first[0] / first:.1f}x "
            f"| {again:,.1f} | {median(ours.again) / again:.1f}x | {equal} |"
        )


def short_texts(folder: Path) -> None:
    """Microseconds of one `encode` of a short str, least of several rounds."""
    own = raybpe.Tokenizer.load(folder)
    encoding = own.to_tiktoken()
    print("\n| bytes | raybpe encode, µs | tiktoken encode | tiktoken encode_ordinary |")
    print("| ---: | ---: | ---: | ---: |")
    for text in SHORT_TEXTS:
        times = []
        for encode in (own.encode, encoding.encode, encoding.encode_ordinary):
            rounds = []
            for _ in range(7):
                began = perf_counter()
                for _ in range(SHORT_CALLS):
                    encode(text)
                rounds.append((perf_counter() - began) / SHORT_CALLS * 1e6)
            times.append(f"{min(rounds):.2f}")
        print(f"| {len(text.encode())} | {' | '.join(times)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer", type=Path, help="a folder that raybpe train wrote")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--size", help="use only the first part, such as 50MB")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="for raybpe and gigatoken")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        corpus = given.corpus
        if given.size:
            corpus = cut(corpus, parse_size(given.size), Path(scratch))
        text = corpus.read_bytes()
        print(f"{corpus.name}: {len(text):,} bytes, {given.threads} thread(s), {given.tokenizer}")
        found = contenders(given.tokenizer, corpus, given.threads)
        measure(found, text, given.repeats)
        report(found, text)
        short_texts(given.tokenizer)
        print("\ncl100k_base as published")
        found = published_contenders("cl100k_base", given.threads)
        fitting = [part for part in text.split(SPECIAL.encode()) if len(part) < MOST_BYTES]
        text = SPECIAL.encode().join(fitting)
        measure(found, text, given.repeats)
        report(found, text)


if __name__ == "__main__":
    main()
