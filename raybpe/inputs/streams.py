"""Streams of bytes, taken out of their compression as they are read.

Zstandard goes through Arrow; frames with windows over 128 MB (`zstd --long=31`, as in some web
dumps), gzip (after which Arrow refuses padding), bzip2 (of which it refuses empty members) and xz
through their own libraries. Files of several members or
frames are read to their end; anything after the last one, and a file that is cut off, is an
error. Memory: the compression's window plus a few megabytes, whatever the ratio.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from io import BufferedReader
from typing import Any, Protocol

import pyarrow as pa
import zstandard

from raybpe.errors import InputError
from raybpe.filesystems import RangeFile, explain, is_local, open_input, shown
from raybpe.inputs.forms import Compression
from raybpe.inputs.read_ahead import ReadAhead

LARGEST_ARROW_WINDOW = 2**27
LARGEST_WINDOW = 2**31
_CORRUPT = (lzma.LZMAError, zlib.error, zstandard.ZstdError, pa.ArrowException)
_HEADER_BYTES = 18  # a Zstandard frame header has no more
_SLICE_BYTES = 2**14  # bounds what one step of a decompressor without a limit can give
_SLICE_TEXT_BYTES = 2**20
_ZSTANDARD_BYTES = 2**8
_GZIP = 16  # has zlib read gzip's header and check its sum


class Readable(Protocol):
    """What is needed of a binary file."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; empty at the end."""


def open_stream(file: RangeFile, compression: Compression | None) -> Stream:
    """A file from start to end, decompressed. Closing the stream leaves the file open.

    Raises:
        InputError: it cannot be read.
    """
    head = bytearray(_HEADER_BYTES)
    length = file.fill(memoryview(head), 0) if compression == "zst" else 0
    raw: Any
    if is_local(file.uri):
        raw = open_input(file.uri)
    else:
        raw = ReadAhead(file, 0, file.size)
    return Stream(raw, compression, file.uri, shown(file.uri), bytes(head[:length]))


def open_member(raw: BufferedReader, compression: Compression | None, name: str) -> Stream:
    """The same for a file inside a file that is already open."""
    return Stream(raw, compression, name, name, raw.peek(_HEADER_BYTES)[:_HEADER_BYTES])


class Stream:
    """A decompressed stream whose errors name the file.

    Attributes:
        name: how messages name it.
    """

    def __init__(
        self, raw: Any, compression: Compression | None, uri: str, name: str, head: bytes
    ) -> None:
        self.name = name
        self._uri = uri
        self._raw = raw
        self._start = b""
        self._inner = self._guarded(lambda: _decompressor(raw, compression, head))

    def read_into(self, view: memoryview) -> int:
        """Fill a view at least in part; 0 at the end."""
        if self._start:
            length = min(len(view), len(self._start))
            view[:length] = self._start[:length]
            self._start = self._start[length:]
            return length
        return int(self._guarded(lambda: self._inner.readinto(view)))

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, or all that is left."""
        if size < 0:
            blocks = []
            while block := self.read(2**20):
                blocks.append(block)
            return b"".join(blocks)
        buffer = bytearray(size)
        held = 0
        with memoryview(buffer) as view:
            while held < size:
                length = self.read_into(view[held:])
                if not length:
                    break
                held += length
        return bytes(buffer[:held])

    def peek(self, size: int) -> bytes:
        """The next bytes, which will be read again."""
        self._start = self.read(size)
        return self._start

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _guarded(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except EOFError as error:
            raise InputError(f"{self.name} is cut off: {error}; copy it again") from error
        except (OSError, *_CORRUPT) as error:
            text = str(error)
            if "Truncated compressed stream" in text:
                raise InputError(f"{self.name} is cut off: {text}; copy it again") from error
            if isinstance(error, _CORRUPT) or "failed: " in text or "Invalid data" in text:
                raise InputError(f"{self.name} is corrupt: {text}; copy it again") from error
            raise explain(self._uri, error) from error


def _decompressor(raw: Any, compression: Compression | None, head: bytes) -> Any:
    if compression is None:
        return raw
    if compression == "xz":
        return _Frames(raw, lzma.LZMADecompressor)
    if compression == "bz2":
        return _Frames(raw, bz2.BZ2Decompressor)
    if compression == "gz":
        return _Frames(raw, _GzipMember)
    if compression == "zst" and _window(head) > LARGEST_ARROW_WINDOW:
        return _Frames(raw, _ZstandardFrame)
    return pa.CompressedInputStream(raw, "zstd")


def _window(head: bytes) -> int:
    """Bytes of history that a Zstandard frame needs; 0 where this is no such frame."""
    try:
        return int(zstandard.get_frame_parameters(head).window_size)
    except zstandard.ZstdError:
        return 0


class _GzipMember:
    """A member of a gzip file, as `_Frames` takes it."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(zlib.MAX_WBITS | _GZIP)

    def decompress(self, packed: bytes, most: int) -> bytes:
        """At most so many bytes from what was left and the next packed bytes."""
        return self._member.decompress(self._member.unconsumed_tail + packed, most)

    @property
    def needs_input(self) -> bool:
        return not self._member.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data


class _ZstandardFrame:
    """A frame with a long window; its library takes no limit, so it is fed little at a time.

    A block of 4 packed bytes can be 128 kB of text, so a step gives 8 MB at most.
    """

    def __init__(self) -> None:
        unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        self._frame = unpacker.decompressobj()
        self._packed = memoryview(b"")

    def decompress(self, packed: bytes, _: int) -> bytes:
        """What the next packed bytes give; with none it goes on with those it has."""
        if packed:
            self._packed = memoryview(packed)
        text = b""
        while self._packed and not text and not self._frame.eof:
            text = self._frame.decompress(self._packed[:_ZSTANDARD_BYTES])
            self._packed = self._packed[_ZSTANDARD_BYTES:]
        return text

    @property
    def needs_input(self) -> bool:
        return not self._packed

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data) + self._packed.tobytes()


class _Frames:
    """Decompress frame after frame, with zeros allowed between and after them, as padding."""

    def __init__(self, raw: Readable, new: Callable[[], Any]) -> None:
        self._raw = raw
        self._new = new
        self._frame: Any = None
        self._packed = b""
        self._text = b""

    def readinto(self, view: memoryview) -> int:
        """Fill a view at least in part; 0 at the end."""
        while not self._text:
            if self._frame is None:
                self._packed = self._packed.lstrip(b"\0")
            elif self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
                continue
            if not self._packed and (self._frame is None or self._frame.needs_input):
                self._packed = self._raw.read(_SLICE_BYTES)
                if not self._packed and self._frame is not None:
                    raise EOFError("its last frame is not complete")
                if not self._packed:
                    return 0
                continue
            if self._frame is None:
                self._frame = self._new()
            self._text = self._frame.decompress(self._packed, _SLICE_TEXT_BYTES)
            self._packed = b""
        length = min(len(view), len(self._text))
        view[:length] = self._text[:length]
        self._text = self._text[length:]
        return length
