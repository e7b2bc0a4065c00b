"""The records of a data set: `index.json`, and while it is unfinished those in `.raybpe/`.

They are read as what anybody may have written: nothing in them leads out of the folder.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any

from raybpe import storage
from raybpe.errors import InputError
from raybpe.filesystems import shown
from raybpe.flow.dataset.shards import Shard

INDEX = "index.json"
UNFINISHED = ".raybpe"
INDEX_FORMAT = 1

_SHARD_FILE = re.compile(r"shard-[0-9]{5,9}\.(npy|bin|parquet)")


def is_shard_name(name: str) -> bool:
    """Whether this is what a shard is called, in any of the formats."""
    return _SHARD_FILE.fullmatch(name) is not None


def load(path: str) -> dict[str, Any] | None:
    """A JSON object, or None where there is no file.

    Raises:
        InputError: the file is something else.
    """
    if not storage.exists(path):
        return None
    try:
        value = json.loads(storage.read(path).to_pybytes())
        if not isinstance(value, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise InputError(
            f"{shown(path)} is not the record of a data set ({error}); remove it, or write "
            "elsewhere with --output"
        ) from error
    return value


def dump(value: dict[str, Any]) -> bytes:
    """The bytes of a record."""
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"


def shard_of(value: Any, path: str) -> Shard:
    """A shard as a record describes it.

    Args:
        path: the record, for messages.

    Raises:
        InputError: it is no shard's description, or names a file elsewhere.
    """
    try:
        shard = Shard(**value)
        numbers = [number for name, number in asdict(shard).items() if name != "file"]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise TypeError("its sizes are no numbers")
        if not is_shard_name(shard.file):
            raise TypeError(f"{shard.file!r} is no shard's name")
    except TypeError as error:
        raise InputError(f"{shown(path)} does not describe shards as an index does: {error}") from (
            error
        )
    return shard


def shards_of(index: dict[str, Any], path: str) -> list[Shard]:
    """The shards that an index lists.

    Raises:
        InputError: it is no index of a data set.
    """
    listed = index.get("shards")
    if index.get("format") != INDEX_FORMAT or not isinstance(listed, list):
        raise InputError(f"{shown(path)} is not the index of a data set; is this the right folder?")
    return [shard_of(value, path) for value in listed]
