"""Members of tar archives from start to end, such that no damage goes unnoticed.

Python's `tarfile` takes a header that it cannot read, after the first one, for the end, and what
follows the end for nothing. Here an archive ends with zero blocks: writers make two and fill up to
10,240 bytes. One is enough when nothing follows it; an archive without any has lost its end. After
two another archive may follow (`cat a.tar b.tar`, which GNU tar reads with `--ignore-zeros`), and
anything else is an error.

Memory: a buffer, and one header; `tarfile` is kept from remembering the members.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import IO, Any, cast

from raybpe.errors import InputError
from raybpe.inputs.streams import Stream

BLOCK_BYTES = tarfile.BLOCKSIZE
_BUFFER_BYTES = 2**16


class Tape:
    """A stream as `tarfile` wants a file; it knows its place and goes forward only."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._held = b""
        self._at = 0
        self._passed = 0  # bytes before those that are held

    def tell(self) -> int:
        """Bytes that were read or passed over."""
        return self._passed + self._at

    def read(self, size: int) -> bytes:
        """So many bytes; fewer only at the end."""
        end = self._at + size
        if end > len(self._held):
            held = self._held[self._at :]
            self._passed += self._at
            self._held = held + self._stream.read(max(size - len(held), _BUFFER_BYTES))
            self._at, end = 0, size
        block = self._held[self._at : end]
        self._at += len(block)
        return block

    def seek(self, place: int) -> int:
        """Pass over what lies before a place, or up to the end."""
        if place < self.tell():
            raise tarfile.ReadError("the size of a member is below zero")
        while left := place - self.tell():
            if not self.read(min(left, _BUFFER_BYTES)):
                break
        return self.tell()

    def ends_here(self) -> bool:
        """Whether nothing is left but zeros, having read one zero block; passes over the zeros."""
        zero_blocks = 1
        while block := self.read(BLOCK_BYTES):
            if block.count(0) < len(block):
                self._at -= len(block)
                if zero_blocks < 2:
                    raise self.damage("a header is all zeros", self.tell() - BLOCK_BYTES)
                return False
            zero_blocks += 1
        return True

    def damage(self, reason: object, place: int | None = None) -> InputError:
        """What to raise when the archive cannot be read on, here or at another place."""
        place = self.tell() if place is None else place
        return InputError(
            f"{self._stream.name} is cut off or corrupt at byte {place:,} of the archive: "
            f"{reason}; copy it again"
        )


class _Header(tarfile.TarInfo):
    """A member whose header is there and right, whatever its place in the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _Header:
        tape = cast(Tape, archive.fileobj)
        place = tape.tell()
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except (tarfile.HeaderError, ValueError) as error:
            reason = "it ends without its end marker" if tape.tell() == place else error
            raise tape.damage(reason, place) from error


def members(tape: Tape) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """Members and, of those that are files, what to read them with before the next is taken.

    Raises:
        InputError: the archive is cut off or corrupt.
        tarfile.TarError: the same within a member, as reading it does.
    """
    more = True
    while more:
        with tarfile.TarFile(fileobj=cast(Any, tape), tarinfo=_Header) as archive:
            remembered = cast(Any, archive).members
            while (member := archive.next()) is not None:
                remembered.clear()
                yield member, archive.extractfile(member) if member.isfile() else None
        more = not tape.ends_here()
