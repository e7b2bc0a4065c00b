"""Reading files that strangers wrote: bounded, regular files only, JSON without surprises.

A file over MAX_FILE_BYTES is refused before it is read. What a file says never makes another file
be opened, and no number in it sets the size of an allocation. Every refusal is a `FormatError`
that names the file.
"""

from __future__ import annotations

import gc
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from raybpe.errors import FormatError

_ESCAPED = (rb"\u0022", rb"\u003a", rb"\u003A")  # quote and colon
_SPACED = (b" :", b"\t:", b"\n:", b"\r:")
_SPACED_KEY = re.compile(rb'"[ \t\n\r]+:')
MAX_FILE_BYTES = 256 * 10**6  # five times the largest published tokenizer.json


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking, over and over, all that is being read.

    A vocabulary is some 100,000 small objects, none of them garbage; the walks are a third of the
    time that reading takes.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read_file(path: Path) -> bytes:
    """The whole file."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FormatError(f"{path} is not a regular file, so no tokenizer is read from it")
            if status.st_size > MAX_FILE_BYTES:
                raise FormatError(
                    f"{path} has {status.st_size:,} bytes; a tokenizer file has at most "
                    f"{MAX_FILE_BYTES:,}"
                )
            return file.read(MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"cannot read {path}: {reason}") from None


def read_text(path: Path) -> str:
    """The whole file as UTF-8."""
    data = read_file(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{path} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start} "
            f"(line {line})"
        ) from None


def read_json(path: Path) -> Any:
    """The JSON value in a file; a key listed twice in one object is refused."""
    data = read_file(path)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FormatError(f"{path} is not valid JSON: {error}") from None
    # Parsers keep the last of two equal keys. Writing the value again shows whether one was lost,
    # unless the file writes something with fewer of these marks than we do.
    fewer = any(mark in data for mark in _ESCAPED) or (
        any(mark in data for mark in _SPACED) and _SPACED_KEY.search(data)
    )
    if fewer or data.count(b'":') != orjson.dumps(value).count(b'":'):
        _refuse_repeated_keys(data, path)
    return value


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise FormatError(f"{path} holds {kind(value)} where a JSON object is needed")
    return value


def _refuse_repeated_keys(data: bytes, path: Path) -> None:
    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise FormatError(f"{path} lists the key {key!r} twice in one object")
                seen.add(key)
        return found

    try:
        json.loads(data, object_pairs_hook=check)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not valid JSON: {error}") from None


def kind(value: object) -> str:
    """What a JSON value is, for messages."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    if value is None:
        return "null"
    return names.get(type(value), f"the number {value!r:.40}")
