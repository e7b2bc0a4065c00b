"""From what the user names to a list of files: folders walked, globs matched, twins dropped.

    a file       is read, whatever its name
    a folder     is walked; left out are names that begin with a dot and what is not text
                 (see `forms`), and a note says how many
    a glob       gives what a shell would give: `*` and `?` do not match a leading dot or a slash,
                 `**` matches folders, folders that match are walked
    a URI        the same in an object store, where `?` begins the options and is no wildcard
    -            standard input

A path that exists is never taken as a glob, so `data[1].txt` can be named. Symbolic links to files
are followed, links to folders are not walked, so that no loop can arise.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from raybpe.errors import InputError
from raybpe.filesystems import (
    RangeFile,
    attempt,
    is_local,
    local_path,
    local_version,
    name_of,
    resolve,
    scheme_of,
    shown,
    split_query,
    store_version,
)
from raybpe.inputs.forms import BINARY_SUFFIXES, SNIFF_BYTES, form_of, suffix
from raybpe.inputs.plan import STDIN, UNKNOWN_SIZE


@dataclass(frozen=True)
class Found:
    """A file to read: absolute path or URI with options, bytes, and what changes with it."""

    uri: str
    size: int
    version: str = ""


@dataclass(frozen=True)
class Findings:
    """Files to read, and sentences for the user."""

    files: tuple[Found, ...]
    notes: tuple[str, ...]


def find_files(inputs: Sequence[str]) -> Findings:
    """Files that the inputs name, sorted by URI.

    Raises:
        InputError: an input is missing, a glob matches nothing, or a folder holds no text.
    """
    files: dict[str, Found] = {}
    named: dict[str, str] = {}
    skipped: dict[str, str] = {}
    twice: list[tuple[str, str, str]] = []
    for name in inputs:
        taken = 0
        for found, reason in _expand(name):
            if reason is not None:
                skipped[found.uri] = reason
                continue
            taken += 1
            if found.uri in files:
                twice.append((found.uri, named[found.uri], name))
            files.setdefault(found.uri, found)
            named.setdefault(found.uri, name)
        if not taken:
            raise InputError(
                f"no text in {shown(name)}: the folder is empty or holds only hidden and binary "
                "files; name files or a glob to read them whatever they are"
            )
    notes = []
    if twice:
        uri, first, second = twice[0]
        notes.append(
            f"{len(twice):,} file(s) are named more than once and read once, for example "
            f"{shown(uri)} by {shown(first)!r} and {shown(second)!r}; add counts twice to "
            "weigh a file double"
        )
    left_out = {uri: why for uri, why in skipped.items() if uri not in files}
    if left_out:
        uri, why = min(left_out.items())
        notes.append(
            f"{len(left_out):,} file(s) in folders are not read, for example {shown(uri)} ({why})"
        )
    return Findings(
        tuple(found for _, found in sorted(files.items())),
        tuple(notes),
    )


def _expand(name: str) -> Iterator[tuple[Found, str | None]]:
    if name == STDIN:
        yield Found(STDIN, UNKNOWN_SIZE), None
    elif not name:
        raise InputError("an input is an empty name; give a file, a folder, a glob or a URI")
    elif is_local(name):
        yield from _expand_local(local_path(name))
    elif scheme_of(name) in ("http", "https"):
        with RangeFile(name) as file:
            size = file.size
        filesystem, path = resolve(name)
        info = attempt(name, lambda: filesystem.get_file_info(path))
        yield Found(name, size, store_version(name, filesystem, info)), None
    else:
        yield from _expand_remote(name)


def _expand_local(name: str) -> Iterator[tuple[Found, str | None]]:
    path = os.path.abspath(os.path.expanduser(name))
    if os.path.isdir(path):
        yield from _choose(_walk(path))
    elif os.path.isfile(path):
        yield _local(path), None
    elif os.path.exists(path):
        raise InputError(
            f"{name} is a pipe or device, which cannot be read in parts; name - as the input and "
            "send the text to standard input"
        )
    elif glob.has_magic(name):
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise InputError(f"the glob {name!r} matches nothing; check the folder and the quotes")
        files = {match for match in matches if not os.path.isdir(match)}
        for match in matches:
            if match in files and not os.path.isfile(match):
                yield Found(match, 0), "a pipe, a device, or a link to nothing"
            elif match in files:
                yield _local(match), None
            elif not name.endswith("**"):  # which already gives what is below
                yield from _choose(found for found in _walk(match) if found.uri not in files)
    else:
        raise InputError(f"{name} does not exist; check the path")


def _local(path: str) -> Found:
    facts = os.stat(path)
    return Found(path, facts.st_size, local_version(facts.st_mtime_ns))


def _walk(folder: str) -> Iterator[Found]:
    def refuse(error: OSError) -> None:
        raise InputError(f"the folder {error.filename} cannot be read: {error.strerror}")

    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(parent, name)
            if os.path.isfile(path):  # not sockets, pipes, or links to nothing
                yield _local(path)


def _expand_remote(uri: str) -> Iterator[tuple[Found, str | None]]:
    from pyarrow.fs import FileSelector, FileType

    head, query = split_query(uri)
    fixed = re.split(r"[*\[]", head, maxsplit=1)[0]
    magic = fixed != head
    base = fixed.rpartition("/")[0] if magic else head.rstrip("/")
    filesystem, path = resolve(base + query)
    path = path.rstrip("/")

    def list_below() -> list[Found]:
        infos = attempt(uri, lambda: filesystem.get_file_info(FileSelector(path, recursive=True)))
        below = [
            Found(
                base + f"/{info.path}".split(path, 1)[1] + query,
                int(info.size),
                store_version(uri, filesystem, info),
            )
            for info in infos
            if info.type == FileType.File
        ]
        return sorted(below, key=lambda found: found.uri)

    if magic:
        pattern = _glob_regex(head)
        # The second group is what lies below a folder that matches.
        shapes = re.compile(f"({pattern})|{pattern}/(.+)")
        matches = [(f, shapes.fullmatch(f.uri.removesuffix(query))) for f in list_below()]
        if not any(match for _, match in matches):
            raise InputError(f"the glob {shown(uri)!r} matches nothing; check the bucket and path")
        for found, match in matches:
            if match and match[1]:
                yield found, None
            elif match and not _hidden(os.path.dirname(match[2])):
                yield from _choose([found])
        return
    info = attempt(uri, lambda: filesystem.get_file_info(path))
    if info.type == FileType.File:
        yield Found(uri, int(info.size), store_version(uri, filesystem, info)), None
    elif info.type == FileType.Directory:
        inside = [f for f in list_below() if not _hidden(os.path.dirname(f.uri[len(base) :]))]
        yield from _choose(inside)
    else:
        raise InputError(f"{shown(uri)} does not exist; check the bucket, the path and the region")


def _glob_regex(pattern: str) -> str:
    """Regex of a glob in which `*` stays within a folder and `**` does not."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\[[^\]]+\])", pattern)
    name, folders = r"(?:(?<!/)|(?!\.))[^/]*", r"(?:(?!\.)[^/]+/)*"
    regexes = {"**/": folders, "**": folders + name, "*": name}
    return "".join(
        regexes.get(piece)
        or (
            piece.replace("[!", "[^")
            if piece[:1] == "[" and piece[-1:] == "]"
            else re.escape(piece)
        )
        for piece in pieces
        if piece
    )


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _choose(files: Iterable[Found]) -> Iterator[tuple[Found, str | None]]:
    """Say of each file of a folder whether to read it or why not."""
    for found in files:
        name = name_of(found.uri)
        if os.path.basename(name).startswith("."):
            yield found, "hidden"
        elif suffix(name) in BINARY_SUFFIXES:
            yield found, f"binary: {suffix(name)}"
        elif not form_of(name).known and found.size and _has_nul(found):
            yield found, "binary: a NUL byte near its start"
        else:
            yield found, None


def _has_nul(found: Found) -> bool:
    head = bytearray(min(SNIFF_BYTES, found.size))
    with RangeFile(found.uri) as file:
        length = file.read_into(memoryview(head), 0)
    return 0 in head[:length]
