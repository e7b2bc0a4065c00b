"""Tokens and pretokens quoted for people, as Python would write them."""

from __future__ import annotations


def readable(token: bytes) -> str:
    """A quoted text, or quoted bytes where they are not UTF-8.

    >>> readable(b" the"), readable(b"\\xe2\\x80")
    ("' the'", "b'\\\\xe2\\\\x80'")
    """
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(token)


def shortened(token: bytes, length: int = 72) -> str:
    """As `readable`, but of a long token only the beginning, and its length."""
    if len(token) <= length:
        return readable(token)
    return f"{readable(token[:length])}… ({len(token):,} bytes)"
