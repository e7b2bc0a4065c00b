"""Where tokenizers lie: paths of this machine, and copies of what lies in an object store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raybpe import given, storage
from raybpe.errors import FormatError, UsageError
from raybpe.filesystems import is_local, local_path, shown, split_query

_ENDINGS = ("tokenizer.json", "raybpe.json", "vocab.json", "merges.txt", ".tiktoken")


def local_target(path: str | os.PathLike[str]) -> Path:
    """The path of something to write.

    Raises:
        UsageError: it is not on this machine.
    """
    name = given.path("path", path)
    if not is_local(name):
        raise UsageError(
            f"cannot write a tokenizer to {shown(name)}: only training writes to URIs; write to a "
            "folder of this machine and copy that"
        )
    return Path(local_path(name))


@contextmanager
def copied(uri: str) -> Iterator[Path]:
    """A copy of a tokenizer at a URI, its folder or one of its files, for as long as the block.

    Raises:
        FormatError: there is none.
        InputError: the store refuses.
    """
    head, query = split_query(uri)
    folder, file = head, ""
    if head.endswith((".json", ".txt", ".tiktoken")):
        folder, _, file = head.rpartition("/")
    names = storage.names(folder + query)
    wanted = [name for name in names if name == file or name.endswith(_ENDINGS)]
    if not wanted or (file and file not in wanted):
        raise FormatError(f"there is no tokenizer at {shown(uri)}")
    with tempfile.TemporaryDirectory(prefix="raybpe-") as temporary:
        for name in wanted:
            Path(temporary, name).write_bytes(storage.read(storage.join(folder + query, name)))
        yield Path(temporary, file)
