"""Where runs write: a local folder, or a URI of an object store through pyarrow.fs or fsspec.

A write is all or nothing. Locally the bytes go to a hidden file beside the target
(`.NAME.PID.RANDOM.tmp`), reach the disk, and are renamed; an object store shows an object only
when its upload is complete. What was there before stays until then, and stays if writing fails.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from raybpe.errors import InputError, OutputError
from raybpe.filesystems import (
    attempt,
    is_local,
    local_path,
    resolve,
    shown,
    split_query,
)

if TYPE_CHECKING:
    import pyarrow as pa


def join(folder: str, *names: str) -> str:
    """Path or URI of something inside a folder; a URI's options stay at its end."""
    if is_local(folder):
        return os.path.join(local_path(folder), *names)
    head, query = split_query(folder)
    return "/".join([head.rstrip("/"), *names]) + query


def write(path: str, data: bytes | memoryview | pa.Buffer) -> None:
    """Write a file as a whole, making its folder; see the module.

    Raises:
        OutputError: it cannot be written; what was there before is untouched.
        TransientError: a store failed again and again.
    """
    write_stream(path, lambda sink: sink.write(data))


def write_stream(path: str, produce: Callable[[Any], object]) -> None:
    """Write a file as a whole from a function that is given a writable binary file.

    It may be called again after trouble that passes, so it must produce the same each time.

    Raises:
        OutputError: it cannot be written; what was there before is untouched.
        TransientError: a store failed again and again.
    """
    if is_local(path):
        _write_local(local_path(path), produce)
        return
    filesystem, inside = resolve(path)

    def put() -> None:
        # By itself Arrow would compress what has a name like .gz.
        with filesystem.open_output_stream(inside, compression=None) as sink:
            produce(sink)

    try:
        attempt(path, put)
    except InputError as error:
        raise OutputError(f"cannot write {shown(path)}: {error}") from error


def _write_local(path: str, produce: Callable[[Any], object]) -> None:
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(temporary, "xb") as sink:
            produce(sink)
            sink.flush()
            os.fsync(sink.fileno())
        os.replace(temporary, path)
    except OSError as error:
        _discard(temporary)
        raise _cannot_write(path, error) from error
    except BaseException:
        _discard(temporary)
        raise


def _discard(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def _cannot_write(path: str, error: OSError) -> OutputError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(
            f"the disk is full: {path} was not written and what was there before is untouched; "
            "free some space, or write elsewhere with --output"
        )
    return OutputError(
        f"cannot write {path}: {error.strerror or error}; check the folder and its permissions, "
        "or write elsewhere with --output"
    )


def read(path: str) -> pa.Buffer:
    """Read a whole file into memory.

    Raises:
        InputError: it does not exist or may not be read.
        TransientError: a store failed again and again.
    """
    filesystem, inside = resolve(path)

    def get() -> pa.Buffer:
        with filesystem.open_input_file(inside) as file:
            return file.read_buffer()

    data: pa.Buffer = attempt(path, get)
    return data


def exists(path: str) -> bool:
    """Whether a file or folder is there."""
    from pyarrow.fs import FileType

    filesystem, inside = resolve(path)
    info = attempt(path, lambda: filesystem.get_file_info(inside))
    return bool(info.type != FileType.NotFound)


def names(folder: str) -> list[str]:
    """Sorted names of the files directly in a folder; none if it does not exist.

    Names that begin with a dot, such as unfinished writes, are left out.
    """
    from pyarrow.fs import FileSelector, FileType

    filesystem, inside = resolve(folder)
    selector = FileSelector(inside, allow_not_found=True)
    infos = attempt(folder, lambda: filesystem.get_file_info(selector))
    return sorted(
        info.base_name
        for info in infos
        if info.type == FileType.File and not info.base_name.startswith(".")
    )


def delete(path: str) -> None:
    """Remove a file or a folder with all that is in it; nothing if it is not there.

    Raises:
        OutputError: it cannot be removed.
    """
    from pyarrow.fs import FileType

    filesystem, inside = resolve(path)

    def remove() -> None:
        kind = filesystem.get_file_info(inside).type
        if kind == FileType.Directory:
            filesystem.delete_dir(inside)
        elif kind != FileType.NotFound:
            filesystem.delete_file(inside)

    try:
        attempt(path, remove)
    except InputError as error:
        raise OutputError(f"cannot remove {shown(path)}: {error}") from error


def check_writable(folder: str) -> None:
    """Try to write in a folder, making it if need be, before work is spent on what goes there.

    Raises:
        OutputError: nothing can be written there.
    """
    probe = join(folder, f"write-test-{secrets.token_hex(4)}")
    write(probe, b"raybpe")
    delete(probe)


def free_bytes(folder: str) -> int | None:
    """Bytes free on the disk of a local folder; None for an object store."""
    if not is_local(folder):
        return None
    path = os.path.abspath(local_path(folder))
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free
