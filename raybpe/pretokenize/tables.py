"""Packing an automaton for the kernels, with the table that makes scanning fast.

A plain automaton stops at every pretoken: it meets a dead end, goes back to where the last match
ended, and starts again. The *fast* table built here goes on instead. When it meets a dead end and
the last match ended right there, or one code point earlier (as ``\\s+(?!\\S)`` does before each
indented word), the state after starting again there is known beforehand, so it is the next state,
and the entry says where a pretoken ended. Only ends further back are left to the plain automaton.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from raybpe.kernels import automaton_tables as layout
from raybpe.pretokenize.code_points import CODE_POINTS
from raybpe.pretokenize.compile import DEAD, START, Automaton
from raybpe.pretokenize.cuts import cut_pairs
from raybpe.pretokenize.parse import Unsupported

_MAX_FAST_STATES = 4_000
_ASCII = 128
_PAGE = 64

# A state of the fast table: a state of the automaton, and the class of the last code point when a
# match ended just before it and may be needed (else -1); or _LOOSE, inside an unmatched span.
_State = tuple[int, int]
_LOOSE: _State = (DEAD, -1)


def pack(automaton: Automaton) -> npt.NDArray[np.uint8]:
    """The tables as laid out in `kernels.automaton_tables`.

    Raises:
        Unsupported: the fast table would be huge.
    """
    states, count = automaton.next.shape
    columns = _columns(automaton)
    plain = np.zeros((states, count + 2), np.uint32)
    plain[:, :count] = automaton.next.astype(np.uint32) * np.uint32(layout.ROW_BYTES)
    plain[:, : count + 1] |= automaton.match * np.uint32(layout.HERE)
    fast = np.pad(_fast(automaton), ((0, 0), (0, 1)))
    pairs = np.pad(cut_pairs(automaton), ((0, 2), (0, 2)))[columns][:, columns]
    pages, classes = _pages(automaton.classes)
    parts: list[npt.NDArray[Any]] = [
        pages,
        classes,
        np.packbits(pairs, axis=1, bitorder="little"),
        plain[:, columns],
        fast[:, columns],
    ]
    return _join(parts, pairs=bool(pairs.any()))


def no_tables() -> npt.NDArray[np.uint8]:
    """Tables for finding cuts when there is no automaton: no pair of code points allows one."""
    pages, classes = _pages(np.zeros(CODE_POINTS, np.uint8))
    return _join([pages, classes, np.zeros((256, 32), np.uint8)], pairs=False)


def _columns(automaton: Automaton) -> npt.NDArray[np.intp]:
    """Column of each symbol: its class, count for the end of text, count + 1 for unused ones."""
    count = automaton.next.shape[1]
    columns = np.full(256, count + 1, np.intp)
    columns[:_ASCII] = automaton.classes[:_ASCII]
    columns[_ASCII : _ASCII + count] = np.arange(count)
    columns[layout.END_SYMBOL] = count
    return columns


def _pages(
    classes: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint8]]:
    numbers: dict[bytes, int] = {}
    which = [numbers.setdefault(row.tobytes(), len(numbers)) for row in classes.reshape(-1, _PAGE)]
    distinct = np.frombuffer(b"".join(numbers), np.uint8)
    pages = np.zeros(layout.PAGE_COUNT, np.uint16)
    pages[: len(which)] = which
    return pages, distinct + np.uint8(_ASCII)


def _join(parts: list[npt.NDArray[Any]], pairs: bool) -> npt.NDArray[np.uint8]:
    """Header and parts, each part at a multiple of 64 bytes."""
    header = np.zeros(layout.HEADER_BYTES // 8, np.int64)
    header[layout.PAIRS // 8] = pairs
    blocks = [header.view(np.uint8)]
    size = layout.HEADER_BYTES
    for index, part in enumerate(parts):
        header[index] = size
        flat = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
        blocks.append(np.pad(flat, (0, -len(flat) % 64)))
        size += len(blocks[-1])
    return np.concatenate(blocks)


def _fast(automaton: Automaton) -> npt.NDArray[np.uint32]:
    """Entries uint32 (F, K + 1) of the fast table; row 1 is the start, row 0 unused."""
    return _Fast(automaton).rows()


class _Fast:
    def __init__(self, automaton: Automaton) -> None:
        self.next: list[list[int]] = automaton.next.tolist()
        self.match: list[list[bool]] = automaton.match.tolist()
        self.end = automaton.next.shape[1]
        # States that can meet a dead end where no match ends: only there an earlier end matters.
        dead_ends = (automaton.next == DEAD) & ~automaton.match[:, :-1]
        self.may_fall_back = (dead_ends.any(axis=1) | ~automaton.match[:, -1]).tolist()

    def rows(self) -> npt.NDArray[np.uint32]:
        start: _State = (START, -1)
        numbers: dict[_State, int] = {start: 1}
        todo = [start]
        rows = [[0] * (self.end + 1)]
        for state in todo:
            row = []
            for symbol in range(self.end + 1):
                flags, following = self.step(state, symbol)
                if following is None:
                    row.append(flags)
                    continue
                if following not in numbers:
                    if len(numbers) >= _MAX_FAST_STATES:
                        raise Unsupported(f"more than {_MAX_FAST_STATES} states for scanning")
                    numbers[following] = len(numbers) + 1
                    todo.append(following)
                row.append(numbers[following] * layout.ROW_BYTES | flags)
            rows.append(row)
        return np.array(rows, np.uint32)

    def begin(self, symbol: int) -> _State:
        """The state after the first code point of a span."""
        following = self.next[START][symbol]
        return (following, -1) if following != DEAD else _LOOSE

    def after(self, state: int, symbol: int, ended: bool) -> _State:
        """`state`, reached by `symbol`; `ended`: a match ends before that symbol."""
        return (state, symbol if ended and self.may_fall_back[state] else -1)

    def step(self, state: _State, symbol: int) -> tuple[int, _State | None]:
        """Flags, and the state after `symbol`; None after the end of text and for SLOW."""
        if symbol == self.end:
            return self.finish(state), None
        if state == _LOOSE:
            following = self.begin(symbol)
            return (0 if following == _LOOSE else layout.HERE | layout.LOOSE), following
        now, last = state
        ended = self.match[now][symbol]
        following_state = self.next[now][symbol]
        if following_state != DEAD:
            return 0, self.after(following_state, symbol, ended)
        if ended:
            return layout.HERE, self.begin(symbol)
        if last < 0:
            return (layout.SLOW, None) if now != START else (0, _LOOSE)
        # The span ends before the last code point; go on as if started there.
        flags, restarted = self.step(self.begin(last), symbol)
        if flags & (layout.SLOW | layout.BEFORE):
            return layout.SLOW, None
        return flags | layout.BEFORE, restarted

    def finish(self, state: _State) -> int:
        """Flags for the end of text after `state`."""
        if state == _LOOSE:
            return layout.LOOSE
        now, last = state
        if self.match[now][self.end]:
            return 0
        if last < 0:
            return layout.SLOW
        flags = self.finish(self.begin(last))
        return layout.SLOW if flags & layout.SLOW else flags | layout.BEFORE
