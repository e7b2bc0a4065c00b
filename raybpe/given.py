"""What callers give, checked by type at the door: no wrong type comes out deep inside.

Each function returns the value as the rest of raybpe takes it, or raises `ArgumentTypeError`, which
names the argument, what it must be, and what it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from operator import index
from typing import Any

from raybpe.errors import ArgumentTypeError, UsageError

_SHOWN = 60  # characters of a value


def wrong_type(name: str, value: object, wanted: str) -> ArgumentTypeError:
    """The error for an argument that is not `wanted`."""
    shown = repr(value)
    if len(shown) > _SHOWN:
        shown = shown[:_SHOWN] + "…"
    kind = "" if value is None else f" ({type(value).__name__})"
    return ArgumentTypeError(f"{name} must be {wanted}, not {shown}{kind}")


def text(name: str, value: Any) -> str:
    """A str."""
    if not isinstance(value, str):
        raise wrong_type(name, value, "text (str)")
    return value


def whole_number(name: str, value: Any) -> int:
    """An int, from whatever counts as one, such as numpy's."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise wrong_type(name, value, "a whole number")


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise wrong_type(name, value, "True or False")
    return value


def path(name: str, value: Any) -> str:
    """A path or URI, as str.

    Raises:
        UsageError: no file can have such a name.
    """
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise wrong_type(name, value, "a path or URI (str or os.PathLike)")
    try:
        os.fsencode(found)
    except UnicodeEncodeError:
        raise UsageError(f"{name} is {found!r}, and no file can have such a name") from None
    return found


def items(name: str, value: Any, wanted: str) -> Iterator[Any]:
    """Whatever can be iterated, also by `__getitem__` as data sets of torch are."""
    try:
        return iter(value)
    except TypeError:
        raise wrong_type(name, value, wanted) from None


def several(name: str, value: Any, wanted: str) -> list[Any]:
    """The items of a list, a tuple or the like, which one text or a mapping is not."""
    if isinstance(value, (str, bytes, bytearray, Mapping)):
        raise wrong_type(name, value, wanted)
    return list(items(name, value, wanted))


def special_tokens(value: Any) -> list[str]:
    """Special tokens in their order."""
    wanted = "a list of texts (str)"
    return [text("a special token", one) for one in several("special_tokens", value, wanted)]
