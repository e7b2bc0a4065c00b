r"""The same pattern for several regex engines.

raybpe patterns are in the syntax of Python's `regex`; Hugging Face `tokenizers` runs Oniguruma with
Ruby's syntax, tiktoken runs fancy-regex. They read some constructs differently without an error:

====================  ====================  ======================  =======================
construct             regex                 Oniguruma               fancy-regex
====================  ====================  ======================  =======================
``x{1,3}+``           possessive            ``(?:x{1,3})+``         possessive
``$``                 end, or before the    end of any line         end of text
                      last line break
``^``                 start of text         start of any line       start of text
``\Z``                end of text           as ``$`` of `regex`     other
``(?s:.)``            any character         an error, ``(?m:.)``    any character
``[a&&b]``, ``[a[b``  literal characters    set operations          set operations
``\w``                Unicode's             six more characters     Unicode's
``(?i:ss)``           ``ss`` in any case    also ``ß``              ``ss`` in any case
====================  ====================  ======================  =======================

`translate` rewrites what has an equivalent and refuses the rest with the place and the reason, so a
pattern that comes out means the same on both sides, up to the Unicode version of each engine. A
pattern that needs no change comes out as it went in.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NoReturn

import regex

from raybpe.errors import FormatError
from raybpe.formats.properties import property_name

Engine = Literal["regex", "oniguruma", "fancy-regex"]

_META = frozenset(r"\.+*?()|[]{}^$-&~#")
_QUANTIFIER = re.compile(r"([*+?]|\{(\d*)(,?)(\d*)\})([?+]?)")
_GROUP = re.compile(r"\((?:\?(?:P?<[A-Za-z_]\w*>|(<=|<!|=|!|>)|([a-z]*)(?:-([a-z]+))?:))?")
_CODE_POINT = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x\{(\w+)\})")
_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}"
_FOLDED_PAIRS = frozenset({"ss", "st", "ff", "fi", "fl"})  # one character in another case


@lru_cache(maxsize=256)
def translate(pattern: str, source: Engine, target: Engine) -> str:
    r"""`pattern`, written for `source`, written for `target`.

    >>> translate(r"\p{N}{1,3}+| $", "regex", "oniguruma")
    '(?>\\p{N}{1,3})| \\Z'

    Raises:
        FormatError: it holds something that the engines read differently, or may.
    """
    translator = _Translator(pattern, source, target)
    written = translator.run()
    try:
        empty = target == "regex" and regex.search(written, "") is not None
        empty = empty or (source == "regex" and regex.search(pattern, "") is not None)
    except regex.error as error:
        raise FormatError(f"the pattern {pattern!r:.300} cannot be read: {error}") from None
    if empty:
        translator.at = 0
        translator.refuse("it matches empty text, after which engines go on in different ways")
    return written


class _Translator:
    """One pass over the pattern; `out` holds the result in pieces, an atom being one or more."""

    def __init__(self, pattern: str, source: Engine, target: Engine) -> None:
        self.pattern = pattern
        self.source = source
        self.target = target
        self.at = 0
        self.out: list[str] = []
        self.atom: int | None = None  # where in `out` the last atom starts, if it can be repeated
        self.fold = False  # inside (?i:
        self.dot_all = False
        self.letter = ""  # the literal letter just before, when folding

    def refuse(self, reason: str) -> NoReturn:
        target = "raybpe" if self.target == "regex" else self.target
        raise FormatError(
            f"the pattern {self.pattern!r:.300} cannot be carried from {self.source} to {target}: "
            f"at character {self.at}, {reason}"
        )

    def run(self) -> str:
        leading = re.match(r"\(\?([is]+)\)", self.pattern)
        if leading:
            self.at = leading.end()
            self.fold = "i" in leading[1]
            self.dot_all = "s" in leading[1]
        if leading and self.dot_all and self.source == "oniguruma":
            self.at = 0
            self.refuse("(?s) is not Oniguruma's")
        if self.fold:
            self.out.append("(?i:")
        groups: list[tuple[int | None, bool, bool]] = []  # what holds again after the group
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "(":
                outer = (len(self.out), self.fold, self.dot_all)
                looks = self._open()
                groups.append((None, *outer[1:]) if looks else outer)
                self.atom, self.letter = None, ""
            elif char == ")":
                if not groups:
                    self.refuse("a ) without its (")
                self.atom, self.fold, self.dot_all = groups.pop()
                self.out.append(")")
                self.at += 1
                self.letter = ""
            elif char == "|":
                self.out.append("|")
                self.at += 1
                self.atom, self.letter = None, ""
            elif char in "*+?{":
                self._repeat()
            else:
                atom = len(self.out)
                self.atom = atom if self._atom(char) else None
        if groups:
            self.refuse("a ( is not closed")
        if leading and "i" in leading[1]:
            self.out.append(")")
        return "".join(self.out)

    def _open(self) -> bool:
        """Whether the group only looks: then it is no atom to repeat."""
        found = _GROUP.match(self.pattern, self.at)
        if found is None or (found.end() == self.at + 1 and self.pattern[found.end() :][:1] == "?"):
            self.refuse(f"{self.pattern[self.at : self.at + 4]!r} is not a group all engines share")
        look, on, off = found.groups()
        self.at = found.end()
        if look:
            self.out.append(f"(?{look}")
            return look != ">"
        dot_all = "m" if self.source == "oniguruma" else "s"
        if set((on or "") + (off or "")) - {"i", dot_all}:
            self.refuse("only the flags i and s can be set")
        fold = self.fold
        self.fold = "i" not in (off or "") and ("i" in (on or "") or self.fold)
        self.dot_all = dot_all not in (off or "") and (dot_all in (on or "") or self.dot_all)
        self.out.append("(?:" if fold == self.fold else "(?i:" if self.fold else "(?-i:")
        return False

    def _repeat(self) -> None:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if found is None or found[1] in ("{}", "{,}"):
            self.refuse("a { that is no repetition; write \\{")
        if self.atom is None:
            self.refuse("nothing to repeat, or a repetition of a repetition")
        quantifier, low, comma, high, mode = found.groups()
        counted = quantifier[0] == "{"
        if counted and not low:
            quantifier = f"{{0,{high}}}"
        if counted and self.source == "oniguruma" and mode == "?" and not comma:
            self.refuse("{n}? is not lazy in Oniguruma")
        if counted and mode == "?" and not comma:
            mode = ""
        if counted and mode == "+" and "oniguruma" in (self.source, self.target):
            greedy = self.source == "oniguruma"
            if not (greedy and self.target == "oniguruma"):
                self.out.insert(self.atom, "(?:" if greedy else "(?>")
                quantifier, mode = quantifier + ")", "+" if greedy else ""
        self.out.append(quantifier + mode)
        self.at = found.end()
        self.atom, self.letter = None, ""

    def _atom(self, char: str) -> bool:
        """Whether what was read can be repeated; anchors cannot."""
        anchor = False
        if char == "[":
            self._set()
        elif char == "\\":
            anchor = self.pattern[self.at + 1 : self.at + 2] in tuple("AzZbB")
            if self._escape():
                return True
        elif char == ".":
            self.out.append(r"[\s\S]" if self.dot_all else ".")
            self.at += 1
        elif char == "^":
            lines = self.source == "oniguruma"
            self.out.append(
                r"(?<![^\n])" if lines else r"\A" if self.target == "oniguruma" else "^"
            )
            self.at += 1
            anchor = True
        elif char == "$":
            self._end_anchor()
            anchor = True
        else:
            self._literal(char, char)
            self.at += 1
            return True
        self.letter = ""
        return not anchor

    def _end_anchor(self) -> None:
        end = r"\Z" if self.target == "regex" else r"\z"
        if self.source == self.target:
            self.out.append("$")
        elif self.source == "regex":
            self.out.append(r"\Z" if self.target == "oniguruma" else r"(?=\n?\z)")
        elif self.source == "oniguruma":
            self.out.append(rf"(?=\n|{end})")
        else:
            self.out.append(end)
        self.at += 1

    def _literal(self, char: str, written: str) -> None:
        """A literal character, and what to write for it."""
        if self.fold:
            self._check_fold(char)
            if (self.letter + char).lower() in _FOLDED_PAIRS:
                self.refuse(f"{self.letter + char!r} has one-character forms in other cases")
            self.letter = char
        if written in ("]", "}"):
            written = "\\" + written
        self.out.append(written)

    def _check_fold(self, char: str) -> None:
        if ord(char) > 127 or char in "iI":
            self.refuse(f"engines differ in what {char!r} is in another case")

    def _escape(self) -> bool:
        """Whether the escape stands for a literal character."""
        char = self.pattern[self.at + 1 : self.at + 2]
        if char in ("p", "P"):
            self.out.append(self._property())
        elif char in ("w", "W") and "oniguruma" in (self.source, self.target):
            if self.source == "oniguruma" and self.target != "oniguruma":
                self.refuse(f"\\{char} is another set in Oniguruma")
            self.out.append(f"[{'^' * (char == 'W')}{_WORD}]" if self.source == "regex" else char)
            self.at += 2
        elif char and char in "sSdDwW":
            self.out.append("\\" + char)
            self.at += 2
        elif char and char in "bB":
            if "oniguruma" in (self.source, self.target):
                self.refuse(f"\\{char} is another boundary in Oniguruma")
            self.out.append("\\" + char)
            self.at += 2
        elif char and char in "AzZ":
            self._text_anchor(char)
        else:
            self._literal(*self._escaped_char())
            return True
        return False

    def _text_anchor(self, char: str) -> None:
        end = r"\Z" if self.target == "regex" else r"\z"
        if char == "A":
            self.out.append(r"\A")
        elif char == "z" or self.source == "regex":
            self.out.append(end)
        elif self.source == "oniguruma":
            at_end = {"regex": "$", "oniguruma": r"\Z", "fancy-regex": r"(?=\n?\z)"}
            self.out.append(at_end[self.target])
        else:
            self.refuse("\\Z is another anchor in fancy-regex; write \\z")
        self.at += 2

    def _property(self) -> str:
        found = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|([A-Z]))").match(self.pattern, self.at)
        if self.fold:
            self.refuse("engines differ in what a property is under (?i")
        name = property_name(found[3] or found[4] or "") if found else None
        if found is None or name is None:
            self.refuse("a property that the engines may not share; use general categories")
        self.at = found.end()
        negated = (found[1] == "P") != bool(found[2])
        return f"\\{'P' if negated else 'p'}{{{name}}}"

    def _escaped_char(self) -> tuple[str, str]:
        """The character that an escape stands for, and how to write it; moves past it."""
        found = _CODE_POINT.match(self.pattern, self.at)
        if found:
            digits = next(group for group in found.groups() if group)
            if found[3] and self.source == "oniguruma":
                self.refuse("\\U is no escape in Oniguruma")
            number = int(digits, 16) if re.fullmatch("0*[0-9A-Fa-f]{1,6}", digits) else -1
            if not 0 <= number < 0x110000 or 0xD800 <= number < 0xE000:
                self.refuse("not the number of a character")
            self.at = found.end()
            long = f"\\U{number:08X}" if self.target == "regex" else f"\\x{{{number:X}}}"
            written = f"\\u{number:04X}" if number < 0x10000 else long
            same = self.source == self.target or found[2] or (found[1] and number < 0x80)
            return chr(number), found[0] if same else written
        char = self.pattern[self.at + 1 : self.at + 2]
        if char and char in "tnrfv":
            self.at += 2
            return {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}[char], "\\" + char
        if not char or char.isalnum() or ord(char) > 127:
            self.refuse(f"\\{char} is not an escape all engines share")
        self.at += 2
        return char, "\\" + char if char in _META else char

    def _set(self) -> None:
        """A set in brackets. Between the engines only plain members mean the same."""
        start = self.at
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        if negated and self.fold:
            self.refuse("engines differ in a negated set under (?i")
        parts = ["[^" if negated else "["]
        first = True
        while True:
            if self.at >= len(self.pattern):
                self.at = start
                self.refuse("a [ is not closed")
            char = self.pattern[self.at]
            if char == "]" and not first:
                break
            first = False
            if char == "\\" and self.pattern[self.at + 1 : self.at + 2] in ("p", "P"):
                parts.append(self._property())
                continue
            if char == "\\" and self.pattern[self.at + 1 : self.at + 2] in tuple("sSdDwW"):
                parts.append(self._set_class())
                continue
            member, written = self._member(char)
            if self.fold:
                self._check_fold(member)
                after = self.pattern[self.at : self.at + 1]
                if char == "-" and len(parts) > 1 and after != "]" and not after.isdigit():
                    self.refuse("a range under (?i; list the letters")
            if written in "&-|~" and parts[-1] == written:
                written = "\\" + written
            parts.append(written)
        self.at += 1
        self.out.append("".join(parts) + "]")

    def _member(self, char: str) -> tuple[str, str]:
        if char == "\\":
            return self._escaped_char()
        if char == "[":
            if self.source != "regex" or self.pattern[self.at + 1 : self.at + 2] == ":":
                self.refuse("sets inside sets are not shared by the engines")
            self.at += 1
            return char, "\\["
        doubled = self.pattern[self.at : self.at + 2]
        if doubled in ("&&", "--", "||", "~~") and self.source != "regex":
            self.refuse(f"{doubled} is an operation on sets")
        self.at += 1
        return char, "\\]" if char == "]" else char

    def _set_class(self) -> str:
        char = self.pattern[self.at + 1]
        if char in "wW" and "oniguruma" in (self.source, self.target):
            if char == "W" or self.source == "oniguruma":
                self.refuse(f"\\{char} is another set in Oniguruma")
            self.at += 2
            return _WORD
        self.at += 2
        return "\\" + char
