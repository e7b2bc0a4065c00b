"""Open and list what a path or URI names, on this machine or in an object store.

A path without a scheme, or `file://`, is local and goes through `os`. `s3://`, `gs://`, `abfs://`
and `hdfs://` go through pyarrow.fs, any other scheme (`hf://`, `https://`, …) through fsspec.
Options of the first kind stand in the URI's query, as pyarrow reads them
(`s3://bucket/key?region=eu-west-1&endpoint_override=…`); credentials come from the environment,
the instance or the usual files, so that only URIs ever travel between processes. Each process
makes a filesystem once and keeps it.

Errors: what is missing or forbidden is `InputError` and permanent. Trouble that passes (timeouts,
throttling, lost connections) is tried again `ATTEMPTS` times here and then `TransientError`.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from raybpe import stores
from raybpe.errors import ChangedInputError, InputError, RaybpeError, TransientError, UsageError

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

T = TypeVar("T")

ATTEMPTS = 4
GCS_RETRY_SECONDS = 10  # of its own client within each attempt, instead of 15 minutes
FIRST_PAUSE_SECONDS = 0.2  # doubled after each attempt

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_NATIVE = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
_PASSING_ERRNOS = frozenset(
    {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.EAGAIN, errno.EINTR}
)
# Words in the messages of AWS, GCS and HTTP clients for trouble that passes.
_PASSING = re.compile(
    r"slow.?down|throttl|too many requests|timeout|timed out|internal.?(server.?)?error|unavailable"
    r"|network.connection|connection (was )?(reset|aborted|closed|refused)|broken pipe|incomplete"
    r"|\b(429|500|502|503|504)\b",
    re.IGNORECASE,
)
# Of HTTP clients, several of which huggingface_hub has used.
_CONNECTION_ERRORS = (
    ("aiohttp", "ClientConnectionError"),
    ("httpx", "TransportError"),
    ("httpx2", "TransportError"),
    ("requests", "ConnectionError"),
)
_STORE_ERRORS = (
    ("aiohttp", "ClientError"),
    ("httpx", "HTTPError"),
    ("httpx2", "HTTPError"),
    ("fsspec.exceptions", "FSTimeoutError"),
)
_CAUSES_LOOKED_AT = 8
_TIME = "%Y-%m-%dT%H:%M:%S"
# What filesystems of fsspec say of a file that changes with its content, the best first.
_VERSIONS = ("ETag", "etag", "blob_id", "Last-Modified", "last_modified", "modified", "created")
_DENIED = re.compile(r"access.?denied|forbidden|\b40[13]\b|invalidaccesskey|signature", re.I)
_ABSENT = re.compile(r"no.?such|not.?found|does not exist|\b404\b", re.IGNORECASE)


def scheme_of(uri: str) -> str:
    """Scheme of a URI in lower case, `file` for a plain path."""
    match = _SCHEME.match(uri)
    return match.group(1).lower() if match else "file"


def is_local(uri: str) -> bool:
    """Whether this names a path of this machine."""
    return scheme_of(uri) == "file"


def local_path(uri: str) -> str:
    """Path of a local URI or path."""
    if not _SCHEME.match(uri):
        return uri
    host, slash, path = uri.partition("://")[2].partition("/")  # in it ? and # are letters
    if host not in ("", "localhost"):
        raise UsageError(
            f"{shown(uri)} is no file of this machine; write file:///{host}{slash}{path} with "
            "three slashes, or the path alone"
        )
    if not path:
        raise UsageError(f"{uri} names no file or folder; write the path after it, as file:///PATH")
    return slash + unquote(path)


def refuse_nameless(uri: str) -> None:
    """Refuse a URI that names nothing.

    Raises:
        UsageError: it does not say what in a store is meant, or where on this machine.
    """
    if is_local(uri):
        local_path(uri)
    elif why := stores.nameless(uri):
        raise UsageError(f"{shown(uri)} {why}")


def split_query(uri: str) -> tuple[str, str]:
    """A store's URI without its query, and the query with its question mark.

    HTTP keeps its query: the server needs it to find the file; see `name_of` for its name.
    """
    if scheme_of(uri) in ("file", "http", "https"):
        return uri, ""
    head, mark, query = uri.partition("?")
    return head, mark + query


def name_of(uri: str) -> str:
    """What names the file: the path or URI without a query, whose suffix says what it holds."""
    return uri if is_local(uri) else uri.partition("?")[0]


def shown(uri: str) -> str:
    """The URI as messages and manifests name it: no options, no keys, no signature of a link."""
    if is_local(uri):
        return uri.encode("utf-8", "backslashreplace").decode()  # a name may be any bytes
    scheme, _, rest = name_of(uri).partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def _without_keys(text: str, uri: str) -> str:
    """A library's words, which may quote the URI, without its keys and options."""
    head, _, query = uri.partition("?")
    keys = head.partition("://")[2].partition("/")[0].rpartition("@")[0]
    for secret in (keys, query):
        if secret and not is_local(uri):
            text = text.replace(secret, "…")
    return text


@lru_cache(maxsize=64)
def _filesystem(scheme: str, authority: str, query: str) -> tuple[FileSystem, str]:
    """Filesystem of a store and what its paths begin with."""
    from pyarrow import fs

    if scheme in _NATIVE:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if scheme == "s3" and "region=" not in query and region:
            query += ("&" if query else "?") + f"region={region}"  # saves asking the store
        if scheme in ("gs", "gcs") and "retry_limit_seconds=" not in query:
            query += ("&" if query else "?") + f"retry_limit_seconds={GCS_RETRY_SECONDS}"
        try:
            filesystem, path = fs.FileSystem.from_uri(f"{scheme}://{authority}/x{query}")
        except OSError as error:
            raise stores.explained(scheme, error) from error
        return filesystem, path[:-1]
    if query:
        # What stands there is not quoted: it may be a key.
        raise UsageError(
            f"URIs of {scheme}:// take no options; leave out the question mark and what follows, "
            "and give keys and tokens in the environment"
        )
    other = stores.fsspec_filesystem(scheme)
    prefix = f"{scheme}://{authority}/" if scheme in ("http", "https") else f"{authority}/"
    return fs.PyFileSystem(fs.FSSpecHandler(other)), prefix


def resolve(uri: str) -> tuple[FileSystem, str]:
    """Filesystem and path of a URI, made once per process.

    Raises:
        UsageError: nothing installed can open such URIs.
        InputError: the store refuses.
    """
    from pyarrow import fs

    if is_local(uri):
        return fs.LocalFileSystem(), local_path(uri)
    refuse_nameless(uri)
    head, query = split_query(uri)
    scheme = scheme_of(uri)
    authority, _, path = head[head.index("://") + 3 :].partition("/")
    try:
        filesystem, prefix = attempt(uri, lambda: _filesystem(scheme, authority, query))
    except (ImportError, ValueError) as error:
        raise UsageError(
            f"cannot open {shown(uri)}: {_without_keys(str(error), uri)}; "
            f"{stores.cure(scheme, error)}"
        ) from error
    return filesystem, prefix + path


def open_input(uri: str, *, mapped: bool = False) -> Any:
    """A file as Arrow's readers take it; a local one may be mapped into memory.

    Raises:
        InputError: it does not exist or may not be read.
        TransientError: a store failed again and again.
    """
    if is_local(uri):
        import pyarrow as pa

        opener = pa.memory_map if mapped else pa.OSFile
        # As bytes, because Arrow takes only UTF-8 for a name.
        return attempt(uri, lambda: opener(os.fsencode(local_path(uri))))
    filesystem, path = resolve(uri)
    return attempt(uri, lambda: _open(filesystem, path))


def local_version(nanoseconds: int) -> str:
    """A time of change on this machine, to the nanosecond."""
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):{_TIME}}.{rest:09d}Z"


def store_version(uri: str, filesystem: FileSystem, info: FileInfo) -> str:
    """What changes with a file of a store: its time of change or its ETag; empty if unknown."""
    if info.mtime is not None:  # listings give it to other fractions of a second
        return f"{info.mtime.astimezone(timezone.utc):{_TIME}}Z"
    handler = getattr(filesystem, "handler", None)
    if handler is None:
        return ""
    details = attempt(uri, lambda: handler.fs.info(info.path))
    return next((str(details[name]) for name in _VERSIONS if details.get(name)), "")


def _open(filesystem: FileSystem, path: str) -> Any:
    try:
        return filesystem.open_input_file(path)
    except FileNotFoundError:
        handler = getattr(filesystem, "handler", None)
        # Asking fails as well, and with the cause, which Arrow drops.
        if handler is not None and handler.fs.info(path).get("type") == "file":
            raise OSError(errno.EAGAIN, "it is there but cannot be opened") from None
        raise


def explain(uri: str, error: BaseException) -> RaybpeError:
    """The error of this project that stands for one of a filesystem."""
    if isinstance(error, RaybpeError):
        return error
    name = shown(uri)
    text = _without_keys(str(error).strip(), uri) or type(error).__name__
    number = getattr(error, "errno", None)
    if not is_local(uri) and (cut_off := _no_connection(error)):
        return TransientError(
            f"the host of {name} could not be reached: {_without_keys(cut_off, uri)}; check the "
            "network and the name of the host"
        )
    if not is_local(uri) and ((status := _status(error)) >= 500 or status == 429):
        return TransientError(f"access to {name} failed: the server answers {status}")
    if isinstance(error, FileNotFoundError) or number == errno.ENOENT:
        return InputError(f"{name} does not exist; check the path")
    if isinstance(error, PermissionError):
        return InputError(f"{name} may not be read: {text}; check permissions or credentials")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{name} is a folder where a file is needed")
    if number in _PASSING_ERRNOS or isinstance(error, (ConnectionError, TimeoutError)):
        return TransientError(f"access to {name} failed: {text}")
    if not is_local(uri):
        if _DENIED.search(text):
            return InputError(f"{name} may not be read: {text}; check credentials and region")
        if _ABSENT.search(text):
            return InputError(f"{name} does not exist: {text}")
        if _PASSING.search(text):
            return TransientError(f"access to {name} failed: {text}")
    return InputError(f"{name} cannot be read: {text}")


def _no_connection(error: BaseException) -> str | None:
    """Why there is no connection, if that is behind the error; fsspec calls it a missing file."""
    kinds: tuple[type[BaseException], ...] = (ConnectionError, *_known_errors(_CONNECTION_ERRORS))
    for at in _causes(error):
        if isinstance(at, kinds):
            text = str(at).strip().replace(" ssl:default", "")  # aiohttp says so of http:// too
            return text or type(at).__name__
    return None


def _status(error: BaseException) -> int:
    """The HTTP status behind the error, which fsspec calls a missing file as well; 0 if none."""
    for at in _causes(error):
        if isinstance(status := getattr(at, "status", None), int):
            return status
    return 0


def _causes(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    for _ in range(_CAUSES_LOOKED_AT):
        if at is None:
            return
        yield at
        at = at.__cause__ or at.__context__


def _known_errors(names: Iterable[tuple[str, str]]) -> list[type[BaseException]]:
    """Of errors by module and name those that something loaded can raise."""
    return [getattr(sys.modules[module], name) for module, name in names if module in sys.modules]


def _store_errors() -> tuple[type[BaseException], ...]:
    """What stores raise; not all errors of HTTP are an OSError."""
    return OSError, RuntimeError, *_known_errors(_STORE_ERRORS)


def attempt(uri: str, action: Callable[[], T]) -> T:
    """Call, again after trouble that passes, and raise the errors of this project.

    Raises:
        TransientError: still failing after `ATTEMPTS` attempts.
        InputError: a permanent failure.
    """
    pause = FIRST_PAUSE_SECONDS
    for left in reversed(range(ATTEMPTS)):
        try:
            return action()
        except _store_errors() as error:
            told = explain(uri, error)
            if left == 0 or not isinstance(told, TransientError):
                raise told from error
        time.sleep(pause)
        pause *= 2
    raise AssertionError  # the last attempt returned or raised


class RangeFile:
    """A file that is read at offsets, from several threads if need be.

    Attributes:
        uri: its path or URI, with options.
        size: bytes in the file when it was opened.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._fd = -1
        self._file: Any = None
        if is_local(uri):
            self._fd = attempt(uri, lambda: os.open(local_path(uri), os.O_RDONLY | os.O_CLOEXEC))
            self.size = os.fstat(self._fd).st_size
        else:
            self._file = open_input(uri)
            self.size = int(attempt(uri, self._file.size))

    def read_into(self, view: memoryview, offset: int) -> int:
        """Fill the view from an offset; returns the bytes read, 0 at the end of the file."""
        if self._fd >= 0:
            return attempt(self.uri, lambda: os.preadv(self._fd, [view], offset))
        data = attempt(self.uri, lambda: self._file.read_at(len(view), offset))
        view[: len(data)] = data
        return len(data)

    def fill(self, view: memoryview, offset: int) -> int:
        """Fill the whole view from an offset; returns fewer bytes only at the end of the file."""
        held = 0
        while held < len(view):
            length = self.read_into(view[held:], offset + held)
            if length == 0:
                break
            held += length
        return held

    def ended_early(self, position: int) -> ChangedInputError:
        """What to raise when there is no byte at a position that the file had when opened."""
        return ChangedInputError(
            f"{shown(self.uri)} ends at byte {position:,} but had {self.size:,} bytes when it was "
            "opened; start again when nothing writes to it"
        )

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> RangeFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
