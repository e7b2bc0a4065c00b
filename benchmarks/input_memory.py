"""Peak memory of counting every kind of large input, beside the bound that docs/clusters.md states.

    python benchmarks/input_memory.py [corpus.txt] [--only gz,parquet] [--ray] [--scratch DIR]

Makes each input out of the corpus (or of Python's standard library), over and over, in a scratch
folder; counts it in a process of its own; and compares the counts with those of the same text as a
plain file. With `--ray` it is counted on a local Ray as well, and the peak is that of the largest
worker. MB are 10**6 bytes. The text is one line whose documents begin with a space, so that counts
of documents add up to those of the line.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

import raybpe
from raybpe.counts.counts import Counts
from raybpe.settings import parse_size

UNIT_BYTES = 25 * 10**6
ROW = re.compile(r" \S.{2000,}?(?= \S)|.+$")  # documents of about 2 kB

BASE_BYTES = 400 * 10**6  # a worker, its buffers, and tables of usual text, as the docs state
RECORDS = {"jsonl": 8, "parquet": 6}  # times the largest record

COUNT = """
import json, sys
import raybpe
from raybpe import flow
from raybpe.flow.memory import peak_memory
from raybpe.settings import count_config, run_options
from raybpe.flow.executor import executor_for
from raybpe.flow.progress import progress_for
from raybpe.flow.run_directory import RunDirectory

uri, output, executor, documents = sys.argv[1:]
config = count_config()
address = "local" if executor == "ray" else None
options = run_options(executor=executor, address=address, documents=documents, progress="none")
with executor_for(options, progress_for("none")) as runner:
    directory = RunDirectory.open([uri], None, config, options, runner)
    counted = runner.count(directory, config)
    counted.as_counts(config).save(output)
print(json.dumps([counted.tally.peak_memory_bytes, counted.tally.text_bytes]))
"""

Write = Callable[[Path, str, int], None]


@dataclass(frozen=True)
class Input:
    """An input: its file name, how to write so many units of text, and how large a record is."""

    file: str
    size: int
    write: Write
    documents: str = "text"
    giant: bool = False  # whether all text is one record, of which the form keeps copies

    @property
    def name(self) -> str:
        return f"{self.file} --documents lines" if self.documents == "lines" else self.file


def one_line(open_file: Callable[[Path], io.BufferedIOBase]) -> Write:
    def write(path: Path, unit: str, times: int) -> None:
        data = unit.encode()
        with open_file(path) as file:
            for _ in range(times):
                file.write(data)

    return write


def plain(path: Path) -> io.BufferedIOBase:
    return path.open("wb")


def gz(path: Path) -> io.BufferedIOBase:
    return gzip.open(path, "wb", compresslevel=1)  # type: ignore[return-value]


def zst(path: Path) -> io.BufferedIOBase:
    return zstandard.open(path, "wb")  # type: ignore[no-any-return]


def tiny_files(count: int) -> Write:
    def write(path: Path, unit: str, times: int) -> None:
        rows = ROW.findall(unit) * times
        path.mkdir()
        for number in range(count):
            (path / f"{number:05d}.txt").write_text("".join(rows[number::count]))

    return write


def json_rows(path: Path, unit: str, times: int) -> None:
    lines = "".join(json.dumps({"text": row}) + "\n" for row in ROW.findall(unit)).encode()
    with path.open("wb") as file:
        for _ in range(times):
            file.write(lines)


def json_record(path: Path, unit: str, times: int) -> None:
    inside = json.dumps(unit, ensure_ascii=False)[1:-1].encode()
    with path.open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(times):
            file.write(inside)
        file.write(b'"}\n')


def row_group(path: Path, unit: str, times: int) -> None:
    rows = pa.chunked_array([pa.array(ROW.findall(unit), pa.large_string())] * times)
    pq.write_table(pa.table({"text": rows}), path, row_group_size=2**40, use_dictionary=False)


def giant_value(path: Path, unit: str, times: int) -> None:
    pq.write_table(pa.table({"text": pa.array([unit * times], pa.large_string())}), path)


def tar(path: Path, unit: str, times: int) -> None:
    with tarfile.open(path, "w") as archive:
        for number, row in enumerate(ROW.findall(unit) * times):
            data = row.encode()
            member = tarfile.TarInfo(f"{number:07d}.txt")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def inputs(given: argparse.Namespace) -> Iterator[Input]:
    line, packed, group, record = given.line, given.packed, given.group, given.record
    yield Input("tiny", given.files * 5_000, tiny_files(given.files))
    yield Input("line.txt", line, one_line(plain))
    yield Input("line.txt", line, one_line(plain), "lines")
    yield Input("line.txt.gz", packed, one_line(gz))
    yield Input("line.txt.gz", packed, one_line(gz), "lines")
    yield Input("line.txt.zst", packed, one_line(zst))
    yield Input("rows.jsonl", group, json_rows)
    yield Input("record.jsonl", record, json_record, giant=True)
    yield Input("group.parquet", group, row_group)
    yield Input("value.parquet", record, giant_value, giant=True)
    yield Input("many.tar", group, tar)


def unit_of(corpus: Path | None, size: int) -> str:
    """About `size` bytes of text on one line, beginning with a space and ending without."""
    if corpus is not None:
        with corpus.open("rb") as file:
            text = file.read(size).decode("utf-8", "ignore")
    else:
        library = Path(sysconfig.get_paths()["stdlib"])
        files = sorted([*library.glob("*.py"), *library.glob("*/*.py")])
        text = "\n".join(file.read_text("utf-8", "ignore") for file in files)[:size]
    words = text.replace("<|endoftext|>", " ").replace("\0", "").split()
    return " " + " ".join(words)


def count_unit(unit: str, scratch: Path) -> dict[bytes, int]:
    path = scratch / "unit.txt"
    path.write_bytes(unit.encode())
    counts = raybpe.count(path, executor="local", progress="none")
    path.unlink()
    return dict(counts.items())


def bound(one: Input, text_bytes: int) -> int:
    """What docs/clusters.md states of a worker's peak."""
    return BASE_BYTES + (RECORDS[one.file.split(".")[1]] * text_bytes if one.giant else 0)


def measure(
    one: Input, executor: str, path: Path, expected: dict[bytes, int], times: int
) -> tuple[str, bool]:
    """A row of the table, and whether counts are right and memory is within the bound."""
    output = path.with_name("counts.arrow")
    command = [sys.executable, "-c", COUNT, str(path), str(output), executor, one.documents]
    began = perf_counter()
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    seconds = perf_counter() - began
    peak, text_bytes = json.loads(told.splitlines()[-1])
    counts = dict(Counts.load(output).items())
    equal = counts == {pretoken: times * count for pretoken, count in expected.items()}
    most = bound(one, text_bytes)
    row = (
        f"| {one.name} | {executor} | {text_bytes / 1e6:,.0f} | {text_bytes / seconds / 1e6:,.0f} "
        f"| {peak / 1e6:,.0f} | {most / 1e6:,.0f} | {'equal' if equal else 'DIFFERENT'} |"
    )
    return row, equal and peak <= most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--only", help="parts of names, such as gz,parquet")
    parser.add_argument("--ray", action="store_true", help="measure workers of a local Ray too")
    parser.add_argument("--scratch", help="folder for up to --line bytes")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--line", type=parse_size, default=2 * 10**9)
    parser.add_argument("--packed", type=parse_size, default=10**9, help="bytes when unpacked")
    parser.add_argument("--group", type=parse_size, default=400 * 10**6)
    parser.add_argument("--record", type=parse_size, default=250 * 10**6)
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else [""]
    chosen = [one for one in inputs(given) if any(part in one.name for part in wanted)]
    print("| input | executor | MB of text | MB/s | peak MB | bound MB | counts |")
    print("| --- | --- | ---: | ---: | ---: | ---: | --- |")
    fine = True
    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        unit = unit_of(given.corpus, min(UNIT_BYTES, *(one.size for one in chosen), UNIT_BYTES))
        expected = count_unit(unit, Path(folder))
        for one in chosen:
            times = -(-one.size // len(unit.encode()))
            with tempfile.TemporaryDirectory(dir=folder) as place:
                path = Path(place) / one.file
                one.write(path, unit, times)
                for executor in ("local", "ray") if given.ray else ("local",):
                    row, good = measure(one, executor, path, expected, times)
                    print(row, flush=True)
                    fine &= good
    sys.exit(not fine)


if __name__ == "__main__":
    main()
