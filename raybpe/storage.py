"""Where runs write: a local folder, or a URI of an object store through pyarrow.fs or fsspec.

A write is all or nothing. Locally the bytes go to a hidden file beside the target
(`.NAME.PID.RANDOM.tmp`), reach the disk, and are renamed; an object store shows an object only
when its upload is complete. What was there before stays until then, and stays if writing fails.
Devices and pipes are not replaced but written to.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from raybpe.errors import InputError, OutputError
from raybpe.filesystems import (
    attempt,
    explain,
    is_local,
    local_path,
    open_input,
    resolve,
    shown,
    split_query,
)

if TYPE_CHECKING:
    import pyarrow as pa

COPY_BYTES = 4 * 2**20
PROBE = "write-test"
_TEMPORARY = re.compile(r"\.(\d+)\.[0-9a-f]{8}\.tmp$")  # `_write_local`: its process, a random word


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
    if is_local(path):
        _write_local(local_path(path), lambda sink: sink.write(data))
    else:
        _upload(path, lambda sink: sink.write(data))


def write_stream(path: str, produce: Callable[[Any], object]) -> None:
    """Write a file as a whole from a function that is given a writable binary file.

    What goes to a store is produced into a temporary file of this machine first.

    Raises:
        OutputError: it cannot be written; what was there before is untouched.
        TransientError: a store failed again and again.
    """
    if is_local(path):
        _write_local(local_path(path), produce)
        return
    with tempfile.TemporaryFile() as whole:
        try:
            produce(whole)
        except OSError as error:
            raise OutputError(
                f"cannot write {shown(path)}: a copy in {tempfile.gettempdir()} failed: {error}; "
                "free some space there, or set TMPDIR"
            ) from error

        def send(sink: Any) -> None:
            whole.seek(0)
            shutil.copyfileobj(whole, sink, COPY_BYTES)

        _upload(path, send)


def _upload(path: str, send: Callable[[Any], object]) -> None:
    filesystem, inside = resolve(path)

    def put() -> None:
        # By itself Arrow would compress what has a name like .gz.
        with filesystem.open_output_stream(inside, compression=None) as sink:
            send(sink)

    try:
        # In a thread, where Ctrl-C does not reach: a stream that is closed half sent is an object.
        with ThreadPoolExecutor(1, "raybpe-write") as pool:
            pool.submit(attempt, path, put).result()
    except InputError as error:
        raise OutputError(f"cannot write {shown(path)}: {error}") from error


def _write_local(path: str, produce: Callable[[Any], object]) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        _write_through(path, produce)
        return
    target = os.path.realpath(path)  # a link stays, and what it points to is written
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(temporary, "xb") as sink:
            produce(sink)
            sink.flush()
            os.fsync(sink.fileno())
        os.replace(temporary, target)
    except OSError as error:
        _discard(temporary)
        raise _cannot_write(path, error) from error
    except BaseException:
        _discard(temporary)
        raise


def _write_through(path: str, produce: Callable[[Any], object]) -> None:
    """Write to a device or pipe, which holds nothing that could be kept and is not replaced."""
    try:
        with open(path, "wb") as sink:
            produce(sink)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [e.path for e in entries if e.is_file() and not e.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise explain(folder, error) from error


def _delete_local(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
    except FileNotFoundError:
        pass  # another process was quicker
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            return _delete_local(path)  # another process wrote into it meanwhile
        raise OutputError(f"cannot remove {path}: {error.strerror or error}") from error


def delete_leftovers(folder: str, name: str) -> None:
    """Remove what killed writes of files whose name begins with `name` left in a local folder."""
    if is_local(folder):
        for path in glob.glob(f".{glob.escape(name)}*.tmp", root_dir=local_path(folder)):
            made = _TEMPORARY.search(path)
            if made and not _is_running(int(made[1])):
                _delete_local(os.path.join(local_path(folder), path))


def _is_running(process: int) -> bool:
    """Whether a process of this machine may still write; Windows lets nobody remove its file."""
    if os.name == "nt":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process != os.getpid()


def _discard(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def _cannot_write(path: str, error: OSError) -> OutputError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(
            f"the disk is full: {path} was not written and what was there before is untouched; "
            "free some space, or write elsewhere with --output"
        )
    reason = error.strerror or str(error)
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        reason = "a file is where a folder is needed"
    return OutputError(
        f"cannot write {path}: {reason}; check the folder and its permissions, "
        "or write elsewhere with --output"
    )


def read(path: str) -> pa.Buffer:
    """Read a whole file into memory.

    Raises:
        InputError: it does not exist or may not be read.
        TransientError: a store failed again and again.
    """

    def get() -> pa.Buffer:
        with open_input(path) as file:
            return file.read_buffer()

    data: pa.Buffer = attempt(path, get)
    return data


def exists(path: str) -> bool:
    """Whether a file or folder is there."""
    if is_local(path):
        return os.path.exists(local_path(path))
    from pyarrow.fs import FileType

    filesystem, inside = resolve(path)
    info = attempt(path, lambda: filesystem.get_file_info(inside))
    return bool(info.type != FileType.NotFound)


def names(folder: str) -> list[str]:
    """Sorted names of the files directly in a folder; none if it does not exist.

    Names that begin with a dot, such as unfinished writes, are left out.
    """
    if is_local(folder):
        return sorted(map(os.path.basename, _files(local_path(folder))))
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
    if is_local(path):
        _delete_local(local_path(path))
        return
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
    delete_leftovers(folder, PROBE)
    _probe(join(folder, f"{PROBE}-{secrets.token_hex(4)}"))


def _probe(path: str) -> None:
    write(path, b"raybpe")
    delete(path)


def check_replaceable(path: str) -> None:
    """The same for a file that is to be written as a whole.

    Raises:
        OutputError: it is a folder, or nothing can be written beside it.
    """
    if not is_local(path):
        head, query = split_query(path)
        if head.endswith("/"):
            raise OutputError(
                f"cannot write {shown(path)}: it is a folder; name a file with --output"
            )
        _probe(f"{head}.{PROBE}-{secrets.token_hex(4)}{query}")
        return
    name = local_path(path)
    if not name or os.path.isdir(name):
        raise OutputError(f"cannot write {path!r}: it is a folder; name a file with --output")
    if os.path.isfile(name) or not os.path.exists(name):
        check_writable(os.path.dirname(os.path.realpath(name)))
