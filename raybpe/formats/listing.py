r"""`merges.tsv`: the merges for people, in a text editor or a spreadsheet.

Tab-separated, one header line, then rank, left, right, token, count. Count is how often the pair
was there when it was merged, empty where that is not known. Tokens are shown as text: a space as
``␠``; what does not print, is not UTF-8, or would be mistaken is escaped as in Python (``\n``,
``\x80``, ``\u2420``), a backslash as ``\\``. Different tokens always look different.
"""

from __future__ import annotations

from collections.abc import Sequence

from raybpe.formats.source import Source, lines

HEADER = "rank\tleft\tright\ttoken\tcount\n"
_SPACE = "␠"


def spelled(token: bytes) -> str:
    r"""The token as text on one line.

    >>> spelled(b" the"), spelled(b"\n"), spelled(b"\xe2\x82")
    ('␠the', '\\n', '\\xe2\\x82')
    """
    try:
        text = token.decode()
    except UnicodeDecodeError:
        text = token.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text and _SPACE not in text:
        return text.replace(" ", _SPACE)
    return "".join(map(_character, text))


def _character(char: str) -> str:
    if char == " ":
        return _SPACE
    if char == "\\":
        return "\\\\"
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    if char.isprintable() and char != _SPACE:
        return char
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    # \x is for bytes that are no characters, so that U+0080 and the byte 0x80 look different.
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def render_listing(source: Source, merge_counts: Sequence[int] | None = None) -> bytes:
    """The file.

    Args:
        source: whose merges to list.
        merge_counts: count of each pair when it was merged, in rank order.
    """
    shown = source.shown_by_id(list(map(spelled, source.tokenizer.vocab.values())))
    left, right, token = (source.pick(shown, column) for column in range(3))
    counts: Sequence[str] | str = "" if merge_counts is None else list(map(str, merge_counts))
    ranks = list(map(str, range(len(left))))
    rows = lines(ranks, "\t", left, "\t", right, "\t", token, "\t", counts, "\n")
    return (HEADER + rows).encode()
