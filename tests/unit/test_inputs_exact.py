"""Counting chunk by chunk gives the counts of the whole, for tricky files and every chunk size."""

from collections import Counter
from pathlib import Path

import pytest

from raybpe.block import Block
from raybpe.counts.arrow import to_arrow
from raybpe.counts.counts import Counts
from raybpe.counts.pretoken_table import PretokenTable
from raybpe.inputs import plan_inputs, read_blocks
from raybpe.pretokenize import pretokenizer, resolve_pattern
from raybpe.pretokenize.utf8 import clean_block

SPECIALS = ("<|endoftext|>", "<|end", "of<|", "\n\n")


def counted(blocks, cutter, policy: str) -> Counter[bytes]:
    table = PretokenTable()
    invalid: Counter[bytes] = Counter()
    for block in blocks:
        clean, histogram = clean_block(block, policy)
        cutter.count(table, clean)
        if policy == "keep":
            invalid.update({bytes([b]): int(n) for b, n in enumerate(histogram) if n})
    rows = Counts(to_arrow(table.export()[0])).items()
    return Counter(dict(rows)) + invalid


def small_texts(shared: Path) -> list[tuple[str, bytes]]:
    paths = sorted((shared / "corpora" / "small").iterdir())
    return [(path.name, path.read_bytes()) for path in paths if path.stat().st_size]


@pytest.mark.parametrize(
    ("pattern", "policy"),
    [
        ("gpt2", "replace"),
        ("gpt2", "skip"),
        ("gpt2", "keep"),
        ("cl100k", "replace"),
        ("whitespace", "skip"),
        ("none", "keep"),
    ],
)
def test_chunks_of_tricky_files(shared: Path, tmp_path: Path, pattern: str, policy: str) -> None:
    for specials in (SPECIALS[:1], SPECIALS):
        cutter = pretokenizer(resolve_pattern(pattern), specials)
        for name, data in small_texts(shared):
            for limit, chunk_bytes in ((60, 1), (500, 7), (20_000, 4096)):
                path = tmp_path / "text"
                path.write_bytes(data[:limit])
                whole = counted([Block.of(data[:limit])], cutter, policy)
                plan = plan_inputs([path], chunk_bytes=chunk_bytes)
                blocks = (block for chunk in plan.chunks for block in read_blocks(chunk, cutter))
                assert counted(blocks, cutter, policy) == whole, (name, specials, chunk_bytes)


def test_small_buffers_change_nothing(tmp_path: Path, sample_text, monkeypatch) -> None:
    data = sample_text(60_000)
    path = tmp_path / "text"
    path.write_bytes(data)
    cutter = pretokenizer(resolve_pattern("gpt2"), SPECIALS)
    whole = counted([Block.of(data)], cutter, "error")
    for size in (1, 50, 3000):
        monkeypatch.setattr("raybpe.inputs.pieces.READ_BYTES", size)
        monkeypatch.setattr("raybpe.inputs.pieces.WINDOW_BYTES", size)
        plan = plan_inputs([path], chunk_bytes=20_000)
        blocks = (block for chunk in plan.chunks for block in read_blocks(chunk, cutter))
        assert counted(blocks, cutter, "error") == whole
