"""What all encoding threads share: scanner, pair tables, token lengths, whole tokens.

Read-only arrays. Memory: 66 to 132 bytes per merge, 4 bytes per id, 0.5 MB for pairs of bytes; with
`ignore_merges` about 60 bytes per token more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raybpe.block import PADDING_BYTES
from raybpe.kernels import encode_state as word
from raybpe.kernels import scan_state
from raybpe.kernels.entry import Kernel, address
from raybpe.kernels.scanner import Scanner
from raybpe.kernels.table_layout import key_masks
from raybpe.tokenizer.vocabulary import Vocabulary

_LINE = 64  # bytes of a cache line


def empty_slots(count: int) -> npt.NDArray[np.uint64]:
    """Slots of an empty cache, uint64 (count, 4)."""
    return _at_line(np.zeros(4 * count + _LINE // 8, np.uint64), 4 * count).reshape(count, 4)


def _at_line(words: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    """The first `count` of some more words that begin at a cache line."""
    first = -address(words) % _LINE // 8
    return words[first : first + count]


def slot_shift(count: int) -> int:
    """SHIFT of so many slots."""
    return 66 - count.bit_length()


@dataclass(frozen=True)
class WholeTokens:
    """Tokens that win over merges when they are a whole pretoken: a cache that never changes."""

    slots: npt.NDArray[np.uint64]
    arena: npt.NDArray[np.uint8]
    shift: int

    @classmethod
    def of(cls, tokens: dict[bytes, int], driver: Kernel) -> WholeTokens:
        """All of `tokens`, bytes → id."""
        bits = int(2 * len(tokens) + 2).bit_length()
        offsets = np.zeros(len(tokens) + 1, np.int64)
        np.cumsum([len(token) for token in tokens], out=offsets[1:])
        text = np.frombuffer(b"".join(tokens) + bytes(PADDING_BYTES), np.uint8)
        ids = np.zeros(len(tokens) + 1, np.int64)
        ids[:-1] = list(tokens.values())
        arena = np.zeros(int(offsets[-1]) + 16 * len(tokens) + word.SLACK, np.uint8)
        slots = empty_slots(1 << bits)
        masks = key_masks()
        state = np.zeros(scan_state.STATE_WORDS, np.int64)
        state[word.TABLE], state[word.SHIFT] = address(slots), slot_shift(len(slots))
        state[word.ARENA], state[word.ARENA_SIZE] = address(arena), len(arena) - word.SLACK
        state[word.MASKS], state[word.WIDTH], state[word.IDS] = address(masks), 2, address(ids)
        state[scan_state.DATA], state[scan_state.STARTS] = address(text), address(offsets)
        state[scan_state.DOCUMENTS] = len(tokens)
        driver(address(state), word.FILL_TOKENS)
        return cls(slots, arena, slot_shift(len(slots)))


class EncoderTables:
    """The vocabulary as the encode kernels read it.

    Attributes:
        driver: the kernel that encodes with it.
        scanner: the pattern's scanner.
        byte_ids: int32 (256,).
        byte_pairs: uint64 (65536,), rank << 32 | result of each pair of bytes, or NONE.
        pairs: uint64 (lines, 8), hash table of all pairs.
        filter_bits: uint64 words of the filter in front of it; `filter_mask` its bits - 1.
        pair_shift: 64 - log2(lines).
        lengths: int32 (highest id + 1,), bytes of each token.
        dtype: uint16 when every id fits, else uint32.
        whole: tokens that win over merges, if any do.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        scanner: Scanner | None,
        driver: Kernel,
        ignore_merges: bool,
    ) -> None:
        merges = vocabulary.merge_ids
        bits = (len(merges) + 1).bit_length()
        self.driver = driver
        self.scanner = scanner or Scanner("automaton")
        self.byte_ids: npt.NDArray[np.int32] = vocabulary.byte_ids
        self.pairs = _at_line(np.full((8 << bits) + 16, word.NONE), (8 << bits) + 8).reshape(-1, 8)
        self.filter_bits: npt.NDArray[np.uint64] = np.zeros(-(-(1 << bits) // 4), np.uint64)
        self.filter_mask = 64 * len(self.filter_bits) - 1
        self.pair_shift = 64 - bits
        rows = np.ascontiguousarray(merges, np.int32)
        state = np.zeros(scan_state.STATE_WORDS, np.int64)
        state[word.PAIRS], state[word.PAIR_SHIFT] = address(self.pairs), self.pair_shift
        state[word.FILTER], state[word.FILTER_MASK] = address(self.filter_bits), self.filter_mask
        state[scan_state.DATA], state[scan_state.DOCUMENTS] = address(rows), len(rows)
        driver(address(state), word.FILL_PAIRS)
        self.byte_pairs = _byte_pairs(merges, vocabulary.byte_ids, vocabulary.id_limit)
        self.lengths: npt.NDArray[np.int32] = np.zeros(vocabulary.id_limit, np.int32)
        numbers, lengths = list(vocabulary.tokens), map(len, vocabulary.tokens.values())
        self.lengths[numbers] = np.fromiter(lengths, np.int32, len(numbers))
        self.dtype = id_dtype(vocabulary)
        self.whole = WholeTokens.of(vocabulary.ordinary, driver) if ignore_merges else None


def id_dtype(vocabulary: Vocabulary) -> type[np.uint16] | type[np.uint32]:
    """The smaller type that holds every id."""
    return np.uint16 if vocabulary.id_limit <= 1 << 16 else np.uint32


def _byte_pairs(
    merges: npt.NDArray[np.int32], byte_ids: npt.NDArray[np.int32], id_limit: int
) -> npt.NDArray[np.uint64]:
    """The merges of two single bytes, by first byte | second byte << 8."""
    byte_of = np.full(id_limit, -1, np.int64)
    byte_of[byte_ids] = np.arange(256)
    first, second = byte_of[merges[:, 0]], byte_of[merges[:, 1]]
    ranks = np.flatnonzero((first >= 0) & (second >= 0))
    table = np.full(1 << 16, word.NONE)
    table[first[ranks] | second[ranks] << 8] = (ranks << 32 | merges[ranks, 2]).astype(np.uint64)
    return table
