"""From what the user names to a list of files: folders walked, globs matched, twins dropped.

    a file       is read, whatever its name
    a folder     is walked; left out are names that begin with a dot and what is not text
                 (see `forms`), and a note says how many
    a glob       gives what a shell would give: `*` and `?` do not match a leading dot or a slash,
                 `**` matches folders, folders that match are walked
    a URI        the same in an object store, where `?` begins the options and is no wildcard
    -            standard input

A path that exists is never taken as a glob, so `data[1].txt` can be named. Symbolic links to files
are followed. Links to folders are followed where they are named or matched, but not inside a
folder or by `**`, so that no loop can arise; a note names them, and links to nothing.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
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
from raybpe.inputs.globs import Once, enters_folders, local_matches
from raybpe.inputs.plan import STDIN, UNKNOWN_SIZE

HIDDEN = "hidden"
LINK_TO_FOLDER = "a link to a folder"
LINK_TO_NOTHING = "a link to nothing"
_LINKS = (LINK_TO_FOLDER, LINK_TO_NOTHING)
_LINKS_SHOWN = 3


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
        links: list[str] = []
        for found, reason in _expand(name):
            if reason is not None:
                skipped[found.uri] = reason
                if reason in _LINKS:
                    links.append(found.uri)
                continue
            taken += 1
            if found.uri in files:
                twice.append((found.uri, named[found.uri], name))
            files.setdefault(found.uri, found)
            named.setdefault(found.uri, name)
        if not taken and links:
            raise InputError(f"no text in {shown(name)}: {_links_note(links)}")
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
    given = {os.path.abspath(os.path.expanduser(local_path(n))) for n in inputs if is_local(n)}
    links = [uri for uri, why in skipped.items() if why in _LINKS and uri not in given]
    if links:
        notes.append(_links_note(links))
    left_out = {uri: why for uri, why in skipped.items() if uri not in files and why not in _LINKS}
    if left_out:
        uri, why = min(left_out.items())
        notes.append(
            f"{len(left_out):,} file(s) in folders are not read, for example {shown(uri)} ({why})"
        )
    return Findings(
        tuple(found for _, found in sorted(files.items())),
        tuple(notes),
    )


def _links_note(links: Sequence[str]) -> str:
    first = ", ".join(map(shown, sorted(links)[:_LINKS_SHOWN]))
    more = ", …" if len(links) > _LINKS_SHOWN else ""
    return (
        f"{len(links):,} link(s) to folders or to nothing are not followed: {first}{more}; name "
        "as inputs those that lead to other text"
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
        yield from map(_look_at, _walk(path))
    elif os.path.isfile(path):
        yield _local(path), None
    elif os.path.exists(path):
        raise InputError(
            f"{name} is a pipe or device, which cannot be read in parts; name - as the input and "
            "send the text to standard input"
        )
    elif os.path.islink(path):
        raise InputError(
            f"{shown(name)} is a dangling link: nothing is at {shown(os.readlink(path))!r}, or the "
            "link leads to itself; mend the link or name the file"
        )
    elif glob.has_magic(name):
        yield from _matched(name, path)
    else:
        raise InputError(f"{name} does not exist; check the path")


def _matched(name: str, pattern: str) -> Iterator[tuple[Found, str | None]]:
    matches = local_matches(pattern)
    if not matches:
        raise InputError(f"the glob {name!r} matches nothing; check the folder and the quotes")
    once = Once()
    folders = []
    for match in matches:
        if os.path.isdir(match):
            folders.append(match)
        elif once.first(match):
            yield (_local(match), None) if os.path.isfile(match) else _look_at(match)
    for folder in folders:
        if enters_folders(pattern) and os.path.islink(folder):
            yield Found(folder, 0), LINK_TO_FOLDER
        elif not name.endswith("**"):  # which already gives what is below
            yield from map(_look_at, filter(once.first, _walk(folder)))


def _local(path: str) -> Found:
    facts = os.stat(path)
    return Found(path, facts.st_size, local_version(facts.st_mtime_ns))


def _walk(folder: str) -> Iterator[str]:
    """Paths of what is in a folder and those below it, folders left out and links to them not."""

    def refuse(error: OSError) -> None:
        raise InputError(f"the folder {error.filename} cannot be read: {error.strerror}")

    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from filter(os.path.islink, (os.path.join(parent, name) for name in folders))
        yield from (os.path.join(parent, name) for name in sorted(names))


def _look_at(path: str) -> tuple[Found, str | None]:
    """Say of what a folder holds whether to read it or why not."""
    if os.path.isfile(path):
        return _choose(_local(path))
    if os.path.basename(path).startswith("."):
        return Found(path, 0), HIDDEN
    if os.path.isdir(path):
        return Found(path, 0), LINK_TO_FOLDER
    return Found(path, 0), LINK_TO_NOTHING if os.path.islink(path) else "a pipe or a device"


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
                yield _choose(found)
        return
    info = attempt(uri, lambda: filesystem.get_file_info(path))
    if info.type == FileType.File:
        yield Found(uri, int(info.size), store_version(uri, filesystem, info)), None
    elif info.type == FileType.Directory:
        inside = [f for f in list_below() if not _hidden(os.path.dirname(f.uri[len(base) :]))]
        yield from map(_choose, inside)
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


def _choose(found: Found) -> tuple[Found, str | None]:
    """Say of a file of a folder whether to read it or why not."""
    name = name_of(found.uri)
    if os.path.basename(name).startswith("."):
        return found, HIDDEN
    if suffix(name) in BINARY_SUFFIXES:
        return found, f"binary: {suffix(name)}"
    if not form_of(name).known and found.size and _has_nul(found):
        return found, "binary: a NUL byte near its start"
    return found, None


def _has_nul(found: Found) -> bool:
    head = bytearray(min(SNIFF_BYTES, found.size))
    with RangeFile(found.uri) as file:
        length = file.read_into(memoryview(head), 0)
    return 0 in head[:length]
