"""One thread's share of encoding: its buffers, its cache of encoded pretokens, its state block.

A worker serves one call at a time. Memory: the cache grows with the number of different pretokens
seen, up to CACHE_BYTES and half as much for long ones, and then starts afresh; the buffers are some
hundred kB. A single pretoken longer than SHORT bytes wants 24 bytes of working space per byte.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from raybpe.block import PADDING_BYTES
from raybpe.errors import CapacityError
from raybpe.kernels import encode_state as word
from raybpe.kernels import scan_state
from raybpe.kernels.entry import address
from raybpe.kernels.table_layout import key_masks
from raybpe.tokenizer.encoder_tables import EncoderTables, empty_slots, slot_shift

CACHE_BYTES = 64 << 20
FIRST_SLOTS = 1 << 12
FULL = 0.6  # of the slots
SMALL_TEXT = 4096  # longest text, in bytes, that is encoded in the worker's own buffers
_FIRST_ARENA = 1 << 16
_FIRST_SCRATCH = 1 << 16
_LONGEST_PRETOKEN = 1 << 31

Ids = npt.NDArray[np.uint16 | np.uint32]


class Worker:
    """See the module's docstring.

    Attributes:
        text: uint8 (SMALL_TEXT + PADDING_BYTES,), where the kernel finds a small text.
        small_ids: the ids of the latest small text.
        state: int64 state block.
        address: its address, what kernels take; `argument` is the same made ready for a call.
    """

    def __init__(self, tables: EncoderTables) -> None:
        self.tables = tables
        self.text: npt.NDArray[np.uint8] = np.zeros(SMALL_TEXT + PADDING_BYTES, np.uint8)
        self.small_ids: Ids = np.zeros(SMALL_TEXT + word.SLACK, tables.dtype)
        self.text_view = self.text.data
        self.ids_view = self.small_ids.data
        self.state: npt.NDArray[np.int64] = np.zeros(scan_state.STATE_WORDS, np.int64)
        self.address = address(self.state)
        self.argument: Any = ctypes.c_int64(self.address)
        self._ids = self.small_ids
        self._kept: dict[int, npt.NDArray[Any]] = {}  # arrays whose addresses are in the state
        self._small_span = np.zeros(2, np.int64)
        for index, array in (
            (scan_state.OUT, np.zeros(scan_state.CAPACITY, np.uint64)),
            (scan_state.TABLES, tables.scanner.tables),
            (word.BYTE_IDS, tables.byte_ids),
            (word.BYTE_PAIRS, tables.byte_pairs),
            (word.PAIRS, tables.pairs),
            (word.LENGTHS, tables.lengths),
            (word.FILTER, tables.filter_bits),
            (word.RECORDS, np.zeros(4 * word.SLICE, np.uint64)),
            (word.WAITING, np.zeros(word.MOST_WAITING * word.WAITING_BYTES, np.uint8)),
            (word.MASKS, key_masks()),
        ):
            self._point(index, array)
        self.state[word.PAIR_SHIFT] = tables.pair_shift
        self.state[word.FILTER_MASK] = tables.filter_mask
        self.state[word.WIDTH] = self.small_ids.itemsize.bit_length() - 1
        if tables.whole is not None:
            self._point(word.WHOLE, tables.whole.slots)
            self._point(word.WHOLE_ARENA, tables.whole.arena)
            self.state[word.WHOLE_SHIFT] = tables.whole.shift
        self._set_scratch(_FIRST_SCRATCH)
        self._set_arena(np.zeros(_FIRST_ARENA + word.SLACK, np.uint8))
        self._set_slots(empty_slots(FIRST_SLOTS))
        self.use_small()

    def use_small(self) -> None:
        """Point the state at the worker's own text and output again."""
        self._point(scan_state.DATA, self.text)
        self._point(scan_state.STARTS, self._small_span[:1])
        self._point(scan_state.ENDS, self._small_span[1:])
        self._use_ids(self.small_ids)

    def use_specials(self, compiled: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]) -> None:
        """Cut out these special tokens from now on."""
        self._point(scan_state.SPECIALS, compiled)
        self._point(word.SPECIAL_IDS, ids)

    def use_listed(self, entries: npt.NDArray[np.int64]) -> None:
        """Take the pretokens of the next document from `entries`, as `scan_listed` reads them."""
        self._point(scan_state.TABLES, entries)

    def encode_documents(
        self,
        data: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        span: tuple[int, int] | None,
        output: Ids,
        used: int = 0,
        token_ends: npt.NDArray[np.int64] | None = None,
    ) -> tuple[Ids, int]:
        """Append the ids of some documents to the first `used` ones of `output`.

        Bytes of ``data[span[0]:span[1]]`` outside the documents become one id each; without `span`
        they are left out. `token_ends` is filled with the ids written at each document's end.
        Returns the output, which is another array if it had to grow, and how many of its ids are
        used.
        """
        state = self.state
        self._point(scan_state.DATA, data)
        self._point(scan_state.STARTS, starts)
        self._point(scan_state.ENDS, ends)
        state[scan_state.DOCUMENTS] = len(starts)
        state[word.BETWEEN] = span is not None
        state[word.AT], state[word.STOP] = span or (0, 0)
        state[word.ENDS_OUT] = 0
        if token_ends is not None:
            self._point(word.ENDS_OUT, token_ends)
        self._use_ids(output)
        state[word.IDS_USED] = used
        try:
            used = self.finish(self.tables.driver(self.address, word.BEGIN))
            return self._ids, used
        finally:
            self.use_small()

    def finish(self, count: int) -> int:
        """After the kernel returned `count`: grow what must grow until all is done.

        Returns how many ids there are.
        """
        while count < 0:
            self._grow(-count)
            count = self.tables.driver(self.address, word.GO_ON)
            self._kept.pop(word.OLD, None)
        return count

    def _grow(self, code: int) -> None:
        """Do what a GROW code asks for."""
        state = self.state
        if code == word.GROW_CACHE:
            self._grow_cache()
        elif code == word.GROW_IDS:
            used = int(state[word.IDS_USED])
            size = max(used + used // 2, used + int(state[word.NEED])) + (1 << 16)
            ids = np.empty(size, self._ids.dtype)
            ids[:used] = self._ids[:used]
            self._use_ids(ids)
        else:
            self._set_scratch(int(state[word.NEED]))

    def _grow_cache(self) -> None:
        """More slots or a larger arena; beyond the bounds, empty both."""
        state = self.state
        slots, arena = self._kept[word.TABLE], self._kept[word.ARENA]
        if state[word.ARENA_FULL] and 2 * len(arena) <= CACHE_BYTES // 2:
            larger = np.zeros(2 * len(arena), np.uint8)
            larger[: len(arena)] = arena
            self._set_arena(larger)
        elif not state[word.ARENA_FULL] and 2 * slots.nbytes <= CACHE_BYTES:
            count = len(slots) * (4 if 4 * slots.nbytes <= CACHE_BYTES else 2)
            more = empty_slots(count)
            used = int(state[word.USED])
            self._set_slots(more)
            state[word.USED] = used
            self._point(word.OLD, slots)
            state[word.OLD_SLOTS] = len(slots)
        else:
            slots.fill(0)
            state[word.USED] = state[word.ARENA_USED] = 0
        state[word.ARENA_FULL] = 0

    def _point(self, index: int, array: npt.NDArray[Any]) -> None:
        self._kept[index] = array
        self.state[index] = address(array)

    def _use_ids(self, ids: Ids) -> None:
        self._ids = ids
        self._point(word.IDS, ids)
        self.state[word.IDS_SIZE] = len(ids) - word.SLACK

    def _set_slots(self, slots: npt.NDArray[np.uint64]) -> None:
        self._point(word.TABLE, slots)
        self.state[word.SHIFT] = slot_shift(len(slots))
        self.state[word.LIMIT] = int(len(slots) * FULL)
        self.state[word.USED] = 0

    def _set_arena(self, arena: npt.NDArray[np.uint8]) -> None:
        self._point(word.ARENA, arena)
        self.state[word.ARENA_SIZE] = len(arena) - word.SLACK

    def _set_scratch(self, size: int) -> None:
        if size > word.LONG_SCRATCH * _LONGEST_PRETOKEN:
            raise CapacityError(
                f"a single pretoken of more than {_LONGEST_PRETOKEN:,} bytes cannot be encoded; "
                "use a pattern that splits the text"
            )
        self._point(word.SCRATCH, np.empty(size, np.uint8))
        self.state[word.SCRATCH_SIZE] = size
