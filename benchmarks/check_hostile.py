"""Damage tokenizer files in every way and load them: an error of ours, or a tokenizer that works.

    python benchmarks/check_hostile.py [--files 100000] [--seed 0]

Files of every format are truncated, have bytes flipped, cut out, doubled, exchanged or replaced by
things that break parsers, and are loaded from a folder as a user would. Whatever loads must encode
and decode a text to itself. Any exception but a RaybpeError, a load over SLOW_SECONDS, or a peak of
memory over MEMORY_BYTES is a failure: the seed and the file are named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

from raybpe.errors import RaybpeError
from raybpe.formats import export_tokenizer, read_tokenizer, write_tokenizer
from raybpe.tokenizer.tokenizer import Tokenizer

SLOW_SECONDS = 10.0  # of processor time: a new pattern takes seconds to compile
MEMORY_BYTES = 1 << 30
TEXT = "The tokenizer's 123 tokens,  naïve 日本 <|endoftext|>\n"
BREAKERS = (
    b"null", b"true", b"[]", b"{}", b'""', b"-1", b"1e999", b"16777215", b"4294967296", b"0.5",
    b"9" * 400, b'"\\ud800"', b'"\\u0000"', b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\r\n",
    b"[" * 2000, b'{"a":' * 2000, b"\\", b'"', b",", b":", b" ", b"\n", b"\n\n", b"#version: 0.2\n",
    b"<|endoftext|>", b"(((((", b"(?i)", b"\\\\p{Zz}", b"(a+)+$", b"{1,99999}", b'"merges": 3,',
    b'"type":"Unigram"', b"/dev/zero", b"../../etc/passwd",
)  # fmt: skip


def small_tokenizer() -> Tokenizer:
    """Merges of a short text, every kind of token among them."""
    words = [
        b" the",
        b" token",
        b"izer",
        b"123",
        " naïve".encode(),
        "日本".encode(),
        b"\n\n",
        b"  ",
    ]
    merges: list[tuple[bytes, bytes]] = []
    for word in words:
        token = word[:1]
        for byte in word[1:]:
            merge = token, bytes([byte])
            if merge not in merges:
                merges.append(merge)
            token += bytes([byte])
    tokens = [b"<|endoftext|>", *(bytes([b]) for b in range(256)), *(a + b for a, b in merges)]
    return Tokenizer(dict(enumerate(tokens)), merges, ["<|endoftext|>"], pattern="qwen2")


def originals(folder: Path) -> list[tuple[str, dict[str, bytes]]]:
    """(what to load, the files of the folder) for each way to load."""
    tokenizer = small_tokenizer()
    write_tokenizer(tokenizer, folder / "all")
    everything = {path.name: path.read_bytes() for path in (folder / "all").iterdir()}
    alone = {}
    for form, name in (("hf", "tokenizer.json"), ("tiktoken", "cl100k_base.tiktoken")):
        (path,) = export_tokenizer(tokenizer, form, folder / name)
        alone[name] = Path(path).read_bytes()
    gpt2 = {name: everything[name] for name in ("vocab.json", "merges.txt")}
    return [
        ("", everything),
        ("tokenizer.json", {"tokenizer.json": alone["tokenizer.json"]}),
        ("cl100k_base.tiktoken", {"cl100k_base.tiktoken": alone["cl100k_base.tiktoken"]}),
        ("", gpt2),
        ("merges.txt", gpt2),
        ("tokenizer.tiktoken", everything),
    ]


def damage(data: bytes, rng: random.Random) -> bytes:
    """The data with one to three things done to it."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        to = min(to, at + rng.choice((1, 2, 8, 64, 4096)))
        kind = rng.randrange(8)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + data[to:]
        elif kind == 3:
            data = data[:to] + data[at:to] * rng.choice((1, 2, 50)) + data[to:]
        elif kind == 4:
            data = data[:at] + rng.choice(BREAKERS) + data[at:]
        elif kind == 5:
            data = data[:at] + rng.choice(BREAKERS) + data[to:]
        elif kind == 6:
            digits = [i for i, byte in enumerate(data) if 48 <= byte < 58]
            where = rng.choice(digits or [0])
            data = data[:where] + rng.choice((b"-1", b"99999999999", b"7", b"")) + data[where + 1 :]
        else:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = b"\n".join(lines)
        if not data:
            break
    return data


def check(number: int, folder: Path, ways: list[tuple[str, dict[str, bytes]]], seed: int) -> str:
    """Damage and load one file; what came of it."""
    rng = random.Random(f"{seed} {number}")
    name, files = rng.choice(ways)
    victim = name if name in files and rng.random() < 0.8 else rng.choice(sorted(files))
    for other, data in files.items():
        (folder / other).write_bytes(damage(data, rng) if other == victim else data)
    try:
        started = time.process_time()
        try:
            tokenizer = read_tokenizer(folder / name)
            ids = tokenizer.encode(TEXT)
            outcome = "loaded"
        except RaybpeError as error:
            outcome = type(error).__name__
        else:
            assert tokenizer.decode(ids) == TEXT, "decode(encode(text)) is not the text"
        assert time.process_time() - started < SLOW_SECONDS, "slow"
    finally:
        for other in files:
            (folder / other).unlink()
    return outcome


def run(files: int, seed: int = 0) -> Counter[str]:
    """Check that many damaged files; how they ended. The first failure is raised."""
    outcomes: Counter[str] = Counter()
    folder = Path(tempfile.mkdtemp(prefix="raybpe-hostile-"))
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")  # patterns that nobody uses again
    try:
        ways = originals(folder)
        (folder / "load").mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(files):
                try:
                    outcomes[check(number, folder / "load", ways, seed)] += 1
                except BaseException as error:
                    raise AssertionError(f"seed {seed}, file {number}: {error!r}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def main() -> int:
    """Parse the command line, check, and print the outcomes."""
    parser = argparse.ArgumentParser(description="Load damaged tokenizer files.")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    outcomes = run(options.files, options.seed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{options.files:,} files in {time.perf_counter() - started:.0f} s, peak {peak >> 20} MiB"
    )
    for outcome, count in outcomes.most_common():
        print(f"{count:8,}  {outcome}")
    return 0 if peak < MEMORY_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
