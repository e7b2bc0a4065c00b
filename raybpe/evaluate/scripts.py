"""Tokens by writing system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import regex

from raybpe.formats.properties import SCRIPTS

PARTIAL = "bytes within characters"
NEITHER = "no letters"


def count_scripts(tokens: Iterable[bytes]) -> dict[str, int]:
    """How many tokens belong to each script, the most first.

    A token belongs to the script of its first letter that has one; to `NEITHER` without such (white
    space, digits, punctuation); to `PARTIAL` when its bytes are not whole characters.
    """
    texts, partial = [], 0
    for token in tokens:
        try:
            texts.append(token.decode())
        except UnicodeDecodeError:
            partial += 1
    letters = "".join(regex.findall(r"\p{L}", "".join(set("".join(texts)))))
    script_of = {
        char: script
        for script in SCRIPTS
        if script not in ("Common", "Inherited")
        for char in regex.findall(rf"\p{{Script={script}}}", letters)
    }
    script_of.update((char, "other scripts") for char in letters if char not in script_of)
    counts = Counter(
        next((script_of[char] for char in text if char in script_of), NEITHER) for text in texts
    )
    if partial:
        counts[PARTIAL] = partial
    return dict(counts.most_common())
