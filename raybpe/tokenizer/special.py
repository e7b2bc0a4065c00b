"""Which special tokens count as such in one call: tiktoken's two arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from raybpe.errors import UsageError
from raybpe.given import several
from raybpe.given import text as checked_text

SpecialChoice = Literal["all"] | Collection[str]


def choose_specials(
    text: str | bytes,
    declared: Mapping[str, int],
    allowed: SpecialChoice,
    disallowed: SpecialChoice,
) -> tuple[str, ...] | None:
    """The special tokens to cut out of `text`; None for all that are declared.

    As in tiktoken: `disallowed` "all" means all that are not allowed; text that holds a
    disallowed one is refused; what is neither is ordinary text.

    Raises:
        UsageError: `text` holds a disallowed special token.
    """
    allowed = _checked("allowed_special", allowed)
    disallowed = _checked("disallowed_special", disallowed)
    chosen = None if allowed == "all" else tuple(t for t in declared if t in allowed)
    if disallowed:
        refused = set(declared) - set(allowed) if disallowed == "all" else set(disallowed)
        if allowed == "all" and disallowed == "all":
            refused = set()
        if isinstance(text, str):
            present = sorted(token for token in refused if token in text)
        else:
            present = sorted(token for token in refused if token.encode() in text)
        if present:
            raise UsageError(
                f"the text holds {present[0]!r}, which disallowed_special refuses; to encode it "
                f"as a special token pass allowed_special={{{present[0]!r}}}, as ordinary text "
                "disallowed_special=()"
            )
    return chosen


def _checked(name: str, choice: SpecialChoice) -> Literal["all"] | set[str]:
    if isinstance(choice, str):
        if choice == "all":
            return "all"
        raise UsageError(f'{name}={choice!r} must be "all" or a set of special tokens')
    tokens = several(name, choice, '"all" or a set of special tokens')
    return {checked_text(f"each of {name}", token) for token in tokens}
