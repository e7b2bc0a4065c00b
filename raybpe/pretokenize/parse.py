r"""Reading a pattern: text → syntax tree, for the part of the regex language that can be compiled.

Single code points, sets and properties are not interpreted here: a `OneOf` keeps their text, and
`code_points` asks the `regex` package what they match. So only the shape is read: groups,
alternatives, quantifiers, lookaheads, flags.

Three outcomes:

- a tree;
- `Unsupported`: valid, but more than the automaton can express (lookbehind, back-references, word
  boundaries, atomic groups, …); the caller falls back to `regex`;
- `PatternError`: not a regex, or one that the engines which load exported tokenizers read
  differently, so that the same text would mean two things.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

import regex

from raybpe.errors import PatternError

Kind = Literal["greedy", "lazy", "possessive"]


class Unsupported(Exception):
    """The pattern is valid, but not expressible as an automaton; says why."""


@dataclass(frozen=True)
class OneOf:
    """One code point of a set; `text` is a regex for it, without its flags."""

    text: str
    ignore_case: bool = False
    dot_all: bool = False


@dataclass(frozen=True)
class Sequence:
    """Parts one after the other; none at all matches the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """The first option that leads to a match."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """`body` from `low` to `high` times; `high` None is no limit."""

    body: Node
    low: int
    high: int | None
    kind: Kind


@dataclass(frozen=True)
class Look:
    """Whether `body` matches (or does not) at this place, using up nothing."""

    body: Node
    negative: bool


@dataclass(frozen=True)
class End:
    """End of text. `line` is ``$``, which `regex` also takes before a final line feed."""

    line: bool


Node = OneOf | Sequence | Choice | Repeat | Look | End

_QUANTIFIER = re.compile(r"\{(\d*)(,?)(\d*)\}")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?(:|\))")
_NAMED = re.compile(r"\(\?P?<[A-Za-z_]\w*>")
_CLASS_NAME = re.compile(r"\[:\^?\w+:\]")
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|[A-Za-z])|N\{[^}]*\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}"
    r"|[dDsSwWntrfva]|0[0-7]{0,2}|[^0-9A-Za-z])",
    re.DOTALL,
)
_SET_OPERATORS = ("&&", "--", "~~")
_MAX_DEPTH = 100  # nested groups; each takes a few Python frames


def check(pattern: str) -> None:
    """Raise PatternError, with the place, unless `regex` accepts the pattern."""
    try:
        pattern.encode()
        regex.compile(pattern)
    except UnicodeEncodeError as error:
        fail(pattern, "it is not Unicode text", error.start)
    except regex.error as error:
        fail(pattern, str(error.msg), error.pos)
    except (RecursionError, OverflowError, ValueError, KeyError) as error:
        raise PatternError(f"the pattern {_shorten(pattern)} cannot be read: {error}") from None


def fail(pattern: str, problem: str, position: int | None) -> NoReturn:
    """Raise PatternError with the pattern shown up to the place and from there on."""
    if position is None:
        raise PatternError(f"the pattern {_shorten(pattern)} cannot be read: {problem}")
    before, after = pattern[:position][-40:], pattern[position:][:40]
    raise PatternError(
        f"the pattern cannot be read at position {position}, between {before!r} and {after!r}: "
        f"{problem}",
        position,
    )


def _shorten(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:80] + "…")


def parse(pattern: str) -> Node:
    """The tree of a pattern that `check` has accepted.

    Raises:
        PatternError: engines read the pattern differently; says where and what to write instead.
        Unsupported: it is more than an automaton can express.
    """
    reader = _Reader(pattern)
    node = reader.choice(depth=0)
    if reader.at < len(pattern):
        raise Unsupported(f"cannot read {pattern[reader.at :][:20]!r}")
    return node


class _Reader:
    """Recursive descent over the pattern; `at` is the next code point."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.ignore_case = False
        self.dot_all = False

    def looking_at(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def choice(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise Unsupported(f"groups are nested more than {_MAX_DEPTH} deep")
        options = [self.sequence(depth)]
        while self.looking_at("|"):
            self.at += 1
            options.append(self.sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            atom = self.atom(depth)
            if atom is not None:
                parts.append(self.quantified(atom))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def quantified(self, atom: Node) -> Node:
        start = self.at
        bounds = self.bounds()
        if bounds is None:
            return atom
        low, high, braces = bounds
        if isinstance(atom, Look | End):
            raise Unsupported("a repeated assertion")
        kind: Kind = "greedy"
        if self.looking_at("+"):
            if braces:
                fail(
                    self.pattern,
                    f"engines read {self.pattern[start : self.at]}+ in two ways (possessive, or "
                    "repeated); leave out the +, or put what is repeated in a group (?:…)+",
                    start,
                )
            kind = "possessive"
        elif self.looking_at("?"):
            if braces and low == high:
                fail(
                    self.pattern,
                    f"engines read {{{low}}}? in two ways; write {{{low}}} or (?:…{{{low}}})?",
                    start,
                )
            kind = "lazy"
        if kind != "greedy":
            self.at += 1
        return Repeat(atom, low, high, kind)

    def bounds(self) -> tuple[int, int | None, bool] | None:
        """(low, high, whether written in braces) of the quantifier here, if there is one."""
        if self.at >= len(self.pattern):
            return None
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.pattern[self.at])
        if simple:
            self.at += 1
            return (*simple, False)
        if not self.looking_at("{"):
            return None
        match = _QUANTIFIER.match(self.pattern, self.at)
        if match is None or not (match[1] or match[3]):
            raise Unsupported("a brace that is not a plain quantifier")
        self.at = match.end()
        low = int(match[1] or 0)
        high = int(match[3]) if match[3] else None if match[2] else low
        return low, high, True

    def atom(self, depth: int) -> Node | None:
        """One unit that a quantifier may follow; None for flags that stand alone."""
        here = self.pattern[self.at]
        if here == "(":
            return self.group(depth)
        if here == "[":
            return self.one_of(self.set_end())
        if here == "\\":
            return self.escape()
        if here == "$":
            self.at += 1
            return End(line=True)
        if here == "^":
            raise Unsupported("^ depends on the text before")
        if here == "{":
            raise Unsupported("a brace that is not a plain quantifier")
        return self.one_of(self.at + 1)

    def one_of(self, end: int) -> OneOf:
        text = self.pattern[self.at : end]
        self.at = end
        return OneOf(text, self.ignore_case, self.dot_all and text == ".")

    def escape(self) -> Node:
        following = self.pattern[self.at + 1]
        if following in "Zz":
            self.at += 2
            return End(line=False)
        if following in "hH":
            fail(
                self.pattern,
                f"engines read \\{following} in two ways (white space within a line, or hex "
                "digits); write the set out",
                self.at,
            )
        match = _ESCAPE.match(self.pattern, self.at)
        if match is None:
            raise Unsupported(f"\\{following} is not a single code point")
        return self.one_of(match.end())

    def set_end(self) -> int:
        """One past the set that begins here. Sets do not nest in version 0 behaviour."""
        pattern = self.pattern
        at = self.at + 1
        at += pattern.startswith("^", at)
        first = at
        while pattern[at] != "]" or at == first:
            if pattern[at] == "\\":
                match = _ESCAPE.match(pattern, at)
                at = match.end() if match else at + 2
                continue
            name = _CLASS_NAME.match(pattern, at)
            if name:
                at = name.end()
                continue
            if pattern[at] == "[":
                fail(pattern, "engines read [ inside a set in two ways; write \\[", at)
            if pattern.startswith(_SET_OPERATORS, at):
                fail(
                    pattern,
                    f"engines read {pattern[at : at + 2]} inside a set in two ways; escape it, or "
                    "put a lookahead such as (?![…]) before the set",
                    at,
                )
            at += 1
        return at + 1

    def group(self, depth: int) -> Node | None:
        saved = self.ignore_case, self.dot_all
        look: bool | None = None
        flags = _FLAGS.match(self.pattern, self.at)
        named = _NAMED.match(self.pattern, self.at)
        if self.looking_at("(?=") or self.looking_at("(?!"):
            look = self.looking_at("(?!")
            self.at += 3
        elif flags:
            if self.flags(flags):
                return None
        elif named:
            self.at = named.end()
        elif self.looking_at("(?") or self.looking_at("(*"):
            raise Unsupported(f"the group {self.pattern[self.at : self.at + 4]!r}")
        else:
            self.at += 1
        body = self.choice(depth + 1)
        self.at += 1  # the closing parenthesis: `check` has seen it
        self.ignore_case, self.dot_all = saved
        return body if look is None else Look(body, look)

    def flags(self, match: re.Match[str]) -> bool:
        """Set the flags of ``(?i:`` or ``(?i)``; whether they stand alone."""
        alone = match[3] == ")"
        if alone and (match.start() > 0 or match[2]):
            raise Unsupported("flags in the middle of the pattern")
        for letters, value in ((match[1], True), (match[2] or "", False)):
            for letter in letters:
                if letter == "i":
                    self.ignore_case = value
                elif letter == "s":
                    self.dot_all = value
                else:
                    raise Unsupported(f"the flag {letter}")
        self.at = match.end()
        return alone
