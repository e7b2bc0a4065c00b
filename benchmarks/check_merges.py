"""The same merges as other trainers, every one in order, on whole corpora.

    python benchmarks/check_merges.py english.txt multilingual.txt code.txt [--vocab-size 32000]

Trains each rival and raybpe under the rival's rules and compares the merged tokens (for tokenizers
the ids too: special token, base alphabet and merges in the same places). Where they
differ, the reason can only be the Unicode version of the rival's regex engine, and that is shown:
each code point of the corpus is put behind a letter, a digit and a space, the rival is trained on
these, and which of them it joined tells the class that it gives to the code point; code points of
another class than ours are named, and the documents that hold one are left out of a second
comparison, which must be equal.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import regex
from measure import run
from train import SAME_RULES, command, cut
from trainers import SEPARATOR, documents, merged_tokens

from raybpe.settings import parse_size

RIVALS = ("rustbpe", "gigabpe", "tokenizers")
PROBES = ("a", "1", "!", "\u00a0")  # letter, digit, symbol, space
CLASSES = regex.compile(r"(\p{L})|(\p{N})|(\s)|(.)", regex.DOTALL)
PROBE_REPEATS = 2  # pairs must occur to be merged; two is plenty


def train_pair(
    rival: str, corpus: Path, vocab_size: int, folder: Path
) -> tuple[list[bytes], list[bytes], str]:
    """Merged tokens of raybpe and of a rival, and the seconds that each took."""
    ours, theirs = folder / f"raybpe-{rival}", folder / rival
    first = run(command(SAME_RULES[rival], corpus, vocab_size, ours))
    second = run(command(rival, corpus, vocab_size, theirs))
    times = f"{first.seconds:.1f} s against {second.seconds:.1f} s"
    if rival == "tokenizers":
        times += ", ids equal" if ids(ours) == ids(theirs) else ", IDS DIFFER"
    return merged_tokens(str(ours)), merged_tokens(str(theirs)), times


def ids(output: Path) -> dict[str, int]:
    path = output / "tokenizer.json" if output.is_dir() else output
    vocab: dict[str, int] = json.loads(path.read_bytes())["model"]["vocab"]
    return vocab


def first_difference(left: list[bytes], right: list[bytes]) -> int | None:
    pairs = enumerate(zip(left, right, strict=False))
    return next((rank for rank, (one, other) in pairs if one != other), None)


def code_points(corpus: Path) -> list[str]:
    found: set[str] = set()
    for document in documents(str(corpus)):
        found.update(document)
    return sorted(found)


def joined(rival: str, characters: list[str], folder: Path) -> dict[str, tuple[bool, ...]]:
    """For each character, behind which of PROBES the rival joins it."""
    text = folder / "probes.txt"
    mark = f"\n{SEPARATOR}\n" if rival == "gigabpe" else SEPARATOR
    probes = [probe + character for character in characters for probe in PROBES]
    with text.open("w", encoding="utf-8", newline="") as file:
        for probe in probes * PROBE_REPEATS:
            file.write(probe + mark)
    output = folder / "probed"
    run(command(rival, text, 256 + 8 * len(probes), output))
    tokens = set(merged_tokens(str(output)))
    return {
        character: tuple((probe + character).encode() in tokens for probe in PROBES)
        for character in characters
    }


def other_classes(rival: str, corpus: Path, folder: Path) -> dict[str, str]:
    """Characters of the corpus that the rival does not join as our classes do."""
    characters = [c for c in code_points(corpus) if ord(c) > 127]
    seen = joined(rival, characters, folder)
    different = {}
    for character in characters:
        match = CLASSES.match(character)
        assert match is not None
        ours = tuple(match.lastindex == place for place in (1, 2, 4, 3))
        if match.lastindex != 3 and seen[character] != ours:
            different[character] = f"U+{ord(character):04X}"
    return different


def without(corpus: Path, characters: dict[str, str], folder: Path) -> tuple[Path, int]:
    """The documents that hold none of some characters, and how many were left out."""
    target, dropped = folder / f"without-{corpus.name}", 0
    unwanted = regex.compile("[" + "".join(map(regex.escape, characters)) + "]")
    with target.open("w", encoding="utf-8", newline="") as file:
        for document in documents(str(corpus)):
            if unwanted.search(document):
                dropped += 1
            else:
                file.write(document + SEPARATOR)
    return target, dropped


def check(rival: str, corpus: Path, vocab_size: int, folder: Path) -> bool:
    ours, theirs, times = train_pair(rival, corpus, vocab_size, folder)
    rank = first_difference(ours, theirs)
    name = f"{corpus.name}, {rival}"
    if rank is None:
        print(f"{name}: all {min(len(ours), len(theirs)):,} merges equal ({times})", flush=True)
        return True
    different = other_classes(rival, corpus, folder)
    shown = " ".join(list(different.values())[:20])
    print(f"{name}: equal up to merge {rank:,} ({times}); {len(different)} code points of the "
          f"corpus are in another class there: {shown}")  # fmt: skip
    if not different:
        print(f"{name}: NOT EXPLAINED: {ours[rank]!r} against {theirs[rank]!r}", flush=True)
        return False
    rest, dropped = without(corpus, different, folder)
    ours, theirs, _ = train_pair(rival, rest, vocab_size, folder)
    rank = first_difference(ours, theirs)
    verdict = f"all {min(len(ours), len(theirs)):,} merges equal" if rank is None else (
        f"NOT EQUAL at {rank:,}: {ours[rank]!r} against {theirs[rank]!r}"
    )  # fmt: skip
    print(f"{name}: without the {dropped:,} documents that hold one, {verdict}", flush=True)
    return rank is None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--size", help="use only the first part of each, such as 5MB")
    parser.add_argument("--only", default=",".join(RIVALS))
    given = parser.parse_args()
    good = True
    for corpus in given.corpora:
        for rival in given.only.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                text = cut(corpus, parse_size(given.size), folder) if given.size else corpus
                good &= check(rival, text, given.vocab_size, folder)
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
