"""The merge kernel as plain Python on memory that checks every access.

Kernels take addresses and check nothing. Here the same functions run uncompiled; each load and
store must lie inside an array that the workspace holds at that moment, and the result be right.
"""

import bisect
import random
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from merge_helpers import fast_train
from numba.core.dispatcher import Dispatcher

from raybpe import reference
from raybpe.kernels import entries, merge, merge_build, merge_pairs, merge_rebuild, merge_step
from raybpe.kernels import merge_state as state
from raybpe.merges.workspace import Tuning, Workspace


class CheckedMemory:
    """The arrays that may be touched, by what they are for: a replaced array is out of bounds."""

    def __init__(self) -> None:
        self.arrays: dict[Any, np.ndarray] = {}
        self.regions: list[tuple[int, int, memoryview]] = []

    def allow(self, name: Any, array: np.ndarray) -> None:
        self.arrays[name] = array
        self.regions = sorted(
            {
                (held.ctypes.data, held.ctypes.data + held.nbytes): memoryview(held).cast("B")
                for held in self.arrays.values()
                if held.nbytes
            }.items()
        )

    def find(self, address: int, size: int) -> memoryview:
        index = bisect.bisect_right(self.regions, address, key=lambda region: region[0][0]) - 1
        if index >= 0:
            (begin, end), view = self.regions[index]
            if address + size <= end:
                return view[address - begin : address - begin + size]
        raise AssertionError(f"{size} bytes at {address} are outside all arrays")

    def load(self, size: int, signed: bool = False):
        def load(address: int) -> int:
            return int.from_bytes(self.find(address, size), "little", signed=signed)

        return load

    def store(self, size: int):
        def store(address: int, value: int) -> None:
            self.find(address, size)[:] = (int(value) % 2 ** (8 * size)).to_bytes(size, "little")

        return store


def plain_kernel(memory: CheckedMemory) -> dict[str, Any]:
    """The functions of the kernel, uncompiled, on checked memory."""
    names: dict[str, Any] = {}
    for module in (merge_pairs, merge_build, merge_rebuild, merge_step, merge):
        names.update(vars(module))
    for name, value in list(names.items()):
        if isinstance(value, Dispatcher):
            names[name] = FunctionType(value.py_func.__code__, names, name)
    loads, stores = {1: memory.load(1)}, {1: memory.store(1)}
    for size in (2, 4, 8):
        loads[size], stores[size] = memory.load(size), memory.store(size)

    def symbol_at(symbols: int, index: int, unit: Any) -> int:
        return loads[unit.nbytes](symbols + unit.nbytes * index)

    def set_symbol(symbols: int, index: int, value: int, unit: Any) -> None:
        assert value < 2 ** (8 * unit.nbytes)
        stores[unit.nbytes](symbols + unit.nbytes * index, value)

    def slot_of(key: int, bits: int) -> int:
        return key % 2**64 * int(merge_pairs._MIX) % 2**64 >> (64 - bits)

    names.update(
        slot_of=slot_of, load8=loads[1], load32=loads[4], load_i64=memory.load(8, signed=True),
        store8=stores[1], store32=stores[4], store64=stores[8],
        symbol_at=symbol_at, set_symbol=set_symbol, prefetch=lambda address: None,
        symbol_address=lambda symbols, index, unit: symbols + unit.nbytes * index,
    )  # fmt: skip

    return names


def bind(function: Any, unit: Any) -> Any:
    """An operation of the kernel for symbols of one width."""
    return lambda operation, block, _: function(operation, block, unit)


@pytest.fixture
def checked(monkeypatch):
    """Let workspaces run on checked memory."""
    memory = CheckedMemory()
    point, make = Workspace._point, Workspace._make
    plain = plain_kernel(memory)
    for width, unit in ((16, np.uint16(0)), (32, np.uint32(0))):
        for kernels, name in ((entries.merge, "run"), (entries.merge_rebuild, "run_rebuild")):
            monkeypatch.setitem(kernels, width, bind(plain[name], unit))

    def checked_point(self, name, array):
        memory.allow(name, array)
        point(self, name, array)

    def checked_make(self, name, *arguments, **options):
        memory.allow("block", self._block)
        return make(self, name, *arguments, **options)

    monkeypatch.setattr(Workspace, "_point", checked_point)
    monkeypatch.setattr(Workspace, "_make", checked_make)
    return memory


def test_no_access_outside_the_arrays(checked):
    chance = random.Random(9)
    for number in range(16):
        alphabet = chance.choice([b"a", b"ab", b"abc", b"\x00\xff", bytes(range(256))])
        words = {
            bytes(chance.choice(alphabet) for _ in range(chance.randint(0, 9))): chance.choice(
                [0, 1, 2, 3, 70_000, 2**40]
            )
            for _ in range(chance.randint(0, 8))
        }
        words[alphabet[:1] * chance.randint(1, 40)] = 2
        tuning = Tuning(
            threshold=chance.choice([None, 1, 30, 2**41]),
            wide_symbols=bool(number % 2),
            pool_slack=1.0,
            room=chance.choice([1, 3]),
        )
        options = {
            "tie_break": chance.choice(["lowest-ids", "greatest-bytes"]),
            "max_token_length": chance.choice([None, None, 4]),
        }
        merges = chance.choice([0, 1, 5, 25])
        want = reference.train(words, merges, **options)
        assert fast_train(words, merges, tuning=tuning, **options) == want


def test_the_check_can_fail(checked):
    memory = checked
    array = np.zeros(4, np.uint8)
    memory.allow(state.TEXT, array)
    load = memory.load(4)
    assert load(array.ctypes.data) == 0
    with pytest.raises(AssertionError, match="outside"):
        load(array.ctypes.data + 1)
    memory.allow(state.TEXT, np.zeros(4, np.uint8))
    with pytest.raises(AssertionError, match="outside"):
        load(array.ctypes.data)
