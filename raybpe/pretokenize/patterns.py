r"""The named patterns, and what a user may give instead of a name.

All are written in the part of the regex language that Python's `regex`, Oniguruma (Hugging Face
tokenizers) and fancy-regex (tiktoken) read alike, so that exports carry the same text.

Where a model's own tokenizer splits in several passes, its pattern here is one regex with the same
pieces (`tests/unit/test_patterns.py` compares them):

- ``deepseek-v3`` splits off up to three digits, then runs of Han and kana, then splits each stretch
  once more. What a pass has split off is an end of text for its neighbours, so no alternative joins
  Han with anything else and ``(?!\S)`` becomes "no other non-space". Characters that the last pass
  does not match are pieces too: the last two alternatives.
- ``starcoder`` splits off single digits, then does as ``gpt2``.

``cl100k`` is the pattern as GPT-4's was published and as Hugging Face conversions have it. Releases
of tiktoken since 0.8 put ``\s++$`` before ``\s*[\r\n]``: white space at the very end of a text is
then one piece even when it holds a line break. Nothing else differs.

``gpt2-marks`` keeps combining marks and zero-width joiners with the letter before them; ``gpt2``
cuts there, which breaks words of Indic and other scripts.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from types import MappingProxyType

from raybpe.errors import PatternError

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_KANA_HAN = "一-龥぀-ゟ゠-ヿ"
_HAN = f"(?=[{_KANA_HAN}])"
_NOT_HAN = f"(?![{_KANA_HAN}])"
_LEADER = r"[^\r\n\p{L}\p{N}\p{P}\p{S}]"  # one such may begin a word
_REST = r"[^\s\p{L}\p{M}\p{N}\p{P}\p{S}]"

PATTERNS: MappingProxyType[str, str] = MappingProxyType(
    {
        "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        "cl100k": (
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
        ),
        "o200k": (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?"
            rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
            rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
        ),
        "llama3": (
            rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}"
            rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
        ),
        "qwen2": (
            rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
        ),
        "deepseek-v3": (
            r"""\p{N}{1,3}|[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
            rf"|(?:{_NOT_HAN}{_LEADER})?(?:{_NOT_HAN}[\p{{L}}\p{{M}}])+"
            rf"|(?:{_HAN}{_LEADER})?(?:{_HAN}[\p{{L}}\p{{M}}])+"
            rf"| ?(?:{_NOT_HAN}[\p{{P}}\p{{S}}])+[\r\n]*|(?:{_HAN}[\p{{P}}\p{{S}}])+"
            rf"|\s*[\r\n]+|\s+(?![^\s\p{{N}}{_KANA_HAN}])|\s+"
            rf"|(?:{_NOT_HAN}{_REST})+(?!{_NOT_HAN}[\p{{L}}\p{{M}}])"
            rf"|(?:{_HAN}{_REST})+(?!{_HAN}[\p{{L}}\p{{M}}])"
        ),
        "starcoder": (
            r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"
        ),
        "gpt2-marks": (
            r"'(?:[sdmt]|ll|ve|re)| ?\p{L}[\p{L}\p{M}\u200c\u200d]*| ?\p{N}+"
            r"| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
        ),
        "whitespace": r" ?\S+|\s+(?!\S)|\s+",
        "none": r"[\s\S]+",
    }
)

_NAMES = {regex: name for name, regex in PATTERNS.items()}
_NAME_LETTERS = frozenset(string.ascii_lowercase + string.digits + "-_")


@dataclass(frozen=True)
class Pattern:
    """A pretokenization pattern.

    Attributes:
        name: its name when it is one of `PATTERNS`, else None.
        regex: the pattern itself, in the syntax of the `regex` package (version 0 behaviour).
    """

    name: str | None
    regex: str


def resolve_pattern(name_or_regex: str) -> Pattern:
    r"""The named pattern of this name, or else the regex as it stands.

    The regex is not checked here; `Pretokenizer` does that. A plain word that is no name is
    refused, since a misspelt name would otherwise be a regex that matches only itself.

    >>> resolve_pattern(r"\w+")
    Pattern(name=None, regex='\\w+')
    """
    if not isinstance(name_or_regex, str):  # a function, say, which no export could carry
        raise PatternError(
            f"the pattern is a {type(name_or_regex).__name__}, not text; give a name or a regex, "
            "which is what tokenizer files can hold"
        )
    if name_or_regex in PATTERNS:
        return Pattern(name_or_regex, PATTERNS[name_or_regex])
    if not name_or_regex:
        raise PatternError("the pattern is empty; give a name or a regex (`none` does not split)")
    if len(name_or_regex) > 1 and _NAME_LETTERS.issuperset(name_or_regex):
        raise PatternError(
            f"no pattern is named {name_or_regex[:80]!r}; there are {', '.join(PATTERNS)}; if it "
            f"is meant as a regex that matches this text, write (?:{name_or_regex[:80]})"
        )
    return Pattern(_NAMES.get(name_or_regex), name_or_regex)
