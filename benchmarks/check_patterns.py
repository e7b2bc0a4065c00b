"""Compare every named pattern with `regex`, thoroughly: code points, random strings, corpora.

    python benchmarks/check_patterns.py [--full] [--patterns NAME...] [FILE...]

- every code point in a dozen contexts;
- random strings of characters that matter to the patterns: 20,000, with --full 1,000,000;
- the text files given: their first 2 MB, with --full all of it (hours of `regex`, for gigabytes).

Prints a line per comparison and exits with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import regex

from raybpe.pretokenize import PATTERNS, Pretokenizer, resolve_pattern

ALPHABET = (
    "aZéßſKǅ1٣½² \t\n\r\u00a0\u2028\x1c\x85'’.,#/_$・ア一゙゛\u3040\u3098\u0301ाषि्\u200d\u200c\x00"
    "\ue000\u0378sStTrREelLdDmMvV😀\U000e0001"
)
CONTEXTS = (
    "{}",
    "a{}",
    "A{}a",
    "{} ",
    "  {}",
    "{}\n",
    "1{}1",
    ".{}.",
    "'{}",
    "一{}一",
    "{}{}",
    " {}s",
)
STRETCH = 50_000  # characters compared at once


def code_points() -> Iterator[str]:
    """Texts that hold every code point in each of the contexts."""
    points = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    for context in CONTEXTS:
        for at in range(0, len(points), STRETCH):
            yield "".join(context.format(*[point] * 2) for point in points[at : at + STRETCH])


def random_strings(count: int, seed: int = 1) -> Iterator[str]:
    """Short strings, so that ends of text are as frequent as what is between."""
    rng = random.Random(seed)
    for _ in range(count):
        yield "".join(rng.choices(ALPHABET, k=rng.randint(0, 16)))


def stretches(path: Path, limit: int | None) -> Iterator[str]:
    """The text in stretches; where they are cut is the same for both sides of the comparison."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        left = sys.maxsize if limit is None else limit
        while left > 0 and (text := file.read(min(left, 20 * STRETCH))):
            left -= len(text)
            yield text


def compare(pretokenizer: Pretokenizer, texts: Iterator[str], what: str) -> None:
    """Exit unless all texts have the same pretokens."""
    expression = regex.compile(pretokenizer.pattern.regex)
    began = time.perf_counter()
    number = 0
    for text in texts:
        wanted = [match.group() for match in expression.finditer(text) if match.group()]
        found = [pretoken.decode() for pretoken in pretokenizer.pretokens(text.encode())]
        if found != wanted:
            pairs = zip([*found, None], [*wanted, None], strict=False)
            place = next(place for place, (one, other) in enumerate(pairs) if one != other)
            around = slice(max(0, place - 2), place + 3)
            print(f"{pretokenizer.pattern.name}, {what}: pretoken {place} differs")
            print(f"  {pretokenizer.engine}: {found[around]}\n  regex: {wanted[around]}")
            sys.exit(1)
        number += len(wanted)
    seconds = time.perf_counter() - began
    name = pretokenizer.pattern.name
    print(f"{name:12} {what:20} {number:12,} pretokens equal  {seconds:7.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--patterns", nargs="+", default=list(PATTERNS), metavar="NAME")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    for name in options.patterns:
        pretokenizer = Pretokenizer(resolve_pattern(name))
        compare(pretokenizer, code_points(), "code points")
        compare(pretokenizer, random_strings(10**6 if options.full else 20_000), "random strings")
        for path in options.files:
            compare(pretokenizer, stretches(path, None if options.full else 2 * 10**6), path.name)


if __name__ == "__main__":
    main()
