"""Counting and merging alone, and executors and chunk sizes against each other.

    python benchmarks/stages.py english.txt [--size 50MB] [--ray]

Times are the least of several in one process, kernels compiled and text in memory or in the page
cache. `count` is one core; MB/s are 10**6 bytes of text per second.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from train import cut

import raybpe
from raybpe.block import Block
from raybpe.config import CountConfig, TrainConfig
from raybpe.counts.pretoken_table import PretokenTable
from raybpe.flow import steps
from raybpe.pretokenize import PATTERNS, pretokenizer, resolve_pattern
from raybpe.settings import parse_size

VOCAB_SIZES = (8_000, 32_000, 100_000)
CHUNK_SIZES = ("1MB", "8MB", "64MB")
SPECIALS = ("<|endoftext|>",)


def least(repeats: int, run: Callable[[], Any]) -> float:
    times = []
    for _ in range(repeats):
        began = perf_counter()
        run()
        times.append(perf_counter() - began)
    return min(times)


def count_patterns(text: bytes, repeats: int) -> None:
    print("\ncount, one core, text in memory\n")
    print("| pattern | engine | MB/s | pretokens | distinct |")
    print("| --- | --- | ---: | ---: | ---: |")
    block = Block.of(text)
    small = Block.of(text[: 1 << 16])
    for name in PATTERNS:
        cutter = pretokenizer(resolve_pattern(name), SPECIALS)
        cutter.count(PretokenTable(), small)
        if cutter.engine == "regex":  # a few MB are plenty at its speed
            piece = text[: 4 * 10**6].decode("utf-8", "ignore").encode()
            measured, size = Block.of(piece), len(piece)
        else:
            measured, size = block, len(text)
        table = PretokenTable()
        seconds = least(repeats, lambda c=cutter, m=measured: c.count(PretokenTable(), m))
        cutter.count(table, measured)
        print(f"| {name} | {cutter.engine} | {size / seconds / 1e6:,.0f} | "
              f"{table.total:,} | {len(table):,} |")  # fmt: skip


def merge_sizes(text: bytes, repeats: int) -> None:
    print("\nmerge, one core, from counts (gpt2)\n")
    print("| tokens | seconds | merges |")
    print("| ---: | ---: | ---: |")
    pattern = resolve_pattern("gpt2")
    table = PretokenTable()
    pretokenizer(pattern, SPECIALS).count(table, Block.of(text))
    counting = CountConfig(pattern.regex, pattern.name, SPECIALS)
    parts = [steps.Columns(*columns) for columns in table.export()]
    for vocab_size in VOCAB_SIZES:
        config = TrainConfig(vocab_size, counting)

        def merge(config: TrainConfig = config) -> int:
            trainer, _ = steps.start_merging(parts, config)
            return trainer.advance()

        print(f"| {vocab_size:,} | {least(repeats, merge):.2f} | {merge():,} |")


def executors(corpus: Path, repeats: int, with_ray: bool) -> None:
    print("\ncount a file (gpt2), executors and chunk sizes\n")
    print("| executor | workers | chunk | seconds | MB/s |")
    print("| --- | ---: | ---: | ---: | ---: |")
    size = corpus.stat().st_size
    for executor in ("local", "ray") if with_ray else ("local",):
        for workers in (1, 2):
            if executor == "ray":
                start_ray(workers)
            for chunk in CHUNK_SIZES:
                seconds = least(repeats, lambda e=executor, w=workers, c=chunk: raybpe.count(
                    [corpus], executor=e, workers=w, chunk_size=c, progress="none"))  # fmt: skip
                print(f"| {executor} | {workers} | {chunk} | {seconds:.2f} | "
                      f"{size / seconds / 1e6:,.0f} |")  # fmt: skip


def start_ray(workers: int) -> None:
    import ray

    ray.shutdown()
    ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--size", help="use only the first part, such as 50MB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ray", action="store_true", help="measure a local Ray too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        corpus = given.corpus
        if given.size:
            corpus = cut(corpus, parse_size(given.size), Path(scratch))
        text = corpus.read_bytes()
        print(f"{corpus.name}: {len(text):,} bytes, least of {given.repeats}")
        count_patterns(text, given.repeats)
        merge_sizes(text, given.repeats)
        executors(corpus, given.repeats, given.ray)


if __name__ == "__main__":
    main()
