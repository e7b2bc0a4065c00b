"""Named patterns: their pieces, against `regex` and against the passes of other tokenizers."""

import json
import random
from pathlib import Path

import pytest
import regex

from raybpe.errors import PatternError
from raybpe.pretokenize import PATTERNS, Pattern, Pretokenizer, resolve_pattern
from raybpe.pretokenize.compile import compile_pattern

EXPECTED = json.loads((Path(__file__).parent / "data" / "pretokens.json").read_text("utf-8"))
ALPHABET = (
    "aZéßſK1٣½² \t\n\r\u00a0\u2028\x1c\x85'’.,#/_$・ア一゙゛\u3040\u3098\u0301ाषि्\u200d\u200c\x00"
    "\ue000\u0378sStTrREelLdDmMvV😀\U000e0001"
)
CONTEXTS = (
    "{}",
    "a{}",
    "{}a",
    " {}",
    "{} ",
    "  {}",
    "{}\n",
    "1{}1",
    ".{}.",
    "'{}",
    "A{}a",
    "{}{}{}",
)


def strings(count: int, seed: int, longest: int = 12) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(ALPHABET, k=rng.randint(0, longest))) for _ in range(count)]


def by_regex(pattern: str, text: str) -> list[str]:
    return [match.group() for match in regex.finditer(pattern, text) if match.group()]


def pieces(pretokenizer: Pretokenizer, text: str) -> list[str]:
    return [pretoken.decode() for pretoken in pretokenizer.pretokens(text.encode())]


def in_passes(passes: list[str], text: str) -> list[str]:
    """Splits one after the other, each isolating its matches, as Hugging Face's Sequence does."""
    stretches = [text]
    for pattern in passes:
        split = []
        for stretch in stretches:
            at = 0
            for match in regex.finditer(pattern, stretch):
                split += [stretch[at : match.start()], match.group()]
                at = match.end()
            split.append(stretch[at:])
        stretches = [stretch for stretch in split if stretch]
    return stretches


@pytest.fixture(scope="module")
def pretokenizers() -> dict[str, Pretokenizer]:
    return {name: Pretokenizer(resolve_pattern(name)) for name in PATTERNS}


@pytest.mark.parametrize("name", PATTERNS)
def test_named_patterns_need_no_fallback(name: str, pretokenizers: dict[str, Pretokenizer]) -> None:
    engine = "scan" if name == "gpt2" else "automaton"
    assert pretokenizers[name].engine == engine
    assert pretokenizers[name].reason is None


@pytest.mark.parametrize(
    "case", EXPECTED, ids=lambda case: f"{case['pattern']}-{case['text'][:20]}"
)
def test_expected_pieces(case: dict, pretokenizers: dict[str, Pretokenizer]) -> None:
    assert pieces(pretokenizers[case["pattern"]], case["text"]) == case["pieces"]


@pytest.mark.parametrize("name", PATTERNS)
def test_random_strings_as_regex(name: str, pretokenizers: dict[str, Pretokenizer]) -> None:
    for text in strings(3000, seed=len(name)):
        assert pieces(pretokenizers[name], text) == by_regex(PATTERNS[name], text)


@pytest.mark.parametrize("name", PATTERNS)
def test_edges_of_classes_in_contexts(name: str, pretokenizers: dict[str, Pretokenizer]) -> None:
    """Ends of the runs of each class: where a table would be off by one."""
    classes = compile_pattern(PATTERNS[name]).classes
    edges = [at for at in range(1, len(classes)) if classes[at] != classes[at - 1]]
    points = sorted({point for at in edges for point in (at - 1, at)} | {0, 0x10FFFF})
    characters = [chr(point) for point in points if not 0xD800 <= point < 0xE000]
    characters = characters[:: max(1, len(characters) // 800)]
    for context in CONTEXTS:
        text = "".join(context.format(*[character] * 3) for character in characters)
        assert pieces(pretokenizers[name], text) == by_regex(PATTERNS[name], text)


@pytest.mark.parametrize("name", PATTERNS)
def test_small_corpora_as_regex(
    name: str, pretokenizers: dict[str, Pretokenizer], shared: Path
) -> None:
    for path in sorted((shared / "corpora" / "small").iterdir()):
        text = path.read_bytes()[:20_000].decode("utf-8", "ignore")
        assert pieces(pretokenizers[name], text) == by_regex(PATTERNS[name], text), path.name


def test_nothing_is_lost(pretokenizers: dict[str, Pretokenizer]) -> None:
    for text in strings(500, seed=1, longest=40):
        for name, pretokenizer in pretokenizers.items():
            assert "".join(pieces(pretokenizer, text)) == text, name


def test_deepseek_gives_the_pieces_of_its_three_passes(
    pretokenizers: dict[str, Pretokenizer],
) -> None:
    passes = [
        r"\p{N}{1,3}",
        "[一-龥぀-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ]
    for text in strings(10_000, seed=2):
        assert pieces(pretokenizers["deepseek-v3"], text) == in_passes(passes, text)


def test_starcoder_gives_the_pieces_of_its_two_passes(
    pretokenizers: dict[str, Pretokenizer],
) -> None:
    for text in strings(10_000, seed=3):
        passes = [r"\p{N}", PATTERNS["gpt2"]]
        assert pieces(pretokenizers["starcoder"], text) == in_passes(passes, text)


def test_names_and_regexes() -> None:
    assert resolve_pattern("gpt2") == Pattern("gpt2", PATTERNS["gpt2"])
    assert resolve_pattern(PATTERNS["o200k"]) == Pattern("o200k", PATTERNS["o200k"])
    assert resolve_pattern(r"\w+") == Pattern(None, r"\w+")
    assert pieces(Pretokenizer(resolve_pattern(r"\w+")), "to be, or") == ["to", "be", "or"]


@pytest.mark.parametrize("wrong", ["gpt-2", "cl100", "", "o200k_base"])
def test_misspelt_names_are_refused(wrong: str) -> None:
    with pytest.raises(PatternError, match=r"gpt2|name"):
        resolve_pattern(wrong)
