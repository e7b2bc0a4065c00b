"""Local files that are written while they are counted are noticed, whatever their size."""

import os
from pathlib import Path
from typing import Any

import pytest
from input_forms import write

import raybpe
from raybpe.errors import ChangedInputError
from raybpe.flow.local import LocalExecutor
from raybpe.inputs import check_unchanged, plan_inputs

LATER = 10**18


def touch(path: Path) -> None:
    os.utime(path, ns=(LATER, LATER))


@pytest.mark.parametrize("half", ["count", "train"])
def test_a_file_changed_in_place_while_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    path = write(tmp_path, "a.txt", b"one two")
    count = LocalExecutor.count

    def count_and_change(*args: Any) -> Any:
        counted = count(*args)
        path.write_bytes(b"six ten")
        touch(path)
        return counted

    monkeypatch.setattr(LocalExecutor, "count", count_and_change)
    quiet: dict[str, Any] = {"progress": "none", "executor": "local"}
    with pytest.raises(ChangedInputError, match=r"a\.txt has 7 bytes of 2001-09-09.* but had 7 by"):
        raybpe.count(path, **quiet) if half == "count" else raybpe.train(path, 260, **quiet)


def test_each_kind_of_change(tmp_path: Path) -> None:
    paths = [write(tmp_path, name, b"text") for name in ("a.txt", "b.jsonl.gz", "c.txt")]
    plan = plan_inputs([tmp_path, f"file://{paths[0]}"], chunk_bytes=2)
    check_unchanged(plan)
    touch(paths[1])
    with pytest.raises(ChangedInputError, match=r"b\.jsonl\.gz has 4 bytes of .* run again"):
        check_unchanged(plan)
    plan = plan_inputs([tmp_path], chunk_bytes=2)
    facts = paths[2].stat()
    paths[2].write_bytes(b"texts")
    os.utime(paths[2], ns=(facts.st_mtime_ns, facts.st_mtime_ns))
    with pytest.raises(ChangedInputError, match=r"c\.txt has 5 bytes"):
        check_unchanged(plan)
    paths[2].unlink()
    with pytest.raises(ChangedInputError, match=r"c\.txt is gone .*No such file"):
        check_unchanged(plan)


def test_what_cannot_be_told_is_not_refused(tmp_path: Path) -> None:
    write(tmp_path, "empty.txt", b"")
    plan = plan_inputs([tmp_path, "-"], chunk_bytes=100)
    check_unchanged(plan)
    touch(tmp_path / "empty.txt")  # as in /proc
    check_unchanged(plan)
    write(tmp_path, "empty.txt", b"text")
    with pytest.raises(ChangedInputError, match=r"empty\.txt has 4 bytes"):
        check_unchanged(plan)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    first, second = (tmp_path / os.fsdecode(name) for name in (b"\xff.txt", rb"\udcff.txt"))
    first.write_bytes(b"text")
    plan = plan_inputs([tmp_path], chunk_bytes=100)
    check_unchanged(plan)
    second.write_bytes(b"other")  # shown alike
    check_unchanged(plan_inputs([tmp_path], chunk_bytes=100))
    touch(first)
    with pytest.raises(ChangedInputError, match=r"udcff\.txt has 4 bytes"):
        check_unchanged(plan)
