"""Safe cuts: text cut at any of them has the pretokens of the uncut text."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from raybpe.pretokenize import PATTERNS, Pattern, Pretokenizer, pretokenizer, resolve_pattern
from raybpe.pretokenize.compile import compile_pattern
from raybpe.pretokenize.cuts import cut_pairs

ALPHABET = "aZé1٣ \t\n\r'.,/$・ア東゙\u0301\x00\u0378sStTrREelL😀"
CUSTOM = (r"\w+", r"\w+\s|\S", r"a(?:b{5}c)?|b|\s+x", r"(?:ab)+|[^ab]+?(?=a)", r"\S+(?![\s\S])|\S")
SPECIALS = (
    (),
    ("<|end|>",),
    ("aa",),
    ("aa", "aaa", "aab"),
    ("ab", "b1", "1a", "a"),
    ("<|a|>", "<|a|><|b|>", "|><|", " "),
    ("é", "東東", "\n\n"),
)


def buffer(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


def all_cuts(cutter: Pretokenizer, text: bytes) -> list[int]:
    """Every cut inside the text, by asking again from one byte further."""
    found = []
    position = 1
    while True:
        cut = cutter.next_cut(buffer(text), position, len(text), True)
        assert cut is not None
        if cut >= len(text):
            return found
        found.append(cut)
        position = cut + 1


def texts(count: int, letters: str, seed: int, longest: int = 30) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        yield "".join(rng.choices(letters, k=rng.randint(0, longest)))


def check_cuts(cutter: Pretokenizer, text: bytes) -> int:
    """Cut at each place alone, and at all of them; returns how many there are."""
    whole = cutter.pretokens(text)
    cuts = all_cuts(cutter, text)
    for cut in cuts:
        assert cutter.pretokens(text[:cut]) + cutter.pretokens(text[cut:]) == whole, cut
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert [pretoken for part in parts for pretoken in cutter.pretokens(part)] == whole
    return len(cuts)


@pytest.mark.parametrize("pattern", [*PATTERNS, *CUSTOM])
def test_cutting_changes_nothing(pattern: str) -> None:
    cutter = pretokenizer(resolve_pattern(pattern))
    number = sum(check_cuts(cutter, text.encode()) for text in texts(300, ALPHABET, seed=1))
    assert number > 100 or pattern in ("none", CUSTOM[-1])


@pytest.mark.parametrize("specials", SPECIALS, ids=str)
@pytest.mark.parametrize("pattern", ["gpt2", "o200k", "none", r"(?<!x)\w+|\W"])
def test_cutting_around_special_tokens(pattern: str, specials: tuple[str, ...]) -> None:
    cutter = Pretokenizer(resolve_pattern(pattern), specials)
    units = [*specials, *specials, *"aab1 \né東", "<|", "|>"]
    rng = random.Random(str(specials))
    for _ in range(250):
        text = "".join(rng.choices(units, k=rng.randint(0, 14)))
        check_cuts(cutter, text.encode())


def test_small_corpora(shared: Path) -> None:
    for path in sorted((shared / "corpora" / "small").iterdir()):
        text = path.read_bytes()[:600].decode("utf-8", "ignore").encode()
        for name in ("gpt2", "cl100k", "deepseek-v3"):
            check_cuts(Pretokenizer(resolve_pattern(name), ["<|endoftext|>"]), text)


def test_cuts_of_known_text() -> None:
    gpt2 = pretokenizer(resolve_pattern("gpt2"))
    text = b"a  b\n\n  c 12345 don't"
    assert all_cuts(gpt2, text) == [1, 4, 9, 15, 19]
    special = Pretokenizer(resolve_pattern("none"), ["<s>"])
    assert all_cuts(special, b"a b<s>c <s><s>") == [3, 8, 11]
    overlapping = Pretokenizer(resolve_pattern("none"), ["aa"])
    assert all_cuts(overlapping, b"xaaay aa") == [1, 6]


def test_nothing_is_said_before_it_is_certain() -> None:
    """A cut found with little text in view is a cut with more; None never hides one for good."""
    for specials in SPECIALS:
        cutter = Pretokenizer(resolve_pattern("cl100k"), specials)
        units = [*specials, *"aab1 \né東"]
        rng = random.Random(7)
        for _ in range(60):
            text = "".join(rng.choices(units, k=12)).encode()
            cuts = [*all_cuts(cutter, text), len(text)]
            for position in range(1, len(text)):
                expected = next(cut for cut in cuts if cut >= position)
                for end in range(position, len(text) + 1):
                    found = cutter.next_cut(buffer(text), position, end, False)
                    assert found in (None, expected)
                    last = cutter.last_cut(buffer(text), position, end)
                    assert last is None or (last in cuts and position < last < end)
            reached = cutter.next_cut(buffer(text + b"zz zz"), 1, len(text) + 5, False)
            assert reached is not None


def test_last_cut_is_the_last() -> None:
    gpt2 = Pretokenizer(resolve_pattern("gpt2"), ["<s>"])
    text = b"one two<s>three <"
    assert gpt2.last_cut(buffer(text), 0, len(text)) == 15
    assert gpt2.last_cut(buffer(text), 10, 15) is None
    assert gpt2.last_cut(buffer(text), 0, 9) == 7
    assert gpt2.last_cut(buffer(text), 0, 7) == 3
    for text_ in texts(200, ALPHABET, seed=3):
        data = text_.encode()
        inner = all_cuts(gpt2, data)
        assert gpt2.last_cut(buffer(data), 0, len(data)) == (inner[-1] if inner else None)


def test_a_cut_depends_on_the_bytes_near_it() -> None:
    """The neighbours of a chunk's edge see other text around it and must agree."""
    for specials in SPECIALS:
        cutter = Pretokenizer(resolve_pattern("gpt2"), specials)
        context = 16 + max((len(token.encode()) for token in specials), default=0)
        units = [*specials, *"aab1 \né東", "<|"]
        rng = random.Random(11)
        text = "".join(rng.choices(units, k=200)).encode()
        for position in range(context, len(text) - 1):
            base = position - context
            whole = cutter.next_cut(buffer(text), position, len(text), True)
            near = cutter.next_cut(buffer(text[base:]), context, len(text) - base, True)
            assert near is not None
            assert near + base == whole


@pytest.mark.parametrize("policy", ["replace", "ignore"])
def test_invalid_bytes(policy: str) -> None:
    """Cleaning the parts and counting them is cleaning and counting the whole."""
    rng = random.Random(5)
    units = [b"a", b" ", b"\n", b"<s>", b"<", b"s>", b"\xff", b"\xe2\x82", b"\xc3", "é".encode()]
    units += [b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", "東".encode(), b"'s", b"1"]
    for pattern in ("gpt2", "cl100k", "none"):
        cutter = Pretokenizer(resolve_pattern(pattern), ["<s>"])

        def counted(text: bytes, cutter: Pretokenizer = cutter) -> list[bytes]:
            return cutter.pretokens(text.decode("utf-8", policy).encode())

        for _ in range(400):
            text = b"".join(rng.choices(units, k=rng.randint(0, 14)))
            for cut in all_cuts(cutter, text):
                assert counted(text[:cut]) + counted(text[cut:]) == counted(text)


def test_pairs_of_gpt2() -> None:
    automaton = compile_pattern(PATTERNS["gpt2"])
    pairs = cut_pairs(automaton)

    def cuttable(before: str, after: str) -> bool:
        return bool(pairs[automaton.classes[ord(before)], automaton.classes[ord(after)]])

    assert all(cuttable("a", other) for other in " 1.\n'")
    assert cuttable("1", "a")
    assert not cuttable("\n", "a")  # in "\n\na" the last line feed is alone, at an end of text not
    assert not cuttable(" ", "a")
    assert not cuttable("'", "s")
    assert not cuttable(" ", "\n")


def test_fallback_is_cut_at_special_tokens_only() -> None:
    cutter = Pretokenizer(Pattern(None, r"\b\w+\b"), ["<s>"])
    assert cutter.engine == "regex"
    assert all_cuts(cutter, b"one two <s>three\nfour") == [8]
    assert cutter.last_cut(buffer(b"one two three"), 0, 13) is None
    assert cutter.next_cut(buffer(b"one two three"), 1, 13, False) is None
