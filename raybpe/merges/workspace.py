"""The arrays of the merge kernel: made, filled, grown, compacted, rebuilt.

Every address in the kernel's state block is of an array kept here. The big ones are the symbols
(2 or 4 bytes per byte of unique pretokens) and the pool of positions (4 bytes per place, with
slack, since pages that were never written cost nothing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from raybpe.kernels import entries
from raybpe.kernels import merge_state as state
from raybpe.kernels.entry import address

Array = npt.NDArray[Any]

GROWTH = 1.0  # an array that is full gets this share more than it has
_HEAD_CELLS = 1 << 16
_SKETCH_BITS = 22
_BYTE_PAIRS = 1 << 16


@dataclass(frozen=True)
class Tuning:
    """How much room to begin with; no value changes the result.

    Attributes:
        threshold: pairs below it get no list at first; None chooses from the counts.
        wide_symbols: 32-bit symbols even where 16 bits would do.
        pool_slack: places in the pool per place in the first lists, at least 1.
        room: first places for records and heap entries, and half the slots for pairs.
    """

    threshold: int | None = None
    wide_symbols: bool = False
    pool_slack: float = 1.6
    room: int = 1 << 16


@dataclass(frozen=True)
class Words:
    """Which words are merged, in which order, and how much room they take.

    Attributes:
        order: int64, rows by count, the highest first; rows of less than two bytes may be
            among them.
        cells: symbols and sentinels of all rows of two bytes or more.
        groups: at least as many as there are different counts.
    """

    order: npt.NDArray[np.int64]
    cells: int
    groups: int


def symbol_bits(max_merges: int) -> int:
    """Width of a symbol, 16 or 32 bits: every id and two marks must fit."""
    return 16 if 256 + max_merges + 2 <= 1 << 16 else 32


class Workspace:
    """Arrays and state block of one training; `merge` until it says what it needs."""

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
        words: Words,
        *,
        byte_ids: npt.NDArray[np.uint8],
        max_merges: int,
        by_bytes: bool,
        max_token_length: int | None,
        threshold: int,
        tuning: Tuning,
    ) -> None:
        self._arrays: dict[int, Array] = {}
        self._block = np.zeros(state.WORDS_OF_STATE, np.int64)
        self._tuning = tuning
        sentinel = 256 + max_merges
        width = 32 if tuning.wide_symbols else symbol_bits(max_merges)
        self._symbol = np.dtype(f"uint{width}")
        self._kernel = entries.merge[width]
        self._rebuild_kernel = entries.merge_rebuild[width]

        self._set(state.CELLS, words.cells)
        self._set(state.SENTINEL, sentinel)
        self._set(state.MAX_LENGTH, 2**32 if max_token_length is None else max_token_length)
        self._set(state.THRESHOLD, threshold)
        self._set(state.BY_BYTES, by_bytes)
        self._make(state.MERGED, max_merges, np.int64)
        self._make(state.MERGED_COUNTS, max_merges, np.int64)
        self._make_tokens(byte_ids, sentinel, by_bytes)
        self._build_symbols(data, offsets, counts, words, byte_ids)
        self._make_lists()

    def merge(self, target: int, work: int) -> int:
        """Merge until `target` merges are made or `work` list entries seen; returns a code."""
        self._set(state.TARGET, target)
        self._set(state.WORK, work)
        return self._run(state.MERGE)

    @property
    def made(self) -> int:
        """Merges made so far."""
        return self._get(state.MERGES)

    @property
    def threshold(self) -> int:
        """Pairs below this have no list."""
        return self._get(state.THRESHOLD)

    @property
    def merged(self) -> npt.NDArray[np.int64]:
        """int64 (made,): left << 32 | right of each merge; a view."""
        return self._arrays[state.MERGED][: self.made]

    @property
    def merged_counts(self) -> npt.NDArray[np.int64]:
        """int64 (made,): count of each merged pair; a view."""
        return self._arrays[state.MERGED_COUNTS][: self.made]

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays.values())

    def make_room(self, code: int) -> None:
        """Make more room for what the code names."""
        if code == state.PAIRS_FULL:
            self._grow_pairs()
        elif code == state.RECORDS_FULL:
            self._grow(state.RECORDS, state.RECORDS_USED, state.RECORD_ROOM, 3)
        elif code == state.POOL_FULL:
            self._make_pool_room()
        elif code == state.HEAP_FULL:
            self._grow(state.HEAP, state.HEAP_USED, state.HEAP_ROOM, 2)
        else:
            self._grow(state.TEXT, state.TEXT_USED, state.TEXT_ROOM, 1)

    def rebuild(self, threshold: int) -> None:
        """Lower the threshold: count all pairs anew and list those that reach it."""
        self._set(state.THRESHOLD, threshold)
        # Nothing listed can be merged any more: free it before counting.
        self._arrays.pop(state.POOL)
        self._count_pairs()
        counted, numbers = self._arrays[state.PAIRS], self._arrays[state.PAIR_LISTS]
        listed = (counted[0::2] != state.EMPTY) & (counted[1::2] >= threshold)
        pairs = int(np.count_nonzero(listed))
        places = int(numbers[listed].sum(dtype=np.int64))
        self._make_longest(int(numbers[listed].max(initial=0)))
        self._make_pairs(pairs)
        self._make_pool(pairs, places)
        self._point(state.OLD, counted)
        self._point(state.OLD_LISTS, numbers)
        self._set(state.OLD_SIZE, len(numbers))
        self._run_rebuild(state.FILL_LISTS)

    # --- making ---------------------------------------------------------------------------------

    def _make_tokens(self, byte_ids: npt.NDArray[np.uint8], sentinel: int, by_bytes: bool) -> None:
        lengths = self._make(state.LENGTHS, sentinel + 2, np.uint32)
        lengths[:256] = 1
        for name in (state.LEFT_SUMS, state.RIGHT_SUMS):
            self._make(name, 2 * (sentinel + 2), np.int64)
        for name in (state.LEFT_SEEN, state.RIGHT_SEEN):
            self._make(name, sentinel + 3, np.uint32)
        if not by_bytes:
            return
        bytes_by_id = np.argsort(byte_ids).astype(np.uint8)
        prefixes = self._make(state.PREFIXES, sentinel, np.int64)
        prefixes[:256] = (bytes_by_id.astype(np.int64) << 56) ^ np.int64(-(1 << 63))
        begins = self._make(state.TEXT_BEGINS, sentinel, np.int64)
        begins[:256] = np.arange(256)
        room = 256 + max(8 * sentinel, 1 << 10)
        self._make(state.TEXT, room, np.uint8)[:256] = bytes_by_id
        self._set(state.TEXT_USED, 256)
        self._set(state.TEXT_ROOM, room)

    def _build_symbols(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
        words: Words,
        byte_ids: npt.NDArray[np.uint8],
    ) -> None:
        cells, groups, order = words.cells, words.groups, words.order
        head_cells = min(cells, _HEAD_CELLS) if cells > 1 else 0
        self._make(state.SYMBOLS, cells, self._symbol, zero=False)
        self._make(state.GROUP_BEGINS, groups + 1, np.int64)
        self._make(state.GROUP_COUNTS, groups, np.int64)
        self._make(state.BLOCK_GROUPS, (cells >> 8) + 1, np.uint32)
        self._make(state.HEAD_COUNTS, head_cells, np.int64)
        self._make(state.BYTE_PAIR_COUNTS, _BYTE_PAIRS, np.int64)
        self._make(state.BYTE_PAIR_PLACES, _BYTE_PAIRS, np.uint32)
        self._set(state.HEAD_CELLS, head_cells)
        self._set(state.ORDER_SIZE, len(order))
        inputs: dict[int, Array] = {
            state.DATA: data,
            state.OFFSETS: offsets,
            state.COUNTS: counts,
            state.ORDER: order,
            state.BYTE_IDS: byte_ids,
        }
        for name, array in inputs.items():
            self._point(name, array)
        self._run(state.BUILD)
        if cells > 1:
            self._run(state.INDEX_GROUPS)

    def _make_lists(self) -> None:
        """Tables, lists and heap of the byte pairs."""
        listed = self._arrays[state.BYTE_PAIR_COUNTS] >= self.threshold
        pairs = int(np.count_nonzero(listed))
        numbers = self._arrays[state.BYTE_PAIR_PLACES][listed]
        self._make_longest(int(numbers.max(initial=0)))
        self._make_pairs(pairs)
        self._make_pool(pairs, int(numbers.sum(dtype=np.int64)))
        self._run(state.START_LISTS)
        self._make(state.BATCH, 512, np.uint32)
        self._run(state.FILL_BYTE_LISTS)
        self._arrays.pop(state.BATCH)
        self._arrays.pop(state.BYTE_PAIR_COUNTS)
        self._arrays.pop(state.BYTE_PAIR_PLACES)

    def _make_longest(self, places: int) -> None:
        """Scratch for the longest list; lists made later are shorter than their parent's."""
        self._make(state.PLACES, places + 1, np.uint32, zero=False)
        self._make(state.LEFTS, places, self._symbol, zero=False)
        self._make(state.RIGHTS, places, self._symbol, zero=False)

    def _make_pairs(self, pairs: int) -> None:
        """An empty pair table with room for at least `pairs` and some more."""
        bits = max(2 * (pairs + self._tuning.room), 4).bit_length()
        self._make(state.PAIRS, 2 << bits, np.int64, zero=False).fill(state.EMPTY)
        self._make(state.PAIR_LISTS, 1 << bits, np.uint32, zero=False)
        self._set(state.PAIR_BITS, bits)
        self._set(state.PAIRS_USED, 0)

    def _make_pool(self, pairs: int, places: int) -> None:
        """An empty pool, records and heap, with room for the first lists and some more."""
        room = int(places * self._tuning.pool_slack) + 1
        self._make(state.POOL, room, np.uint32, zero=False)
        self._set(state.POOL_ROOM, room)
        room = pairs + self._tuning.room
        self._make(state.RECORDS, 3 * room, np.int64, zero=False)
        self._set(state.RECORD_ROOM, room)
        self._make(state.HEAP, 2 * room, np.int64, zero=False)
        self._set(state.HEAP_ROOM, room)
        for name in (state.POOL_USED, state.RECORDS_USED, state.HEAP_USED):
            self._set(name, 0)

    def _count_pairs(self) -> None:
        """Count exactly all pairs that may reach the threshold, in a new table."""
        bits = min(_SKETCH_BITS, max(self._get(state.CELLS).bit_length(), 4))
        self._make(state.SKETCH, 1 << bits, np.int64)
        self._set(state.SKETCH_BITS, bits)
        self._run_rebuild(state.SKETCH_PAIRS)
        room = max(self._tuning.room, int(np.count_nonzero(self._arrays[state.SKETCH])) // 8)
        self._make_pairs(room)
        while self._run_rebuild(state.COUNT_PAIRS) == state.PAIRS_FULL:
            room *= 2
            self._make_pairs(room)
        self._arrays.pop(state.SKETCH)

    # --- making room ----------------------------------------------------------------------------

    def _grow_pairs(self) -> None:
        """Move the pairs that can still be merged to a table with room for what is needed."""
        old, old_lists = self._arrays[state.PAIRS], self._arrays[state.PAIR_LISTS]
        kept = int(np.count_nonzero((old[0::2] != state.EMPTY) & (old[1::2] >= self.threshold)))
        self._point(state.OLD, old)
        self._point(state.OLD_LISTS, old_lists)
        self._set(state.OLD_SIZE, len(old_lists))
        self._make_pairs(kept + max(int(kept * GROWTH / 2), self._get(state.NEEDED)))
        self._run(state.MOVE_PAIRS)

    def _make_pool_room(self) -> None:
        """Compact; drop stale entries too if that was not enough; grow if that was not either."""
        for drop_stale in (False, True):
            self._compact(drop_stale)
            wanted = self._get(state.POOL_USED) + self._get(state.NEEDED)
            if wanted <= self._get(state.POOL_ROOM) * 7 // 8:
                return
        old = self._arrays[state.POOL]
        used = self._get(state.POOL_USED)
        room = wanted + int(wanted * GROWTH / 2)
        self._make(state.POOL, room, np.uint32, zero=False)[:used] = old[:used]
        self._set(state.POOL_ROOM, room)

    def _compact(self, drop_stale: bool = False) -> None:
        used = self._get(state.RECORDS_USED)
        old = self._arrays[state.RECORDS]
        order = np.argsort(old[1 : 3 * used : 3])
        self._point(state.ORDER, order)
        self._set(state.ORDER_SIZE, used)
        self._point(state.OLD, old)
        self._set(state.FILTER, drop_stale)
        self._make(state.RECORDS, len(old), np.int64, zero=False)
        self._run(state.COMPACT)

    def _grow(self, name: int, used_name: int, room_name: int, width: int) -> None:
        """Grow an array of `width` values per item, at least by what is needed."""
        old = self._arrays[name]
        used = self._get(used_name)
        room = max(int(self._get(room_name) * (1 + GROWTH)), used + self._get(state.NEEDED))
        new = self._make(name, width * room, old.dtype, zero=False)
        new[: width * used] = old[: width * used]
        self._set(room_name, room)

    # --- the state block ------------------------------------------------------------------------

    def _run(self, operation: int) -> int:
        return self._kernel(operation, address(self._block), 0)

    def _run_rebuild(self, operation: int) -> int:
        return self._rebuild_kernel(operation, address(self._block), 0)

    def _get(self, name: int) -> int:
        return int(self._block[name])

    def _set(self, name: int, value: int) -> None:
        self._block[name] = value

    def _point(self, name: int, array: Array) -> None:
        """Give the kernel an array that the caller keeps alive while an operation runs."""
        self._block[name] = address(array)

    def _make(self, name: int, size: int, dtype: npt.DTypeLike, zero: bool = True) -> Array:
        array: Array = np.zeros(size, dtype) if zero else np.empty(size, dtype)
        self._arrays[name] = array
        self._point(name, array)
        return array
