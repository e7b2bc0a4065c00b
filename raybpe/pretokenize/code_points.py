"""Which code points a set matches, and how they fold into classes.

Membership is asked of the `regex` package, over every code point: its Unicode data decide, as they
do in `regex.finditer`. A set is kept as int32 boundaries [start, end, start, end, …], ascending.

Code points that belong to the same sets form a class; an automaton knows only classes. Surrogates
do not occur in UTF-8: they take the class of what stands before them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import regex

from raybpe.pretokenize.parse import OneOf, Unsupported

Boundaries = npt.NDArray[np.int32]

CODE_POINTS = sys.maxunicode + 1
_SURROGATES = (0xD800, 0xE000)
MAX_CLASSES = 126  # with ASCII bytes and the end of text, one row of 256 symbols

# What the data depend on: a key for caches.
UNICODE_KEY = f"regex {regex.__version__}, python {sys.version_info[0]}.{sys.version_info[1]}"


@lru_cache(maxsize=1)
def _every_code_point() -> str:
    low, high = _SURROGATES
    points = np.concatenate([np.arange(low), np.arange(high, CODE_POINTS)]).astype("<u4")
    return points.tobytes().decode("utf-32-le")


def boundaries(one: OneOf) -> Boundaries:
    """The code points that `one` matches.

    Raises:
        Unsupported: `regex` does not take the text as a single code point.
    """
    if len(one.text) == 1 and one.text != "." and not one.ignore_case:
        return np.array([ord(one.text), ord(one.text) + 1], np.int32)
    text = regex.escape(one.text) if len(one.text) == 1 and one.text != "." else one.text
    flags = ("i" if one.ignore_case else "") + ("s" if one.dot_all else "")
    try:
        runs = regex.compile(f"(?{flags}:{text})+")
    except regex.error as error:
        raise Unsupported(f"{one.text!r} alone: {error}") from None
    spans = [match.span() for match in runs.finditer(_every_code_point())]
    found = np.array(spans, np.int32).reshape(-1)
    low, high = _SURROGATES
    found[found >= low] += high - low
    return found


def fold(sets: Sequence[Boundaries]) -> tuple[npt.NDArray[np.uint8], list[int]]:
    """Classes of code points that no set tells apart.

    Returns:
        class of each code point, uint8 (0x110000,); and for each set a mask, bit k for class k.

    Raises:
        Unsupported: there are more than MAX_CLASSES.
    """
    edges = np.unique(np.concatenate([*sets, np.array([0, CODE_POINTS], np.int32)]))
    # Membership of each stretch between edges: a boundary at or before it an odd number of times.
    inside = np.zeros((len(edges) - 1, max(len(sets), 1)), np.bool_)
    for column, found in enumerate(sets):
        inside[:, column] = np.searchsorted(found, edges[:-1], side="right") % 2 == 1
    kinds, which = np.unique(inside, axis=0, return_inverse=True)
    if len(kinds) > MAX_CLASSES:
        raise Unsupported(f"{len(kinds)} classes of code points, more than {MAX_CLASSES}")
    classes = np.repeat(which.reshape(-1).astype(np.uint8), np.diff(edges))
    masks = [
        sum(1 << k for k in np.flatnonzero(kinds[:, column]).tolist())
        for column in range(len(sets))
    ]
    return classes, masks
