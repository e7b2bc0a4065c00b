"""Text into pretokens: patterns by name or as a regex, and where text may be cut."""

from raybpe.pretokenize.patterns import PATTERNS, Pattern, resolve_pattern
from raybpe.pretokenize.pretokenizer import Pretokenizer, pretokenizer

__all__ = ["PATTERNS", "Pattern", "Pretokenizer", "pretokenizer", "resolve_pattern"]
