"""What callers give, checked by type at the door: no wrong type comes out deep inside.

Each function returns the value as the rest of raybpe takes it, or raises `ArgumentTypeError`, which
names the argument, what it must be, and what it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from numbers import Real
from operator import index
from typing import Any

from raybpe.errors import ArgumentTypeError, UsageError
from raybpe.filesystems import is_local, local_path, refuse_nameless

_SHOWN = 60  # characters of a value
# Bytes that file systems of Linux take.
_LONGEST_NAME = 255
_LONGEST_PATH = 4095


def wrong_type(name: str, value: object, wanted: str) -> ArgumentTypeError:
    """The error for an argument that is not `wanted`."""
    kind = "" if value is None else f" ({type(value).__name__})"
    return ArgumentTypeError(f"{name} must be {wanted}, not {quoted(value)}{kind}")


def quoted(value: object) -> str:
    """The beginning of a value's repr, also where its class has none that works."""
    try:
        shown = repr(value)
    except Exception:  # of the caller's class, which is not what the message is about
        return "a value that cannot be shown"
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"


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


def count(name: str, value: Any, least: int = 1) -> int:
    """An int from `least` up."""
    number = whole_number(name, value)
    if number < least:
        raise UsageError(f"{name} is {number}, but must be at least {least}")
    return number


def probability(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise wrong_type(name, value, "a probability, from 0 to 1")
    number = float(value)
    if not 0 <= number <= 1:
        raise UsageError(f"{name}={number} must be a probability, from 0 to 1")
    return number


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
    refuse_nameless(found)
    local = local_path(found) if is_local(found) else ""
    try:
        parts = os.fsencode(local or found).split(b"/")
    except UnicodeEncodeError:
        raise UsageError(f"{name} is {found!r}, and no file can have such a name") from None
    if "\0" in found or "\0" in local:
        raise UsageError(f"{name} is {quoted(found)}, and no file can have a null byte in its name")
    if local and (max(map(len, parts)) > _LONGEST_NAME or len(b"/".join(parts)) > _LONGEST_PATH):
        raise UsageError(
            f"{name} is {quoted(found)}, {len(found):,} characters, and no file can have so long a "
            "name"
        )
    if local:
        _refuse_no_folder(name, local)
    return found


def _refuse_no_folder(name: str, local: str) -> None:
    """Relative paths mean nothing where the current folder was deleted."""
    if os.path.isabs(local) or local == "-":  # standard input
        return
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UsageError(
            f"{name} is {quoted(local)}, a path in the current folder, which was deleted; change "
            "to a folder that is there, or give a whole path"
        ) from None


def inputs(value: Any) -> list[str]:
    """Paths or URIs to read, one or several.

    Raises:
        UsageError: there is none, or no file can have such a name.
    """
    if isinstance(value, (str, os.PathLike)):
        return [path("the input", value)]
    wanted = "a path or URI (str or os.PathLike), or a list of them"
    paths = [path("an input", one) for one in several("inputs", value, wanted)]
    if not paths:
        raise UsageError("there is no input; give files, folders, globs or URIs")
    return paths


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


def special_ids(value: Any) -> dict[str, int]:
    """Special tokens with their ids.

    Raises:
        UsageError: one cannot be written as UTF-8.
    """
    if not isinstance(value, Mapping):
        raise wrong_type("special_tokens", value, "a mapping from text to id")
    ids = {}
    for token, number in value.items():
        try:
            text("a special token", token).encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"special token {token!r} holds a lone surrogate and cannot be written as UTF-8"
            ) from None
        ids[token] = whole_number(f"the id of the special token {token!r}", number)
    return ids
