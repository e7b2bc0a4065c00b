"""Patterns as automata: syntax tree → Thompson automaton with priorities → deterministic one.

The deterministic states are *ordered lists of threads*, in the order in which a backtracking engine
would try them, cut off after one that matches. So the automaton finds the very match that `regex`
finds, alternatives and greedy, lazy and possessive quantifiers included, in one pass.

A thread waits to use up a code point. Whether it gets to a match or past a lookahead is decided
when the class of the next code point is known, with the end of text as one more class. Hence "a
match ends here" belongs to a state *and* the class that follows: ``match[state, class]``.

Possessive sets need nothing new: ``X*+`` is ``X*`` that may only be left where no X follows. What
is refused (`Unsupported`) is listed where it is raised.

Bounds: MAX_NODES nodes, MAX_STATES states, _MAX_STEPS of work; beyond, the pattern is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raybpe.errors import PatternError
from raybpe.pretokenize.code_points import boundaries, fold
from raybpe.pretokenize.parse import (
    Choice,
    End,
    Look,
    Node,
    OneOf,
    Repeat,
    Sequence,
    Unsupported,
    parse,
)

DEAD, START = 0, 1
MAX_NODES = 20_000
MAX_STATES = 2_000
_MAX_STEPS = 2_000_000  # of simulating threads: about half a second


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton over classes of code points.

    Attributes:
        classes: uint8 (0x110000,), the class of each code point, below K.
        next: int32 (S, K), the state after a code point of a class; DEAD when nothing can match
            any more. START is the state before a match.
        match: bool (S, K + 1), whether a match ends before a code point of a class, or, in column
            K, before the end of text. The last place where one ends is the end of the match.
    """

    classes: npt.NDArray[np.uint8]
    next: npt.NDArray[np.int32]
    match: npt.NDArray[np.bool_]


def compile_pattern(pattern: str) -> Automaton:
    """The automaton of a pattern that `parse.check` has accepted.

    Raises:
        PatternError: engines read the pattern differently.
        Unsupported: it cannot be an automaton, or only a huge one.
    """
    tree = parse(pattern)
    sets: dict[OneOf, int] = {}
    _collect(tree, sets)
    classes, masks = fold([boundaries(one) for one in sets])
    count = int(classes.max()) + 1
    line_feed = int(classes[ord("\n")])
    threads = _Threads(dict(zip(sets, masks, strict=True)), count, line_feed)
    tree_start = threads.build(tree, threads.add(_MATCH))
    # A node of its own, so that START is never returned to: `tables` relies on it.
    following, match = threads.determinise(threads.add(_FORK, 0, tree_start, tree_start))
    if match[START].any():
        raise Unsupported("it can match the empty text")
    return _minimise(Automaton(classes, following, match))


def _collect(node: Node, sets: dict[OneOf, int]) -> None:
    if isinstance(node, OneOf):
        sets.setdefault(node, len(sets))
    elif isinstance(node, Sequence):
        for part in node.parts:
            _collect(part, sets)
    elif isinstance(node, Choice):
        for option in node.options:
            _collect(option, sets)
    elif isinstance(node, Repeat | Look):
        _collect(node.body, sets)


def _nullable(node: Node) -> bool:
    """Whether the node can match without using up anything."""
    if isinstance(node, OneOf):
        return False
    if isinstance(node, Sequence):
        return all(_nullable(part) for part in node.parts)
    if isinstance(node, Choice):
        return any(_nullable(option) for option in node.options)
    if isinstance(node, Repeat):
        return node.low == 0 or _nullable(node.body)
    return True


_USE, _TEST, _FORK, _MATCH = range(4)


class _Threads:
    """The Thompson automaton: node i is (kind, mask of classes, target, second target).

    USE moves on over a code point of the mask, TEST passes without using it, FORK tries its targets
    in order. Bit `count` of a mask stands for the end of text.
    """

    def __init__(self, masks: dict[OneOf, int], count: int, line_feed: int) -> None:
        self.masks = masks
        self.count = count
        self.all = (1 << (count + 1)) - 1
        self.line_feed = line_feed
        self.nodes: list[tuple[int, int, int, int]] = []
        self.steps = 0
        self.line_ends: set[int] = set()  # tests of $, not decided by one code point alone

    def add(self, kind: int, mask: int = 0, target: int = -1, second: int = -1) -> int:
        if len(self.nodes) >= MAX_NODES:
            raise Unsupported(f"more than {MAX_NODES} steps once its repeats are written out")
        self.nodes.append((kind, mask, target, second))
        return len(self.nodes) - 1

    def build(self, node: Node, then: int) -> int:
        """Add what matches `node` and goes on at `then`; returns where it begins."""
        if isinstance(node, OneOf):
            return self.add(_USE, self.masks[node], then)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self.build(part, then)
            return then
        if isinstance(node, Choice):
            begin = self.build(node.options[-1], then)
            for option in reversed(node.options[:-1]):
                begin = self.add(_FORK, 0, self.build(option, then), begin)
            return begin
        if isinstance(node, Look):
            mask = self.one(node.body)
            if mask is None:
                raise Unsupported("a lookahead over more than one code point")
            return self.add(_TEST, self.all & ~mask if node.negative else mask, then)
        if isinstance(node, End):
            test = self.add(_TEST, 1 << self.count, then)
            if node.line:
                self.line_ends.add(test)
            return test
        return self.repeat(node, then)

    def repeat(self, node: Repeat, then: int) -> int:
        repeats = node.high is None or node.high > 1
        if repeats and _nullable(node.body):
            raise Unsupported("a repeat of something that can match the empty text")
        leave = then
        if node.kind == "possessive":
            mask = self.one(node.body)
            if mask is None or mask >> self.count:
                raise Unsupported("a possessive quantifier on more than one code point")
            leave = self.add(_TEST, self.all & ~mask, then)
        if node.high is None:
            loop = self.add(_FORK)
            again = self.build(node.body, loop)
            self.nodes[loop] = self.fork(node, again, leave)
            begin = loop
        else:
            begin = then
            for _ in range(node.high - node.low):
                again = self.build(node.body, begin)
                begin = self.add(*self.fork(node, again, leave))
        for _ in range(node.low):
            begin = self.build(node.body, begin)
        return begin

    @staticmethod
    def fork(node: Repeat, again: int, leave: int) -> tuple[int, int, int, int]:
        first, second = (leave, again) if node.kind == "lazy" else (again, leave)
        return _FORK, 0, first, second

    def one(self, node: Node) -> int | None:
        """Mask of the classes that satisfy a node one code point long; None if it is not."""
        if isinstance(node, OneOf):
            return self.masks[node]
        if isinstance(node, End) and not node.line:
            return 1 << self.count
        if isinstance(node, Choice):
            options = [self.one(option) for option in node.options]
            mask = 0
            for option in options:
                if option is None:
                    return None
                mask |= option
            return mask
        if isinstance(node, Sequence) and node.parts:
            *looks, last = node.parts
            mask_or_none = self.one(last)
            for look in looks:
                if not isinstance(look, Look) or mask_or_none is None:
                    return None
                seen = self.one(look.body)
                if seen is None:
                    return None
                mask_or_none &= ~seen if look.negative else seen
            return mask_or_none
        return None

    def advance(self, threads: tuple[int, ...], symbol: int) -> tuple[tuple[int, ...], bool]:
        """The threads after `symbol`, in order, and whether a match ends before it."""
        moved: dict[int, None] = {}
        seen: set[int] = set()
        for thread in threads:
            stack = [thread]
            while stack:
                number = stack.pop()
                if number in seen:
                    continue
                seen.add(number)
                self.steps += 1
                kind, mask, target, second = self.nodes[number]
                if kind == _FORK:
                    stack += (second, target)
                elif kind == _MATCH:
                    return tuple(moved), True
                elif number in self.line_ends and symbol == self.line_feed:
                    raise PatternError(
                        "engines read $ before a line break in three ways (end of text, of the "
                        "last line, of any line); write (?![\\s\\S]) for the end of text"
                    )
                elif mask >> symbol & 1:
                    if kind == _TEST:
                        stack.append(target)
                    else:
                        moved[target] = None
        return tuple(moved), False

    def determinise(self, start: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """(next, match) as in `Automaton`, one state for each list of threads."""
        states: dict[tuple[int, ...], int] = {(): DEAD, (start,): START}
        todo = [(), (start,)]
        rows: list[list[int]] = []
        matches: list[list[bool]] = []
        for current in todo:
            if self.steps > _MAX_STEPS:
                raise Unsupported("too much work to compile")
            row, ends = [], []
            for symbol in range(self.count + 1):
                moved, ended = self.advance(current, symbol)
                ends.append(ended)
                if symbol == self.count:
                    break
                if moved not in states:
                    if len(states) >= MAX_STATES:
                        raise Unsupported(f"more than {MAX_STATES} states")
                    states[moved] = len(states)
                    todo.append(moved)
                row.append(states[moved])
            rows.append(row)
            matches.append(ends)
        return np.array(rows, np.int32).reshape(len(rows), -1), np.array(matches, np.bool_)


def _minimise(automaton: Automaton) -> Automaton:
    """Merge states that behave alike (Moore), except START, which no state goes to."""
    following, match = automaton.next, automaton.match
    order = np.arange(len(match))
    kind = np.unique(match, axis=0, return_inverse=True)[1].reshape(-1)
    kind = np.where(order == DEAD, -2, np.where(order == START, -1, kind))
    while True:
        rows = np.column_stack([kind, kind[following]])
        first, refined = np.unique(rows, axis=0, return_index=True, return_inverse=True)[1:]
        if len(first) == len(np.unique(kind)):
            break
        kind = refined.reshape(-1)
        kind[[DEAD, START]] = -2, -1
    # Kinds -2 and -1 sort first, so DEAD and START keep their numbers.
    number = refined.reshape(-1).astype(np.int32)
    return Automaton(automaton.classes, number[following[first]], match[first])


def equivalent(one: Automaton, other: Automaton) -> bool:
    """Whether two automata match alike, wherever they are started; False may be overcautious."""
    both = np.unique(one.classes.astype(np.int64) << 8 | other.classes)
    symbols = [(pair >> 8, pair & 255) for pair in both.tolist()]
    ends = (one.next.shape[1], other.next.shape[1])
    seen = {(START, START)}
    todo = [(START, START)]
    for here, there in todo:
        if any(one.match[here, x] != other.match[there, y] for x, y in [*symbols, ends]):
            return False
        for x, y in symbols:
            pair = int(one.next[here, x]), int(other.next[there, y])
            if (pair[0] == DEAD) != (pair[1] == DEAD):
                return False
            if pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return True
