"""Reading patterns: what is understood, what is refused and where the message points."""

import pytest
import regex

from raybpe.errors import PatternError
from raybpe.pretokenize import PATTERNS, Pattern, Pretokenizer
from raybpe.pretokenize.parse import (
    Choice,
    End,
    Look,
    OneOf,
    Repeat,
    Sequence,
    Unsupported,
    check,
    parse,
)


def test_shape_of_a_tree() -> None:
    tree = parse(r" ?\p{L}+|(?i:'s)$|\s+(?!\S)")
    space = Repeat(OneOf(" "), 0, 1, "greedy")
    assert tree == Choice(
        (
            Sequence((space, Repeat(OneOf(r"\p{L}"), 1, None, "greedy"))),
            Sequence(
                (Sequence((OneOf("'", ignore_case=True), OneOf("s", ignore_case=True))), End(True))
            ),
            Sequence((Repeat(OneOf(r"\s"), 1, None, "greedy"), Look(OneOf(r"\S"), True))),
        )
    )


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a*?", Repeat(OneOf("a"), 0, None, "lazy")),
        ("a++", Repeat(OneOf("a"), 1, None, "possessive")),
        ("a{2,5}", Repeat(OneOf("a"), 2, 5, "greedy")),
        ("a{,5}?", Repeat(OneOf("a"), 0, 5, "lazy")),
        ("a{3}", Repeat(OneOf("a"), 3, 3, "greedy")),
        ("[]a]", OneOf("[]a]")),
        (r"[^\]a-z[:digit:]]", OneOf(r"[^\]a-z[:digit:]]")),
        (r"[^]\p{Lu}]", OneOf(r"[^]\p{Lu}]")),
        (r"\u00e9", OneOf(r"\u00e9")),
        (r"\N{LATIN SMALL LETTER A}", OneOf(r"\N{LATIN SMALL LETTER A}")),
        ("(?i)a", OneOf("a", ignore_case=True)),
        ("(?s:.)", OneOf(".", dot_all=True)),
        ("(?i:(?-i:a))", OneOf("a")),
        ("(?P<word>a)", OneOf("a")),
        ("(a)", OneOf("a")),
        ("", Sequence(())),
        (r"\Z", End(False)),
        ("é", OneOf("é")),
    ],
)
def test_small_patterns(pattern: str, expected: object) -> None:
    check(pattern)
    assert parse(pattern) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?<=a)b",
        r"(?<!a)b",
        r"\bword\b",
        r"(a)\1",
        "^a",
        r"\Aa",
        "(?>a+)b",
        r"\X",
        r"\R",
        r"a\Kb",
        "a(?i)b",
        "(?x) a",
        "(?m:a)",
        "(?:foo){e<=1}",
        "(?|a|b)",
        "(?V1)a",
        "a{x",
        "(?#note)a",
        "(?!a)*b",
        "(a)(?1)",
    ],
)
def test_more_than_an_automaton_falls_back(pattern: str) -> None:
    check(pattern)
    with pytest.raises(Unsupported):
        parse(pattern)
    pretokenizer = Pretokenizer(Pattern(None, pattern))
    assert pretokenizer.engine == "regex"
    assert pretokenizer.reason
    text = "word foo b ab aab a{x"
    expected = [m.group().encode() for m in regex.finditer(pattern, text) if m.group()]
    assert pretokenizer.pretokens(text.encode()) == expected


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("(abc", 4), ("a)", 1), ("[a", 2), ("a**", 2), (r"x\p{Nope}", 9), ("*", 0), ("a|(?:b", 6)],
)
def test_invalid_regex_shows_where(pattern: str, position: int) -> None:
    with pytest.raises(PatternError, match=f"position {position}") as caught:
        Pretokenizer(Pattern(None, pattern))
    assert caught.value.position == position


def test_a_pattern_that_is_no_unicode_shows_where() -> None:
    with pytest.raises(PatternError, match="position 2"):
        check("ab\udcff")


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        (r"\p{N}{1,3}+", 5),  # possessive, or one to three numbers repeated
        ("a{2}?", 1),  # exactly two, or two or none
        (r"\h+", 0),  # white space, or a hex digit
        ("[a[b]", 2),  # a bracket, or a set in a set
        (r"[\w&&[^\d]]", 3),  # ampersands, or what both sets have
        (r"[\w--\d]", 3),
    ],
)
def test_what_engines_read_differently_is_refused(pattern: str, position: int) -> None:
    with pytest.raises(PatternError, match="two ways") as caught:
        Pretokenizer(Pattern(None, pattern))
    assert caught.value.position == position


def test_dollar_before_a_line_break_is_refused_and_harmless_elsewhere() -> None:
    with pytest.raises(PatternError, match=r"\$ before a line break"):
        Pretokenizer(Pattern(None, "a+$|b"))
    harmless = Pretokenizer(Pattern(None, r"\w+|\s++$|\s"))
    assert harmless.engine == "automaton"
    assert harmless.pretokens(b"a \n b \n") == [b"a", b" ", b"\n", b" ", b"b", b" \n"]


@pytest.mark.parametrize(("depth", "engines"), [(20, {"automaton"}), (5000, {"regex", "error"})])
def test_deep_nesting_is_no_crash(depth: int, engines: set[str]) -> None:
    try:
        pretokenizer = Pretokenizer(Pattern(None, "(?:" * depth + "a" + ")" * depth))
    except PatternError:
        assert "error" in engines
    else:
        assert pretokenizer.engine in engines
        assert pretokenizer.pretokens(b"ba") == [b"a"]


def test_named_patterns_parse() -> None:
    for pattern in PATTERNS.values():
        check(pattern)
        parse(pattern)
