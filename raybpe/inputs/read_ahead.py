"""Read a remote file from one offset to another, with several requests under way.

An object store answers one request at tens of megabytes a second after tens of milliseconds; a
core counts ten times as fast. So `REQUESTS` pieces are fetched at once, in order. Each is tried
again by itself after trouble that passes. Memory: `REQUESTS` × `REQUEST_BYTES` = 32 MB.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from io import RawIOBase
from typing import Any

from raybpe.filesystems import RangeFile

REQUESTS = 4
REQUEST_BYTES = 8 * 2**20


class ReadAhead(RawIOBase):
    """A readable binary stream over [start, stop) of a file."""

    def __init__(self, file: RangeFile, start: int, stop: int) -> None:
        self._file = file
        self._next = start
        self._stop = stop
        self._pool = ThreadPoolExecutor(REQUESTS, thread_name_prefix="raybpe-read")
        self._pending: deque[Future[memoryview]] = deque()
        self._held = memoryview(b"")

    def readinto(self, view: Any) -> int:
        """Fill a view at least in part; 0 at the end."""
        view = memoryview(view).cast("B")
        self._ask()
        if not self._held and self._pending:
            self._held = self._pending.popleft().result()
            self._ask()
        length = min(len(view), len(self._held))
        view[:length] = self._held[:length]
        self._held = self._held[length:]
        return length

    def readable(self) -> bool:
        """Yes."""
        return True

    def close(self) -> None:
        """Drop what was asked for ahead; the file stays open."""
        if not self.closed:
            self._pool.shutdown(wait=True, cancel_futures=True)
        super().close()

    def _ask(self) -> None:
        while len(self._pending) < REQUESTS and self._next < self._stop:
            start = self._next
            self._next = min(start + REQUEST_BYTES, self._stop)
            self._pending.append(self._pool.submit(self._fetch, start, self._next - start))

    def _fetch(self, start: int, length: int) -> memoryview:
        view = memoryview(bytearray(length))
        held = self._file.fill(view, start)
        if held < length:
            raise self._file.ended_early(start + held)
        return view
