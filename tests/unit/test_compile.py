"""Compiling patterns: the automaton gives what `regex` gives, or the pattern is refused."""

import pytest
import regex
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from raybpe.errors import PatternError
from raybpe.pretokenize import PATTERNS, Pattern, Pretokenizer
from raybpe.pretokenize.compile import START, Automaton, compile_pattern, equivalent
from raybpe.pretokenize.parse import Unsupported, check

LETTERS = "abAB1 \n'é"


def by_automaton(automaton: Automaton, text: str) -> list[str]:
    """What the automaton says, plainly: go on to a dead end, then back to the last match."""
    end = automaton.next.shape[1]
    symbols = [int(automaton.classes[ord(character)]) for character in text] + [end]
    found, at = [], 0
    while at < len(text):
        state, last = START, None
        for place in range(at, len(text) + 1):
            if automaton.match[state, symbols[place]]:
                last = place
            if symbols[place] == end:
                break
            state = automaton.next[state, symbols[place]]
            if state == 0:
                break
        if last is None:
            at += 1
        else:
            found.append(text[at:last])
            at = last
    return found


def by_regex(pattern: str, text: str) -> list[str]:
    return [match.group() for match in regex.finditer(pattern, text) if match.group()]


ATOMS = st.sampled_from(
    [*"abA1 'é.", r"\n", r"\s", r"\S", r"\w", r"\p{L}", r"\p{Lu}"]
) | st.sampled_from(["[ab]", "[^a]", r"[^\s\p{L}]", r"[\r\n]", "(?i:a)", "(?i:[b1])", "(?s:.)"])
LOOKS = st.sampled_from([r"(?!\S)", "(?=a)", "(?![ab])", r"(?=\s|1)", r"(?!\s|\Z)", r"\Z", "$"])
QUANTIFIERS = st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{1,2}", "{,2}", "{2,}"])
QUANTIFIERS |= st.sampled_from(["??", "*?", "+?", "{1,2}?", "?+", "*+", "++"])


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.tuples(inner, QUANTIFIERS).map(lambda pair: f"(?:{pair[0]}){pair[1]}")
    joined = st.lists(inner | group | LOOKS, min_size=1, max_size=4).map("".join)
    return joined | st.lists(joined, min_size=2, max_size=3).map("|".join)


REGEXES = st.recursive(st.tuples(ATOMS, QUANTIFIERS).map("".join), _extend, max_leaves=8)
TEXTS = st.text(alphabet=LETTERS, max_size=12)


@settings(deadline=None, max_examples=150)
@given(REGEXES, st.lists(TEXTS, min_size=8, max_size=8))
def test_generated_patterns_are_equal_or_refused(pattern: str, texts: list[str]) -> None:
    try:
        check(pattern)
        automaton = compile_pattern(pattern)
    except (Unsupported, PatternError):
        assume(False)
    for text in texts:
        assert by_automaton(automaton, text) == by_regex(pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [
        "a*+b|a",
        "a?+b|ab|a",
        "[ab]++b|a|b",
        "(?:a|b)*+c|a",
        "(?:(?!b)[abc])++|b",
        "(?:ab)+?b?|a",
        "(?:ab|a)(?:bc|c)?",
        "a{2,3}?b|a",
        "a(?:b|)(?:c|)",
        r"(?i)\p{Lu}+|ß|\W",
        r"\s+(?=\S)|\s",
        r"(?:\r\n|\n|\r)|[^\r\n]+",
        "(?!b)[abc]+(?![\\s\\S])|b",
    ],
)
def test_priorities_and_possession(pattern: str) -> None:
    automaton = compile_pattern(pattern)
    alphabet = "abcS \r\nſ"
    texts = [""]
    for _ in range(4):
        texts = [text + letter for text in texts for letter in alphabet]
    for text in texts:
        assert by_automaton(automaton, text) == by_regex(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a*", "empty text"),
        ("a|", "empty text"),
        ("(?:a?)+b", "empty text"),
        ("(?:ab)*+a", "possessive"),
        ("(?!ab)a", "more than one code point"),
        (r"(?=\s*x)a", "more than one code point"),
        ("(?:a{150}){150}", "steps"),
        ("(?:a|b)*a(?:a|b){14}", "states"),
        ("(?:a|aa){1,600}b", "work"),
        ("".join(f"(?:x|{chr(0x4E00 + i)})" for i in range(200)), "classes"),
    ],
)
def test_what_is_refused_says_why(pattern: str, reason: str) -> None:
    check(pattern)
    with pytest.raises(Unsupported, match=reason):
        compile_pattern(pattern)


def test_sizes() -> None:
    """The figures of merit: tables of a few kilobytes that stay in the fastest cache."""
    most = {"gpt2": (13, 12), "cl100k": (21, 13), "o200k": (30, 30)}
    for name, (states, classes) in most.items():
        shape = compile_pattern(PATTERNS[name]).next.shape
        assert shape[0] <= states
        assert shape[1] <= classes


def test_equivalence() -> None:
    spelled = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    gpt2 = compile_pattern(PATTERNS["gpt2"])
    assert equivalent(gpt2, compile_pattern(spelled))
    assert Pretokenizer(Pattern(None, spelled)).engine == "scan"
    for other in (PATTERNS["starcoder"], PATTERNS["gpt2-marks"], spelled.replace("'d|", "|")):
        assert not equivalent(gpt2, compile_pattern(other.replace("||", "|")))
