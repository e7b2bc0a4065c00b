"""Text into pretokens: patterns by name or as a regex, and where text may be cut.

`Pretokenizer` and `pretokenizer` load on first use, since they bring in the kernels.
"""

from typing import TYPE_CHECKING, Any

from raybpe.pretokenize.patterns import PATTERNS, Pattern, resolve_pattern

if TYPE_CHECKING:
    from raybpe.pretokenize.engines import Pretokenizer, pretokenizer

__all__ = ["PATTERNS", "Pattern", "Pretokenizer", "pretokenizer", "resolve_pattern"]


def __getattr__(name: str) -> Any:
    if name not in ("Pretokenizer", "pretokenizer"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from raybpe.pretokenize import engines

    value = getattr(engines, name)
    globals()[name] = value
    return value
