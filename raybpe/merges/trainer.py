"""Training: from counted pretokens to merges, in slices, exactly.

The loop itself is `kernels.merge`. This side orders the words, owns the arrays (`workspace`),
and makes room or lowers the threshold when the kernel asks.

Memory: 10–13 bytes per byte of unique pretokens, beside the input, which is only needed while the
trainer is being made. `memory_estimate` gives an upper figure.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from raybpe.config import TieBreak
from raybpe.errors import CapacityError, CountsError, UsageError
from raybpe.kernels import merge_state as state
from raybpe.merges.workspace import Tuning, Words, Workspace

MAX_COUNT = 2**63 - 1
MAX_CELLS = 2**32 - 256  # positions are 32 bits wide
_TIMED_WORK = 1 << 20  # list entries between two looks at the clock: some 20 ms
_UNTIMED_WORK = 1 << 24  # and between two chances for Ctrl-C


class MergeTrainer:
    """Learns merges from counted pretokens; `advance` until `done`.

    Args:
        data: uint8, the bytes of all pretokens one after another.
        offsets: int64 (n + 1,), pretoken i is ``data[offsets[i]:offsets[i + 1]]``. Empty and
            one-byte pretokens are allowed and have no pairs; a repeated one counts once per row.
        counts: int64 (n,), how often each occurs, at least 0.
        byte_ids: uint8 (256,), id of each byte value, a permutation.
        max_merges: stop after this many.
        tie_break: which of several pairs of equal count is merged first: the lowest (left id,
            right id), or the greatest (left bytes, right bytes).
        min_frequency: a pair that occurs fewer times is never merged.
        max_token_length: longest token, in bytes, that a merge may make.
        tuning: sizes of arrays and the first threshold; no value changes the result.

    The input arrays are read here and not kept. No two ids ever get the same bytes
    (`raybpe.reference` shows why).

    Raises:
        CountsError: a negative count, or arrays that do not fit together.
        CapacityError: counts whose sums pass 2**63 - 1, or more than 2**32 bytes of pretokens.
    """

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
        *,
        byte_ids: npt.NDArray[np.uint8],
        max_merges: int,
        tie_break: TieBreak = "lowest-ids",
        min_frequency: int = 1,
        max_token_length: int | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        if tie_break not in ("lowest-ids", "greatest-bytes"):
            raise UsageError(f"no tie rule named {tie_break!r}: lowest-ids or greatest-bytes")
        if max_merges < 0:
            raise UsageError(f"the number of merges must not be negative, got {max_merges}")
        if not np.array_equal(np.sort(byte_ids), np.arange(256)):
            raise UsageError("byte ids must hold each of 0 to 255 once")
        data = np.ascontiguousarray(data, np.uint8)
        offsets = np.ascontiguousarray(offsets, np.int64)
        counts = np.ascontiguousarray(counts, np.int64)
        self._max_merges = max_merges
        self._floor = max(1, min_frequency)
        self._exhausted = False
        _check_rows(data, offsets, counts)
        words, weight = _arrange(offsets, counts)
        tuning = tuning or Tuning()
        threshold = tuning.threshold
        if threshold is None:
            # The last merge of real text has 1.9 to 17 times this count.
            threshold = weight // (400 * max(max_merges, 1))
        self._work = Workspace(
            data,
            offsets,
            counts,
            words,
            byte_ids=np.ascontiguousarray(byte_ids, np.uint8),
            max_merges=max_merges,
            by_bytes=tie_break == "greatest-bytes",
            max_token_length=max_token_length,
            threshold=max(threshold, self._floor),
            tuning=tuning,
        )

    def advance(self, merges: int | None = None, seconds: float | None = None) -> int:
        """Merge on, for at most `merges` merges and about `seconds`; returns merges made in all.

        Other threads of the interpreter run meanwhile. Slices of any size give the same result.
        """
        work = self._work
        target = self._max_merges
        if merges is not None:
            target = min(target, self.made + max(0, merges))
        deadline = None if seconds is None else time.monotonic() + seconds
        limit = _UNTIMED_WORK if deadline is None else _TIMED_WORK
        while not self._exhausted and self.made < target:
            code = work.merge(target, limit)
            if code == state.NO_PAIRS:
                if work.threshold > self._floor:
                    work.rebuild(max(self._floor, work.threshold // 16))
                else:
                    self._exhausted = True
            elif code not in (state.REACHED, state.PAUSED):
                work.make_room(code)
            if deadline is not None and time.monotonic() >= deadline:
                break
        return self.made

    @property
    def made(self) -> int:
        """Merges made so far."""
        return self._work.made

    @property
    def exhausted(self) -> bool:
        """Whether no pair is left that may be merged."""
        return self._exhausted

    @property
    def done(self) -> bool:
        """Whether all merges are made or no pair is left."""
        return self._exhausted or self.made >= self._max_merges

    @property
    def left(self) -> npt.NDArray[np.int32]:
        """int32 (made,): left id of each merge; 0–255 are bytes, 256 + i is merge i."""
        ids: npt.NDArray[np.int32] = (self._work.merged >> 32).astype(np.int32)
        return ids

    @property
    def right(self) -> npt.NDArray[np.int32]:
        """int32 (made,): right id of each merge."""
        ids: npt.NDArray[np.int32] = (self._work.merged & 0xFFFFFFFF).astype(np.int32)
        return ids

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """int64 (made,): how often each pair occurred when it was merged."""
        counts: npt.NDArray[np.int64] = self._work.merged_counts.copy()
        return counts

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays held now."""
        return self._work.memory_bytes


def memory_estimate(symbols: int, pretokens: int, max_merges: int) -> int:
    """Bytes that training takes beside its input: `symbols` bytes in `pretokens` rows.

    An upper figure for text, where no pair of bytes makes up more than a sixteenth of all pairs.
    """
    cells = symbols + pretokens + 1
    symbol_bytes = 2 if max_merges + 258 <= 1 << 16 else 4
    order = 8 * pretokens
    pool = int(4 * symbols * Tuning().pool_slack)
    occurrences = (4 + 2 * symbol_bytes) * (symbols // 16)
    per_id = 120 * (max_merges + 258)
    return cells * symbol_bytes + order + pool + occurrences + per_id + (32 << 20)


def _check_rows(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> None:
    if len(offsets) != len(counts) + 1:
        raise CountsError(
            f"{len(counts)} counts need {len(counts) + 1} offsets, got {len(offsets)}"
        )
    if offsets[0] < 0 or offsets[-1] > len(data) or np.any(offsets[1:] < offsets[:-1]):
        raise CountsError("offsets of pretokens must ascend and stay inside the data")
    if len(counts) and counts.min() < 0:
        row = int(counts.argmin())
        raise CountsError(f"the count of pretoken {row} is negative: {counts[row]}")


def _arrange(offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> tuple[Words, int]:
    """Words by count, the highest first; and the weighted number of their pairs, checked."""
    pairs = np.maximum(np.diff(offsets) - 1, 0)
    pairs[counts == 0] = 0
    cells = int(pairs.sum()) + 2 * int(np.count_nonzero(pairs)) + 1
    if cells > MAX_CELLS:
        raise CapacityError(
            f"pretokens of {cells} bytes in all are more than one trainer holds (2^32); leave out "
            "rare ones with --min-pretoken-count"
        )
    # Halves of counts times less than 2^32 pairs stay inside 64 bits.
    high = int(np.dot(counts >> 32, pairs))
    low = int(np.dot((counts & 0xFFFFFFFF).view(np.uint64), pairs.view(np.uint64)))
    weight = (high << 32) + low
    if weight > MAX_COUNT:
        raise CapacityError(
            f"the counts hold {weight} pairs in all, more than 2^63 - 1, so a pair's count might "
            "not be exact; divide all counts by a common factor"
        )
    # Nearly all counts are small: sort those by radix, and only the others by comparing.
    small = 0xFFFF
    keys = (small - np.minimum(counts, small)).astype(np.uint16)
    order = np.argsort(keys, kind="stable")[: np.count_nonzero(counts)]
    large = order[: np.count_nonzero(keys == 0)]
    large[:] = large[np.argsort(-counts[large], kind="stable")]
    groups = int(np.count_nonzero(np.bincount(keys))) + len(large)
    return Words(order, cells, groups), weight
