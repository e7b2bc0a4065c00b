"""Unicode properties that `regex`, Oniguruma and fancy-regex all know, by one name.

General categories and scripts. The engines agree on them for every character that all of their
Unicode versions know (`tests/unit/test_formats_dialects.py`).
"""

from __future__ import annotations

import re

CATEGORIES: tuple[str, ...] = tuple(
    re.findall(
        r"\w+",
        "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po "
        "S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Cn Co",
    )
)
SCRIPTS: tuple[str, ...] = tuple(
    re.findall(
        r"\w+",
        "Arabic Armenian Bengali Bopomofo Braille Cherokee Common Cyrillic Devanagari Ethiopic "
        "Georgian Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana Inherited Kannada Katakana "
        "Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Syriac Tamil Telugu Thaana "
        "Thai Tibetan",
    )
)
_LONG_NAMES = {
    "letter": "L",
    "uppercaseletter": "Lu",
    "lowercaseletter": "Ll",
    "titlecaseletter": "Lt",
    "modifierletter": "Lm",
    "otherletter": "Lo",
    "mark": "M",
    "nonspacingmark": "Mn",
    "spacingmark": "Mc",
    "enclosingmark": "Me",
    "number": "N",
    "decimalnumber": "Nd",
    "letternumber": "Nl",
    "othernumber": "No",
    "punctuation": "P",
    "symbol": "S",
    "mathsymbol": "Sm",
    "currencysymbol": "Sc",
    "separator": "Z",
    "spaceseparator": "Zs",
    "other": "C",
    "alphabetic": "Alphabetic",
}
_NAMES = {**_LONG_NAMES, **{name.lower(): name for name in (*CATEGORIES, *SCRIPTS)}}


def property_name(text: str) -> str | None:
    r"""The shared name of what stands in ``\p{…}``, or None.

    >>> property_name("Script=Han"), property_name("lu"), property_name("Emoji")
    ('Han', 'Lu', None)
    """
    head, equals, value = text.partition("=")
    prefixes = ("script", "sc", "generalcategory", "gc")
    if equals and head.lower().replace("_", "") not in prefixes:
        return None
    wanted = (value if equals else text).lower()
    return _NAMES.get("".join(char for char in wanted if char not in " _-"))
