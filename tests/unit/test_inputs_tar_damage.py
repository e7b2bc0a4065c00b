"""Tar archives that are cut off, corrupt, or several in one file: nothing is lost in silence."""

import gzip
import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from input_forms import SpaceCutter, tar, texts, write

from raybpe.errors import InputError
from raybpe.inputs import plan_inputs, read_blocks

THREE = {f"{name}.txt": name.encode() * 700 for name in "abc"}  # a header and two blocks each
DOCUMENTS = [*THREE.values()]
MEMBER = 512 * 3
PACKERS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def read(folder: Path, data: bytes, packer: str = "") -> list[bytes]:
    path = write(folder, f"t.tar{packer}", PACKERS[packer](data))
    return texts(plan_inputs([path], chunk_bytes=10**6))


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: flipped(data, MEMBER + 20),
        lambda data: data[: MEMBER + 300],
        lambda data: data[:MEMBER],
        lambda data: data[:MEMBER] + bytes(512) + data[MEMBER + 512 :],
        lambda data: data[:MEMBER] + bytes(300),
        lambda data: data[: 2 * MEMBER] + bytes(512) + data[2 * MEMBER + 512 :],
    ],
    ids=["a flipped bit", "cut in a header", "cut between members", "zeroed", "short", "last"],
)
def test_a_header_that_cannot_be_read_is_no_end(tmp_path: Path, packer: str, damage) -> None:
    data = damage(tar(THREE))
    place = MEMBER if data[MEMBER : 2 * MEMBER] != tar(THREE)[MEMBER : 2 * MEMBER] else 2 * MEMBER
    message = rf"t\.tar{packer} is cut off or corrupt at byte {place:,} of .*; copy it again"
    with pytest.raises(InputError, match=message):
        read(tmp_path, data, packer)


@pytest.mark.parametrize("cut", [512 + 100, 2 * MEMBER - 100])
def test_a_cut_within_a_member_says_where(tmp_path: Path, cut: int) -> None:
    with pytest.raises(InputError, match=f"is cut off or corrupt at byte {cut:,} of "):
        read(tmp_path, tar(THREE)[:cut])


def test_an_archive_may_end_as_writers_end_it(tmp_path: Path) -> None:
    whole = tar(THREE)
    assert len(whole) == 10_240
    for end in (512, 700, 1024, 1500, 20_000):
        assert read(tmp_path, whole[: 3 * MEMBER] + bytes(end)) == DOCUMENTS
    for end in (0, 511):
        with pytest.raises(InputError, match="is cut off or corrupt at byte 4,608 of "):
            read(tmp_path, whole[: 3 * MEMBER] + bytes(end))


@pytest.mark.parametrize("packer", PACKERS)
def test_archives_one_after_the_other_are_all_read(tmp_path: Path, packer: str) -> None:
    other = tar({"d.txt": b"d" * 512})
    data = tar(THREE) + other[:2048] + other
    assert read(tmp_path, data, packer) == [*DOCUMENTS, b"d" * 512, b"d" * 512]
    packed = b"".join(map(PACKERS[packer], (tar(THREE), tar(THREE))))
    path = write(tmp_path, f"two.tar{packer}", packed)
    assert texts(plan_inputs([path], chunk_bytes=10**6)) == 2 * DOCUMENTS


def test_what_follows_the_end_and_is_no_archive_is_refused(tmp_path: Path) -> None:
    for rest in (b"\x01", b"text" * 1000, flipped(tar(THREE), 3), tar(THREE)[:MEMBER]):
        with pytest.raises(InputError, match=r"is cut off or corrupt at byte 1\d,\d\d\d of "):
            read(tmp_path, tar(THREE) + rest)


def test_long_names_and_archives_in_archives(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    for style in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        with tarfile.open(fileobj=buffer, mode="w", format=style) as archive:
            for name, data in ((f"{'long' * 80}.txt", b"x"), ("in.tar", tar(THREE))):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    data = buffer.getvalue()
    assert read(tmp_path, data) == 2 * [b"x", *DOCUMENTS]
    with pytest.raises(InputError, match=r"t\.tar is cut off or corrupt at byte 0 of "):
        read(tmp_path, data[:1024] + bytes(512) + data[1536:])  # after a long name
    place = data.index(b"b" * 700) - 500  # in the header of a member of the inner archive
    with pytest.raises(InputError, match=r"t\.tar: in\.tar is .* at byte 1,536 of "):
        read(tmp_path, flipped(data, place))


def test_members_are_not_remembered(tmp_path: Path) -> None:
    path = write(tmp_path, "t.tar", tar({f"{number}.txt": b"a" for number in range(6000)}))
    plan = plan_inputs([path], chunk_bytes=10**6)
    tracemalloc.start()
    try:
        for chunk in plan.chunks:
            for _ in read_blocks(chunk, SpaceCutter()):
                pass
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
