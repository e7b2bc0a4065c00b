"""Counting to a file: what was counted before a kill is not counted again."""

from pathlib import Path
from typing import Any

import pytest

import raybpe
from raybpe.errors import UsageError
from raybpe.flow import steps
from raybpe.flow.local import LocalExecutor


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Indices of the chunks that are counted; every chunk is saved at once."""
    seen: list[int] = []
    real, make = steps.count_chunk, LocalExecutor.__init__

    def counting(chunk: Any, *rest: Any) -> Any:
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(chunk.index)
        return real(chunk, *rest)

    def making(self: LocalExecutor, *rest: Any) -> None:
        make(self, *rest)
        self.save_seconds = 0.0

    monkeypatch.setattr(steps, "count_chunk", counting)
    monkeypatch.setattr(LocalExecutor, "__init__", making)
    return seen


def test_same_command_goes_on(sample_file: Path, tmp_path: Path, counted: list[int]) -> None:
    output = tmp_path / "counts.arrow"
    more: dict[str, Any] = {"chunk_size": 60_000, "workers": 1, "progress": "none"}
    with pytest.raises(KeyboardInterrupt):
        raybpe.count(sample_file, output=output, **more)
    assert not output.exists()
    first = set(counted)
    counted.clear()
    with pytest.raises(UsageError, match=r"counts\.arrow has an unfinished run.*pattern"):
        raybpe.count(sample_file, output=output, pattern="cl100k", **more)
    counts = raybpe.count(sample_file, output=output, **more)
    assert first.isdisjoint(counted)
    assert len(first) == 3
    saved = raybpe.Counts.load(output)
    assert list(saved.items()) == list(counts.items())
    counted.clear()
    fresh = raybpe.count(sample_file, progress="none")
    assert list(saved.items()) == list(fresh.items())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.arrow", "sample.txt"]
