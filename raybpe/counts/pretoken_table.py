"""Counting pretokens in memory: a hash table that text, rows and other tables are added to.

Layout and speed are in `kernels.table`. Memory is set by the number of distinct pretokens: 32 bytes
per slot at a load of 0.15 to 0.6 (55 to 210 bytes per pretoken while small, at most 107 beyond
2.5 million), plus the bytes of those longer than 15. A table is used by one thread at a time; the
kernels run without the GIL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raybpe.block import Block, checked_spans
from raybpe.counts.columns import Columns, exact_sum
from raybpe.errors import CapacityError
from raybpe.kernels import count_state, entries, scan_state
from raybpe.kernels import table_layout as table
from raybpe.kernels import table_requests as asked
from raybpe.kernels.entry import address
from raybpe.kernels.scanner import Scanner
from raybpe.kernels.special_table import compile_specials

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

_FIRST_BITS = 16  # 2 MB of slots
_FAST_BITS = 22  # up to here a table grows fourfold, beyond twofold
_FULL = 0.6
_FIRST_ARENA = 1 << 16
_FILL_PADDING = 16
_NO_SPECIALS = compile_specials([])


@dataclass(frozen=True)
class LeftOut:
    """Pretokens that an export left out because they are too long.

    Attributes:
        rows: distinct ones.
        occurrences: the sum of their counts.
        bytes: the sum of the lengths of the distinct ones.
    """

    rows: int = 0
    occurrences: int = 0
    bytes: int = 0


class PretokenTable:
    """Pretokens and their 64-bit counts.

    A CapacityError (a count past 2^63 - 1, or no memory) leaves the table with a part of what was
    being added: throw it away.
    """

    def __init__(self) -> None:
        self._words = np.zeros(table.TABLE_WORDS, np.int64)
        self._words[table.MASKS :] = table.key_masks()
        self._records = np.empty(table.RECORD_BYTES, np.uint8)
        self._words[table.RECORDS] = address(self._records)
        self._output = np.empty(scan_state.CAPACITY, np.uint64)
        self.reset()

    def reset(self) -> None:
        """Forget everything and give the memory back."""
        self._total = 0
        self._arena: Bytes = np.empty(0, np.uint8)
        self._words[table.ARENA_USED] = 0
        self._words[table.USED] = 0
        self._set_slots(_FIRST_BITS)
        self._set_arena(_FIRST_ARENA)

    def __len__(self) -> int:
        """Distinct pretokens."""
        return int(self._words[table.USED])

    @property
    def total(self) -> int:
        """The sum of all counts; may pass 2^63 - 1."""
        return self._total

    @property
    def memory_bytes(self) -> int:
        """Memory that the table holds."""
        return self._slots.nbytes + self._arena.nbytes + self._records.nbytes + self._output.nbytes

    def count(self, scanner: Scanner, block: Block, specials: Integers | None = None) -> None:
        """Count the pretokens of a block.

        Args:
            scanner: runs the pattern.
            block: documents of valid UTF-8.
            specials: special tokens to cut out first, from `kernels.specials.compile_specials`.

        Raises:
            CapacityError: see the class.
        """
        starts, ends = checked_spans(block)
        specials = _NO_SPECIALS if specials is None else specials
        state = np.zeros(scan_state.STATE_WORDS, np.int64)
        state[scan_state.DATA] = address(block.data)
        state[scan_state.OUT] = address(self._output)
        state[scan_state.TABLES] = address(scanner.tables)
        state[scan_state.STARTS] = address(starts)
        state[scan_state.ENDS] = address(ends)
        state[scan_state.DOCUMENTS] = len(starts)
        state[scan_state.RESUME] = -1
        state[scan_state.SPECIALS] = address(specials)
        state[count_state.TABLE] = address(self._words)
        drive = entries.count_gpt2 if scanner.kind == "gpt2" else entries.count_automaton
        where = address(state)
        self._until_done(lambda: drive(where))
        self._total += int(state[count_state.COUNTED])

    def insert(self, data: Bytes, offsets: Integers, counts: Integers) -> None:
        """Add rows, as in Arrow's large_binary: row i is ``data[offsets[i]:offsets[i + 1]]``.

        Rows may repeat.

        Args:
            data: uint8.
            offsets: int64 (n + 1,), ascending, within `data`.
            counts: int64 (n,), at least 1.

        Raises:
            CapacityError: see the class.
            ValueError: offsets or counts that break these rules; nothing was added.
        """
        data = np.ascontiguousarray(data, np.uint8)
        offsets = np.ascontiguousarray(offsets, np.int64)
        counts = np.ascontiguousarray(counts, np.int64)
        rows = len(counts)
        if len(offsets) != rows + 1 or offsets[0] < 0 or offsets[-1] > data.size:
            raise ValueError(
                f"{rows} counts and {data.size} bytes do not fit {len(offsets)} offsets"
            )
        if rows == 0:
            return
        if (offsets[1:] < offsets[:-1]).any() or counts.min() < 1:
            raise ValueError("offsets must ascend and counts must be at least 1")
        if len(self) == 0:
            self._reserve(rows)
        self._run(
            asked.INSERT,
            {
                asked.TOTAL: rows,
                asked.SOURCE: address(data),
                asked.SOURCE_SIZE: data.size,
                asked.OFFSETS: address(offsets),
                asked.COUNTS: address(counts),
            },
        )
        self._total += exact_sum(counts)

    def add(self, other: PretokenTable) -> None:
        """Add all counts of another table.

        Raises:
            CapacityError: see the class.
        """
        slots, arena, total = other._slots, other._arena, other._total
        self._run(
            asked.ADD,
            {
                asked.TOTAL: len(slots) // table.SLOT_BYTES,
                asked.SOURCE: address(slots),
                asked.SOURCE_ARENA: address(arena),
            },
        )
        self._total += total

    def export(self, partitions: int = 1, *, max_length: int | None = None) -> list[Columns]:
        """The rows of each partition, as Arrow's large_binary and int64 take them.

        The partition of a pretoken depends on its bytes and the number of partitions only. Rows
        come in no order that means anything.

        Args:
            partitions: how many, at least 1.
            max_length: leave out pretokens of more bytes; `left_out` tells about them.
        """
        return self._export(partitions, max_length)[0]

    def left_out(self, max_length: int) -> LeftOut:
        """What an export with this `max_length` leaves out."""
        return self._export(1, max_length)[1]

    def _export(self, partitions: int, max_length: int | None) -> tuple[list[Columns], LeftOut]:
        if partitions < 1:
            raise ValueError(f"cannot export {partitions} partitions")
        cursors = np.zeros((partitions + 1, 3), np.int64)
        request = {
            asked.PARTITIONS: partitions,
            asked.LONGEST: table.LARGEST if max_length is None else max_length,
            asked.CURSORS: address(cursors),
        }
        self._run(asked.MEASURE, request)
        rows, sizes = cursors[:, 0].copy(), cursors[:, 1].copy()
        first_row = np.concatenate([[0], np.cumsum(rows)])
        first_byte = np.concatenate([[0], np.cumsum(sizes[:-1] + _FILL_PADDING)])
        cursors[:, 0] = first_row[:-1]
        cursors[:, 1] = first_byte
        cursors[:, 2] = first_byte
        try:
            data = np.empty(first_byte[-1], np.uint8)
            offsets = np.zeros(first_row[-2] + partitions, np.int64)
            counts = np.empty(first_row[-1], np.int64)
        except MemoryError:
            raise _no_memory(int(first_byte[-1] + 16 * first_row[-1]), "the export") from None
        request[asked.TARGET] = address(data)
        request[asked.OFFSETS] = address(offsets)
        request[asked.COUNTS] = address(counts)
        self._run(asked.FILL, request)
        parts = [
            Columns(
                data[first_byte[part] : first_byte[part] + sizes[part]],
                offsets[first_row[part] + part : first_row[part + 1] + part + 1],
                counts[first_row[part] : first_row[part + 1]],
            )
            for part in range(partitions)
        ]
        long = counts[first_row[partitions] :]
        return parts, LeftOut(len(long), exact_sum(long), int(sizes[partitions]))

    def _run(self, operation: int, values: dict[int, int]) -> None:
        request = np.zeros(asked.REQUEST_WORDS, np.int64)
        for word, value in values.items():
            request[word] = value
        where, words = address(request), address(self._words)
        self._until_done(lambda: entries.table_rows(operation, words, where))

    def _until_done(self, call: Callable[[], int]) -> None:
        """Call a kernel again and again, making room when it asks for it."""
        while True:
            code = call()
            if code == table.DONE:
                return
            if code == table.GROW_SLOTS:
                bits = 65 - int(self._words[table.SHIFT])
                self._grow_slots(bits + (2 if bits < _FAST_BITS else 1))
            elif code == table.GROW_ARENA:
                used = int(self._words[table.ARENA_USED])
                needed = used + int(self._words[table.NEEDED])
                self._set_arena(max(needed, 2 * self._arena.size))
            else:
                raise CapacityError(
                    "the count of a pretoken passes 2^63 - 1 (9.2e18), the largest that is exact; "
                    "use fewer or smaller counts"
                )

    def _reserve(self, rows: int) -> None:
        """Grow an empty table to take so many rows."""
        bits = _FIRST_BITS
        while (1 << bits) * _FULL < rows + table.SLICE:
            bits += 1
        if bits > 65 - int(self._words[table.SHIFT]):
            self._set_slots(bits)

    def _grow_slots(self, bits: int) -> None:
        old = self._slots
        self._set_slots(bits)
        self._run(
            asked.REHASH,
            {
                asked.SOURCE: address(old),
                asked.TOTAL: len(old) // table.SLOT_BYTES,
            },
        )

    def _set_slots(self, bits: int) -> None:
        size = table.SLOT_BYTES << bits
        try:
            self._slots = _aligned_zeros(size)
        except MemoryError:
            raise _no_memory(size, f"slots for more than {len(self):,} pretokens") from None
        self._words[table.SLOTS] = address(self._slots)
        self._words[table.SHIFT] = 65 - bits
        self._words[table.LAST] = size - table.SLOT_BYTES
        self._words[table.LIMIT] = int((1 << bits) * _FULL)

    def _set_arena(self, size: int) -> None:
        used = int(self._words[table.ARENA_USED])
        try:
            arena = np.empty(size, np.uint8)
        except MemoryError:
            raise _no_memory(size, "the bytes of long pretokens") from None
        arena[:used] = self._arena[:used]
        self._arena = arena
        self._words[table.ARENA] = address(arena)
        self._words[table.ARENA_SIZE] = size


def _aligned_zeros(size: int) -> Bytes:
    """Zeros that begin at a cache line, so that a pair of slots is in one."""
    whole = np.zeros(size + 64, np.uint8)
    skip = -address(whole) % 64
    return whole[skip : skip + size]


def _no_memory(size: int, purpose: str) -> CapacityError:
    return CapacityError(
        f"no memory: {size / 1e6:,.0f} MB for {purpose} could not be allocated; use a machine with "
        "more memory, smaller chunks or fewer workers"
    )
