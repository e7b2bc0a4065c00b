"""Byte ranges own each record once, wherever they are cut."""

import io
import pickle
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from input_forms import SpaceCutter, texts

from raybpe.errors import ChangedInputError, InputError
from raybpe.filesystems import RangeFile
from raybpe.inputs import ReadStats, plan_inputs, read_blocks
from raybpe.inputs.pieces import LineCutter, cut_stream, file_range
from raybpe.inputs.read_ahead import ReadAhead

LINES = [
    b"",
    b"one",
    b"one\n",
    b"\n",
    b"\n\n",
    b"\r\n",
    b"a\r\nb\r\n",
    b"a\rb\n\rc",
    b"a\n\n\nb",
    "é\u2028ñ\n漢字\r\n🙂".encode(),
    b"\xff\xfe\n\x00x\n",
]


def lines_of(data: bytes) -> list[bytes]:
    found = data.split(b"\n")
    ended = found[:-1]
    return [line.removesuffix(b"\r") for line in ended] + ([found[-1]] if found[-1] else [])


@pytest.mark.parametrize("data", LINES[1:])
def test_lines_at_every_chunk_size(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    for chunk_bytes in range(1, len(data) + 2):
        plan = plan_inputs([path], chunk_bytes=chunk_bytes, documents="lines")
        assert texts(plan) == lines_of(data), chunk_bytes


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", "é".encode()])), st.integers(1, 9))
def test_line_ranges_of_random_text(tmp_path_factory, pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces) or b"x"
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(data)
    plan = plan_inputs([path], chunk_bytes=size, documents="lines")
    assert texts(plan) == lines_of(data)


@pytest.mark.parametrize("start", [0, 3])
def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path, start: int) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\nthree\n")
    with RangeFile(str(path)) as file:
        path.write_bytes(b"one\n")
        with pytest.raises(ChangedInputError, match="ends at byte 4 but had 14"):
            list(file_range(file, start, 14, LineCutter(), "a.txt"))
        with closing(ReadAhead(file, 0, 14)) as ahead, pytest.raises(ChangedInputError):
            ahead.read()


def test_text_is_covered_once_at_every_chunk_size(tmp_path: Path) -> None:
    data = "One two é three<|endoftext|> four\n five  漢字 six seven<|endoftext|>".encode()
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    cuts = {0, len(data)} | {i for i in range(1, len(data)) if SpaceCutter._is_cut(data, i)}
    for chunk_bytes in range(1, len(data) + 2):
        pieces = texts(plan_inputs([path], chunk_bytes=chunk_bytes))
        assert b"".join(pieces) == data
        assert set(np.cumsum([len(piece) for piece in pieces])) <= cuts


def test_first_cut_far_beyond_the_window(tmp_path: Path) -> None:
    data = b"x" * 300_000 + b" yy" + b"z" * 100_000 + b" end"
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    pieces = texts(plan_inputs([path], chunk_bytes=70_000))
    assert b"".join(pieces) == data
    assert len(pieces[0]) == 300_000


def test_buffer_grows_for_a_long_record_and_shrinks_again() -> None:
    data = b"short\n" + b"x" * 9_000_000 + b"\n" + b"tail line\n" * 900_000
    stream = io.BytesIO(data)
    sizes, held = [], []
    for block in cut_stream(stream.readinto, LineCutter(), "memory"):
        sizes.append(len(block.data))
        held.append(int(block.ends[0]))
    assert sum(held) == len(data)
    assert max(sizes) > 9_000_000
    assert sizes[-1] < 5_000_000


def test_offsets_name_places_in_the_file(tmp_path: Path) -> None:
    data = b"".join(b"line %06d\n" % i for i in range(1000))
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    for chunk in plan_inputs([path], chunk_bytes=1234, documents="lines").chunks:
        for block in read_blocks(chunk, SpaceCutter()):
            for start, end in zip(block.starts, block.ends, strict=True):
                there = block.offset + start
                assert data[there : there + end - start] == block.data[start:end].tobytes()


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"some words on standard input\nand more"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    plan = plan_inputs(["-"], chunk_bytes=7)
    assert plan.reads_stdin
    assert b"".join(texts(plan)) == data


def test_changed_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"some text")
    plan = plan_inputs([path], chunk_bytes=100)
    path.write_bytes(b"some more text")
    with pytest.raises(ChangedInputError, match=r"a\.txt has 14 bytes but had 9"):
        texts(plan)


def test_removed_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"some text")
    plan = plan_inputs([path], chunk_bytes=100)
    path.unlink()
    with pytest.raises(InputError, match=r"a\.txt does not exist"):
        texts(plan)


def test_byte_order_mark_and_nul_are_text_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    data = b"\xef\xbb\xbfa\x00b"
    path.write_bytes(data)
    stats = ReadStats()
    assert texts(plan_inputs([path], chunk_bytes=2), stats) == [data]
    assert stats.byte_order_marks == 1


def test_plans_pickle(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"text")
    plan = plan_inputs([tmp_path], chunk_bytes=3)
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan
    assert again.fingerprint() == plan.fingerprint()


@pytest.mark.parametrize("gap", [b"", b"\r", b"\n"])
def test_a_long_line_is_cut_within_and_stays_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gap: bytes
) -> None:
    monkeypatch.setattr("raybpe.inputs.pieces.READ_BYTES", 1000)
    data = b"first\n" + b"some words" * 700 + gap + b"\nlast\r\n" + b"open end " * 300
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    for chunk_bytes in (50, 999, 10**6):
        plan = plan_inputs([path], chunk_bytes=chunk_bytes, documents="lines")
        found: list[bytes] = []
        longest = 0
        for chunk in sorted(plan.chunks, key=lambda chunk: chunk.parts[0].start):
            for block in read_blocks(chunk, SpaceCutter()):
                spans = zip(block.starts, block.ends, strict=True)
                pieces = [block.data[start:end].tobytes() for start, end in spans]
                longest = max(longest, *map(len, pieces))
                if block.continued:
                    found[-1] += pieces.pop(0)
                found += pieces
        assert found == lines_of(data)
        assert longest <= 1000


def test_ranges_of_one_long_record_do_not_each_look_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"x" * 10**6 + b"\ny"
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    read = 0
    fill = RangeFile.fill

    def counting(self: RangeFile, view: memoryview, offset: int) -> int:
        nonlocal read
        length = fill(self, view, offset)
        read += length
        return length

    monkeypatch.setattr(RangeFile, "fill", counting)
    plan = plan_inputs([path], chunk_bytes=20_000, documents="lines")
    assert texts(plan) == [b"x" * 10**6, b"y"]
    assert read < 6 * len(data)  # a window of 64 kB for each of 50 ranges, and one look at all
