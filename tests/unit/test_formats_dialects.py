"""Patterns mean the same in every engine, or are refused."""

import random
from collections.abc import Callable

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from raybpe.errors import FormatError
from raybpe.formats.dialects import Engine, translate
from raybpe.formats.properties import CATEGORIES, SCRIPTS, property_name
from raybpe.formats.verify import unknown_characters
from raybpe.pretokenize import PATTERNS

tokenizers = pytest.importorskip("tokenizers")
tiktoken = pytest.importorskip("tiktoken")

ALPHABET = (
    "aAsStTlLvVeEdDmM'’ \t\n\r\x0b\u00a0\u3000109²½٣.,!-_/#éßſKÆǅʰªº日本かカ한नम"
    "\u0301\u0947\u200d👩€"
)
BYTES = {bytes([byte]): byte for byte in range(256)}


def by_regex(pattern: str, text: str) -> list[str]:
    return [match.group() for match in regex.finditer(pattern, text) if match.group()]


def splitter(written: str) -> Callable[[str], list[str]]:
    """How tokenizers cuts by a pattern in Oniguruma's syntax."""
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(written), "removed", invert=True)
    return lambda text: [piece for piece, _ in split.pre_tokenize_str(text) if piece]


def tiktoken_splitter(written: str, pieces: set[str]) -> Callable[[str], list[str]]:
    """How tiktoken cuts texts that have these pieces: it takes a piece that is a token whole."""
    longer = sorted({piece.encode() for piece in pieces} - BYTES.keys())
    encoding = tiktoken.Encoding(
        "test",
        pat_str=written,
        mergeable_ranks=BYTES | {piece: 256 + i for i, piece in enumerate(longer)},
        special_tokens={},
    )
    token = encoding.decode_single_token_bytes
    return lambda text: [token(i).decode() for i in encoding.encode_ordinary(text)]


CUSTOM = [
    r"\p{N}{1,3}+| ?\p{L}++|\s++$|\s+(?!\S)|\s|.",
    r"(?i:don't|'re|'ve)|\w+|[^\w\s]+|\s+",
    r"(?:ab?){2}|(a)(?<name>t)|[[\]^&&-]+|[^a-d\n]{1,2}?|(?s:.)",
    r"(?>\s+)|(?<=a)s|(?<!a)t|\S",
    r"^a+|\Aa|e+\Z|e$|[\s\S]",
    r"\x41+|\u00e9+|\U0001F469|[\x61-\x7a]+|[^\x00-\x1f]|.|\n",
    r"(?s)a.|.",
    r"\p{Script=Han}+|\p{Lu}\P{Lu}*|\pN+|[\p{^L}\d]+|[\s\S]",
    r"a{,2}b|a{2,}|s{2}?|[\s\S]",
]


@pytest.mark.parametrize("pattern", [*PATTERNS.values(), *CUSTOM])
def test_all_engines_cut_alike(pattern: str) -> None:
    rng = random.Random(7)
    texts = ["".join(rng.choices(ALPHABET, k=rng.randint(0, 24))) for _ in range(300)]
    texts += ["a\n", "e\n\n", "  \n", "1234567", "x  \n\n  y  ", "I'LL we'Re ſ's", "aaa\naa"]
    expected = {text: by_regex(pattern, text) for text in texts}
    by_tokenizers = splitter(translate(pattern, "regex", "oniguruma"))
    pieces = {piece for found in expected.values() for piece in found}
    by_tiktoken = tiktoken_splitter(translate(pattern, "regex", "fancy-regex"), pieces)
    for text, found in expected.items():
        assert by_regex(translate(pattern, "regex", "regex"), text) == found, text
        assert by_tokenizers(text) == found, text
        if "".join(found) == text:
            assert by_tiktoken(text) == found, text


@pytest.mark.parametrize("pattern", [*PATTERNS.values(), *CUSTOM])
def test_there_and_back_means_the_same(pattern: str) -> None:
    there = translate(pattern, "regex", "oniguruma")
    back = translate(there, "oniguruma", "regex")
    rng = random.Random(3)
    for _ in range(200):
        text = "".join(rng.choices(ALPHABET, k=rng.randint(0, 16)))
        assert by_regex(back, text) == by_regex(pattern, text), text


@pytest.mark.parametrize("name", PATTERNS)
def test_named_patterns_need_no_rewriting_but_escapes(name: str) -> None:
    pattern = PATTERNS[name]
    assert translate(pattern, "regex", "oniguruma") == pattern
    assert translate(pattern, "regex", "fancy-regex") == pattern
    assert translate(pattern, "oniguruma", "regex") == pattern


@pytest.mark.parametrize(
    ("pattern", "source", "target", "expected"),
    [
        (r"\p{N}{1,3}+", "regex", "oniguruma", r"(?>\p{N}{1,3})"),
        (r"\p{N}{1,3}+", "oniguruma", "regex", r"(?:\p{N}{1,3})+"),
        (r"\p{N}{1,3}+", "regex", "fancy-regex", r"\p{N}{1,3}+"),
        (r"\s+$", "regex", "oniguruma", r"\s+\Z"),
        (r"\s+$", "regex", "fancy-regex", r"\s+(?=\n?\z)"),
        (r"\s+$", "fancy-regex", "regex", r"\s+\Z"),
        (r"\s+$", "oniguruma", "regex", r"\s+(?=\n|\Z)"),
        (r"\s+\Z", "oniguruma", "regex", r"\s+$"),
        (r"(?m:a.)", "oniguruma", "regex", r"(?:a[\s\S])"),
        (r"(?i)ab|c", "regex", "oniguruma", "(?i:ab|c)"),
    ],
)
def test_rewritten(pattern: str, source: Engine, target: Engine, expected: str) -> None:
    assert translate(pattern, source, target) == expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\ba", "boundary"),
        (r"(?i:groß)", "another case"),
        (r"(?i:miss)", "another case"),
        (r"(?i:ass)", "one-character forms"),
        (r"(?i:[a-z])", "range"),
        (r"(?i:\p{Lu})", r"under \(\?i"),
        (r"(?m)^a", "group"),
        (r"(?x) a", "group"),
        (r"(a)\1", "escape"),
        (r"\X", "escape"),
        (r"\p{Emoji}", "property"),
        (r"[[:alpha:]]", "sets inside sets"),
        (r"a{x", "repetition"),
        (r"a**", "repetition"),
        (r"(a", "not closed"),
        (r"a)", "without its"),
        (r"[a", "not closed"),
        (r"(?|a|b)", "group"),
        ("\\", "escape"),
        (r"(?P=a)", "group"),
        (r"(foo){e<=1}", "repetition"),
        (r"a|$+", "repetition"),
        (r"|0", "empty text"),
        (r"\s*", "empty text"),
        (r"(?=a)+", "repetition"),
    ],
)
def test_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        translate(pattern, "regex", "oniguruma")
    assert "at character" in str(caught.value)


@pytest.mark.parametrize("pattern", [r"[a&&b]", r"[a[b]]", r"a{2}?", r"\w", r"\U00000041", "(?s)."])
def test_what_oniguruma_reads_its_own_way_is_not_taken_over(pattern: str) -> None:
    with pytest.raises(FormatError):
        translate(pattern, "oniguruma", "regex")


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet=r"()[]{}\^$.|*+?!:<>=-&,pPLNsSwbdDi'm 0123abzZA", max_size=14))
def test_any_text_is_translated_right_or_refused(pattern: str) -> None:
    try:
        compiled = regex.compile(pattern)
        there = translate(pattern, "regex", "oniguruma")
    except (regex.error, FormatError):
        return
    by_tokenizers = splitter(there)
    for text in ("ab a1b2 'zz\nsZ", "  aab\n\n", "p{N}[i]&-:0123"):
        ours = [match.group() for match in compiled.finditer(text)]
        if "" in ours:
            continue  # only beside something; no pattern of use does
        assert by_tokenizers(text) == ours


def test_properties_are_the_same_sets() -> None:
    characters = [chr(code) for code in range(0x3000)] + list("가一鿿ﬀ\U0001d7ce\U00020000👩\ue000")
    text = "".join(char for char in characters if not "\ud800" <= char <= "\udfff")
    unknown = unknown_characters(text, "tokenizers") | unknown_characters(text, "tiktoken")
    text = "".join(char for char in text if char not in unknown)
    for name in (*CATEGORIES, *SCRIPTS, "Alphabetic"):
        assert property_name(name) == name
        pattern = rf"\p{{{name}}}"
        if name in ("Common", "Inherited"):
            continue  # scripts of single characters are revised between Unicode versions
        expected = by_regex(pattern, text)
        theirs = splitter(pattern)(text)
        revised = set(expected) ^ set(theirs)
        assert len(revised) <= 3, (name, revised)
