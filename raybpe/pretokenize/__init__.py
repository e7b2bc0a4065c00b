"""Text into pretokens: patterns by name or as a regex, and where text may be cut."""

from raybpe.pretokenize.patterns import PATTERNS, Pattern, resolve_pattern

__all__ = ["PATTERNS", "Pattern", "resolve_pattern"]
