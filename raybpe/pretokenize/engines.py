"""A pattern and special tokens, ready to run: counting, listing and cutting text.

Three engines give the same pretokens as ``regex.finditer`` (empty matches left out) on each stretch
of text between special tokens:

- ``scan``: the bit-parallel scanner, for gpt2 and any pattern that means the same;
- ``automaton``: the pattern's tables, run by one kernel;
- ``regex``: the package itself, where the pattern is more than an automaton can express. `reason`
  says what. Slower by an order of magnitude, and text is cut at special tokens only.

Compiled tables (about 100 KB) are kept on disk, so that only the first use of a pattern compiles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import regex

from raybpe.block import Block
from raybpe.kernels import entries, scan_state
from raybpe.kernels.entry import address
from raybpe.kernels.scanner import Scanner
from raybpe.kernels.special_table import compile_specials
from raybpe.pretokenize.code_points import UNICODE_KEY
from raybpe.pretokenize.compile import compile_pattern, equivalent
from raybpe.pretokenize.cuts import SafeCuts
from raybpe.pretokenize.gpt2_classes import gpt2_tables
from raybpe.pretokenize.parse import Unsupported, check
from raybpe.pretokenize.patterns import PATTERNS, Pattern
from raybpe.pretokenize.table_cache import Arrays, cached_arrays
from raybpe.pretokenize.tables import no_tables, pack

if TYPE_CHECKING:
    from raybpe.counts.pretoken_table import PretokenTable

Engine = Literal["scan", "automaton", "regex"]

_FORMAT = 4  # of the cached tables; raise it with any change of their layout or meaning
_GAP = int(scan_state.GAP)


class Pretokenizer:
    """Pretokens of text, for one pattern and a list of special tokens.

    Special tokens are cut out first: the leftmost, and of several that start there the longest.
    They are not pretokens. Pickles as its arguments.

    Attributes:
        pattern: what it was made with.
        special_tokens: likewise.
        engine: how the pattern is run.
        reason: why the engine is ``regex``, else None.
        scanner: for kernels that scan text themselves; None for ``regex``.
        specials: int64, the special tokens as `kernels.specials` takes them.
    """

    def __init__(self, pattern: Pattern, special_tokens: Sequence[str] = ()) -> None:
        """Compile the pattern, or read its tables from the cache.

        Raises:
            PatternError: it is no regex, or one that regex engines read differently.
        """
        self.pattern = pattern
        self.special_tokens = tuple(special_tokens)
        tokens = [token.encode() for token in self.special_tokens]
        self.specials = compile_specials(tokens)
        self._split = _splitter(tokens)
        compiled = _compiled(pattern.regex)
        tables = compiled["tables"]
        self.reason = compiled["reason"].tobytes().decode() or None
        self.engine: Engine = "automaton"
        self.scanner: Scanner | None = None
        if self.reason:
            self.engine = "regex"
            self._regex = regex.compile(pattern.regex)
        elif compiled["gpt2"].any():
            self.engine = "scan"
            self.scanner = Scanner("gpt2", gpt2_tables())
        else:
            self.scanner = Scanner("automaton", tables)
        self._cuts = SafeCuts(tables, tokens)

    def __reduce__(self) -> tuple[type, tuple[Pattern, tuple[str, ...]]]:
        return type(self), (self.pattern, self.special_tokens)

    def __repr__(self) -> str:
        name = self.pattern.name or self.pattern.regex
        return f"Pretokenizer({name!r}, {list(self.special_tokens)!r}, engine={self.engine!r})"

    def count(self, table: PretokenTable, block: Block) -> None:
        """Add the pretokens of a block, whose documents are valid UTF-8, to a table.

        Raises:
            CapacityError: a count passes 2^63 - 1, or there is no memory.
        """
        if self.scanner is not None:
            table.count(self.scanner, block, self.specials)
            return
        found: Counter[bytes] = Counter()
        for start, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True):
            for piece in self._pieces(block.data[start:end].tobytes()):
                found.update(self._matches(piece))
        if found:
            lengths = np.fromiter(map(len, found), np.int64, len(found))
            table.insert(
                np.frombuffer(b"".join(found), np.uint8),
                np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
                np.fromiter(found.values(), np.int64, len(found)),
            )

    def pretokens(self, text: bytes) -> list[bytes]:
        """The pretokens of a text of valid UTF-8, in order, without the special tokens."""
        find = self._matches if self.scanner is None else self._scan
        return [pretoken for piece in self._pieces(text) for pretoken in find(piece)]

    def next_cut(
        self, data: npt.NDArray[np.uint8], position: int, end: int, final: bool
    ) -> int | None:
        """The first safe cut at or after `position` in ``data[:end]``; see `cuts.SafeCuts`."""
        return self._cuts.next_cut(data, position, end, final)

    def last_cut(self, data: npt.NDArray[np.uint8], start: int, end: int) -> int | None:
        """The last safe cut in ``(start, end)`` given ``data[:end]``; see `cuts.SafeCuts`."""
        return self._cuts.last_cut(data, start, end)

    def _pieces(self, text: bytes) -> list[bytes]:
        return self._split.split(text) if self._split else [text]

    def _matches(self, piece: bytes) -> Iterator[bytes]:
        for match in self._regex.finditer(piece.decode()):
            if match.end() > match.start():
                yield match.group().encode()

    def _scan(self, piece: bytes) -> Iterator[bytes]:
        assert self.scanner is not None
        scan = entries.scan_gpt2 if self.scanner.kind == "gpt2" else entries.scan_automaton
        block = Block.of(piece)
        output = np.empty(scan_state.CAPACITY, np.uint64)
        state = np.zeros(scan_state.WORDS, np.int64)
        state[scan_state.DATA] = address(block.data)
        state[scan_state.END] = len(piece)
        state[scan_state.OUT] = address(output)
        state[scan_state.TABLES] = address(self.scanner.tables)
        finished = 0
        while not finished:
            finished = scan(address(state))
            starts = output[: state[scan_state.COUNT]].tolist()
            for here, following in pairwise(starts):
                if not here & _GAP:
                    yield piece[here : following & ~_GAP]
            output[0] = starts[-1]  # its span is still open; scanners look back at it
            state[scan_state.COUNT] = 1


@lru_cache(maxsize=64)
def _cached(pattern: Pattern, special_tokens: tuple[str, ...]) -> Pretokenizer:
    return Pretokenizer(pattern, special_tokens)


def pretokenizer(pattern: Pattern, special_tokens: Sequence[str] = ()) -> Pretokenizer:
    """A pretokenizer, made once per process for the same arguments. It may be shared by threads."""
    return _cached(pattern, tuple(special_tokens))


def _splitter(tokens: Sequence[bytes]) -> re.Pattern[bytes] | None:
    if not tokens:
        return None
    return re.compile(b"|".join(re.escape(token) for token in sorted(tokens, key=len)[::-1]))


def _compiled(pattern: str) -> Arrays:
    """`tables`, `reason` (UTF-8; empty unless refused) and `gpt2` (whether it means the same)."""
    key = f"pattern {_FORMAT}, {UNICODE_KEY}: {pattern}"
    return cached_arrays(key, lambda: _compile(pattern))


def _compile(pattern: str) -> Arrays:
    check(pattern)
    reason = b""
    gpt2 = False
    try:
        automaton = compile_pattern(pattern)
        tables = pack(automaton)
        gpt2 = equivalent(automaton, compile_pattern(PATTERNS["gpt2"]))
    except Unsupported as refusal:
        tables = no_tables()
        reason = str(refusal).encode()
    return {
        "tables": tables,
        "reason": np.frombuffer(reason, np.uint8),
        "gpt2": np.array([gpt2]),
    }
