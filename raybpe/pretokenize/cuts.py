"""Where text can be cut so that each part can be pretokenized as a text of its own.

**Between two code points** X and Y, valid and complete, if for every state in which the automaton
can be after X: Y is a dead end, and a match ends between them exactly if one ended there before the
end of text. Then no match goes over the cut; what ends at it does so with either part in view; and
what comes after starts afresh. Both classes decide, nothing further away, so whoever looks at these
bytes finds the same cuts.

**Before a special token**: there a text of its own ends anyway.

In both cases no occurrence of a special token may lie across the cut, not even one that overlaps
another and would not be chosen; and if there are special tokens at all, the text is valid UTF-8 for
the length of one to both sides, since removing invalid bytes could bring one together.

A pattern without an automaton has only the second kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from raybpe.kernels.cut_layout import NEED_MORE, NONE, RECORD_BYTES, RECORDS
from raybpe.kernels.entries import find_last_cut, find_next_cut
from raybpe.kernels.entry import address
from raybpe.pretokenize.compile import DEAD, Automaton


def cut_pairs(automaton: Automaton) -> npt.NDArray[np.bool_]:
    """bool (K, K): whether text can be cut between a code point of one class and of another."""
    following, match = automaton.next, automaton.match
    count = following.shape[1]
    # cuttable[s, y]: in state s a y ends what there is, just as the end of text would.
    cuttable = (following == DEAD) & (match[:, :count] == match[:, count:])
    pairs = np.ones((count, count), np.bool_)
    for before in range(count):
        reached = np.unique(following[:, before])
        pairs[before] = cuttable[reached[reached != DEAD]].all(axis=0)
    return pairs


class SafeCuts:
    """Finds cuts in raw bytes, valid UTF-8 or not.

    The bytes before a position that decide, with those after it, whether it is a cut are as many
    as the longest special token and one character of 4 bytes.
    """

    def __init__(self, tables: npt.NDArray[np.uint8], special_tokens: Sequence[bytes]) -> None:
        self._tables = tables
        self._specials = _pack_specials(special_tokens)

    def next_cut(
        self, data: npt.NDArray[np.uint8], position: int, end: int, final: bool
    ) -> int | None:
        """The first cut at or after `position` in ``data[:end]``.

        Args:
            data: uint8; ``data[0]`` begins the text, or lies before all bytes that decide.
            position: where to look from; 0 is a cut itself.
            end: one past the last byte that may be looked at.
            final: whether the text ends there. Then `end` is a cut.

        Returns:
            None when bytes after `end` may decide: read more and ask again.
        """
        if position <= 0:
            return 0
        found = int(
            find_next_cut(
                address(data),
                position,
                end,
                final,
                address(self._tables),
                address(self._specials),
            )
        )
        return None if found == NEED_MORE else found

    def last_cut(self, data: npt.NDArray[np.uint8], start: int, end: int) -> int | None:
        """The last cut in ``(start, end)`` that is certain given ``data[:end]``; None if none is.

        ``data[0]`` begins the text, or lies before all bytes that decide.
        """
        found = int(
            find_last_cut(address(data), start, end, address(self._tables), address(self._specials))
        )
        return None if found == NONE else found


def _pack_specials(special_tokens: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """As `kernels.cuts` takes them."""
    first_bytes = bytearray(256)
    records: list[int] = []
    offset = RECORDS + RECORD_BYTES * len(special_tokens)
    for token in special_tokens:
        first_bytes[token[0]] = 1
        records += [len(token), offset]
        offset += len(token)
    header = [len(special_tokens), max(map(len, special_tokens), default=0)]
    parts = (
        np.array(header, np.int64).tobytes(),
        first_bytes,
        np.array(records, np.int64).tobytes(),
    )
    return np.frombuffer(b"".join([*parts, *special_tokens]), np.uint8)
