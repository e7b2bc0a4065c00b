"""Cached tables: found again, and never trusted when damaged."""

import os

import numpy as np
import pytest

from raybpe.pretokenize.table_cache import cache_folder, cached_arrays


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Builder:
    def __init__(self, *values: int) -> None:
        self.values = values
        self.calls = 0

    def __call__(self) -> dict[str, np.ndarray]:
        self.calls += 1
        return {"a": np.array(self.values, np.int32), "b": np.zeros((2, 3), np.uint8)}


def test_built_once_then_read():
    build = Builder(1, 2)
    first = cached_arrays("key", build)
    second = cached_arrays("key", build)
    assert build.calls == 1
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.dtype == second[name].dtype
        assert (array == second[name]).all()
    assert [path.suffix for path in cache_folder().iterdir()] == [".npz"]


def test_keys_do_not_mix():
    assert cached_arrays("one", Builder(1))["a"][0] == 1
    assert cached_arrays("two", Builder(2))["a"][0] == 2
    assert cached_arrays("one", Builder(3))["a"][0] == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:100] + b"\0" * 50 + content[150:],
        lambda content: b"not a zip file",
        lambda content: content[:-1],
    ],
)
def test_a_damaged_file_is_computed_and_written_again(damage):
    cached_arrays("key", Builder(1))
    (path,) = cache_folder().iterdir()
    path.write_bytes(damage(path.read_bytes()))
    build = Builder(1)
    assert cached_arrays("key", build)["a"].tolist() == [1]
    assert build.calls == 1
    assert cached_arrays("key", build)["a"].tolist() == [1]
    assert build.calls == 1


def test_pickled_arrays_are_not_loaded():
    cached_arrays("key", Builder(1))
    (path,) = cache_folder().iterdir()
    with path.open("wb") as file:
        np.savez(file, a=np.array([{"any": "object"}], dtype=object))
    build = Builder(1)
    assert cached_arrays("key", build)["a"].tolist() == [1]
    assert build.calls == 1


def test_another_keys_file_under_this_name_is_not_used():
    cached_arrays("one", Builder(1))
    (path,) = cache_folder().iterdir()
    cached_arrays("two", Builder(2))
    (other,) = (found for found in cache_folder().iterdir() if found != path)
    path.replace(other)
    assert cached_arrays("two", Builder(5))["a"].tolist() == [5]


def test_a_folder_that_cannot_be_made_only_costs_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    build = Builder(1)
    assert cached_arrays("key", build)["a"].tolist() == [1]
    assert cached_arrays("key", build)["a"].tolist() == [1]
    assert build.calls == 2


def test_no_partial_file_is_left_when_writing_fails(monkeypatch):
    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    assert cached_arrays("key", Builder(1))["a"].tolist() == [1]
    assert list(cache_folder().iterdir()) == []
