"""Trainers side by side on the same file, as whole processes.

    python benchmarks/train.py english.txt [--size 5MB] [--repeats 3] [--only raybpe,gigabpe]

Runs alternate (A B C A B C ...), so that a slow spell of the machine hits all of them; the
table shows the median time, the peak memory of the process tree, how many times longer than
raybpe, and whether the merges are raybpe's. The first run of raybpe, which compiles its kernels
on a new machine, is reported apart. Rivals that are not installed are left out, and said.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from measure import Run, run
from trainers import PACKAGES, SEPARATOR, merged_tokens

from raybpe.settings import parse_size

HERE = Path(__file__).resolve().parent

# The raybpe that counts and numbers as the rival does; none for sentencepiece.
SAME_RULES = {
    "raybpe-ray": "raybpe",
    "tokenizers": "raybpe",
    "gigatoken": "raybpe",
    "gigabpe": "raybpe-lines",
    "rustbpe": "raybpe-as-rustbpe",
    "bpeasy": "raybpe-as-rustbpe",
}


def cut(corpus: Path, size: int, folder: Path) -> Path:
    """The first `size` bytes, back to the last whole document."""
    text = corpus.read_bytes()[:size]
    mark = f"{SEPARATOR}\n".encode()
    end = text.rfind(mark)
    target = folder / corpus.name
    target.write_bytes(text[: end + len(mark)] if end >= 0 else text)
    return target


def command(name: str, corpus: Path, vocab_size: int, output: Path) -> list[str]:
    return [sys.executable, str(HERE / "trainers.py"), name, str(corpus), str(vocab_size),
            str(output)]  # fmt: skip


def agreement(name: str, corpus: Path, vocab_size: int, outputs: dict[str, Path]) -> str:
    """Whether the rival's merges are raybpe's under the rival's rules."""
    if name not in SAME_RULES:
        return "other rules"
    same = SAME_RULES[name]
    ours = outputs.setdefault(same, outputs["raybpe"].with_name(same))
    if not ours.exists():
        run(command(same, corpus, vocab_size, ours))
    left, right = merged_tokens(str(ours)), merged_tokens(str(outputs[name]))
    shorter = min(len(left), len(right))  # alphabets of other sizes leave room for more merges
    for rank, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return f"differ at {rank:,}: {one!r}, {other!r}"
    return f"equal, {shorter:,}"


def show(rows: list[tuple[str, ...]]) -> None:
    head = ("trainer", "version", "seconds", "peak MB", "times raybpe", "merges")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, tuple("-" * width for width in widths), *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("| " + " | ".join(cells) + " |")


def installed(name: str) -> str | None:
    try:
        return version("raybpe" if name.startswith("raybpe") else name)
    except PackageNotFoundError:
        return "source" if name.startswith("raybpe") else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--size", help="use only the first part, such as 5MB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="names with commas between")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else ["raybpe", *PACKAGES[1:]]
    absent = [name for name in names if not installed(name)]
    names = [name for name in names if name not in absent]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        corpus = given.corpus
        if given.size:
            corpus = cut(corpus, parse_size(given.size), folder)
        size = corpus.stat().st_size
        outputs = {name: folder / name for name in names}
        warm = {name: run(command(name, corpus, 1000, folder / "warm")) for name in names[:1]}
        print(f"{corpus.name}: {size:,} bytes, {given.vocab_size:,} tokens, "
              f"median of {given.repeats}; first run of {names[0]} "
              f"{warm[names[0]].seconds:.1f} s\n")  # fmt: skip
        runs: dict[str, list[Run]] = {name: [] for name in names}
        for _ in range(given.repeats):
            for name in names:
                if outputs[name].is_dir():
                    shutil.rmtree(outputs[name])
                runs[name].append(run(command(name, corpus, given.vocab_size, outputs[name])))
        middle = {name: statistics.median(r.seconds for r in runs[name]) for name in names}
        rows = []
        for name in names:
            seconds = middle[name]
            peak = max(r.peak_bytes for r in runs[name])
            same = "" if name == "raybpe" or "raybpe" not in names else agreement(
                name, corpus, given.vocab_size, outputs)  # fmt: skip
            ratio = seconds / middle.get("raybpe", seconds)
            rows.append((name, installed(name) or "", f"{seconds:.2f}", f"{peak / 1e6:,.0f}",
                         f"{ratio:.1f}", same))  # fmt: skip
        show(rows)
    if absent:
        print(f"\nnot installed: {', '.join(absent)}")


if __name__ == "__main__":
    main()
