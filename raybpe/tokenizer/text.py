"""Bytes to text the way that `Tokenizer.decode` does it, and how bytes divide into characters.

``errors="replace"`` is Python's, with one difference: a lone surrogate, which `Tokenizer.encode`
keeps as the three bytes that UTF-8 would give it, comes back as it was instead of as three U+FFFD.
So ``decode(encode(s)) == s`` for every str, not only for those that can be written to a file.
"""

import codecs
import re
from typing import Any

from raybpe.errors import UsageError
from raybpe.given import text

REPLACE = "raybpe.replace"

# One match per character of the decoded text: a valid character, an encoded surrogate, the longest
# beginning of a valid character (one U+FFFD), or any other byte (one U+FFFD).
_UNITS = re.compile(
    rb"[\x00-\x7f]"
    rb"|[\xc2-\xdf][\x80-\xbf]?"
    rb"|\xe0(?:[\xa0-\xbf][\x80-\xbf]?)?"
    rb"|[\xe1-\xec\xee\xef](?:[\x80-\xbf][\x80-\xbf]?)?"
    rb"|\xed(?:[\x80-\x9f][\x80-\xbf]?|[\xa0-\xbf][\x80-\xbf])?"
    rb"|\xf0(?:[\x90-\xbf][\x80-\xbf]{0,2})?"
    rb"|[\xf1-\xf3][\x80-\xbf]{0,3}"
    rb"|\xf4(?:[\x80-\x8f][\x80-\xbf]{0,2})?"
    rb"|[\x80-\xff]"
)
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
# A character, or a surrogate, of which more bytes may come.
_UNFINISHED = re.compile(
    rb"(?:[\xc2-\xf4]|\xe0[\xa0-\xbf]|[\xe1-\xef][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]?|[\xf1-\xf3][\x80-\xbf]{1,2}|\xf4[\x80-\x8f][\x80-\xbf]?)\Z"
)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Error handler: an encoded surrogate as itself, anything else as U+FFFD."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    surrogate = _SURROGATE.match(error.object, error.start)
    if surrogate:
        return surrogate.group().decode("utf-8", "surrogatepass"), surrogate.end()
    return "\ufffd", error.end


codecs.register_error(REPLACE, _replace)


def check_errors(errors: Any) -> None:
    """Refuse what names no way to decode what is not UTF-8.

    Raises:
        UsageError: Python knows no such error handler, or it only encodes.
    """
    try:
        b"\xff".decode("utf-8", text("errors", errors))
    except UnicodeDecodeError:
        pass  # which is what "strict" does
    except (LookupError, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"errors={errors!r} is no way to decode ({error}); give replace, ignore, strict, "
            "backslashreplace or surrogateescape"
        ) from None


def decode_text(data: bytes, errors: str = "replace") -> str:
    """Text of some bytes."""
    return data.decode("utf-8", REPLACE if errors == "replace" else errors)


def unit_starts(data: bytes) -> list[int]:
    """Where each character of ``decode_text(data)`` begins in `data`."""
    return [match.start() for match in _UNITS.finditer(data)]


def unfinished(data: bytes) -> int:
    """How many bytes at the end begin a character that more bytes may complete."""
    match = _UNFINISHED.search(data, max(0, len(data) - 3))
    return len(data) - match.start() if match else 0
