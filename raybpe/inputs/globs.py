"""Match globs on this machine, such that no loop of links is followed and no file comes twice.

`**` stands for a folder and those below it without a leading dot; it does not enter links, as in
a shell. `*` and names do enter them. Python's `glob` lets `**` enter links, so that a link to a
folder above it gives every file some forty times, and two such links never end.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

ANY_FOLDERS = "**"


def enters_folders(pattern: str) -> bool:
    """Whether some part of a pattern is `**`."""
    return ANY_FOLDERS in pattern.split("/")


def local_matches(pattern: str) -> list[str]:
    """Absolute paths that match an absolute pattern, sorted; links to nothing as well."""
    return sorted(set(_below("/", pattern.lstrip("/"))))


def _below(root: str, pattern: str) -> Iterator[str]:
    parts = pattern.split("/")
    place = parts.index(ANY_FOLDERS) if ANY_FOLDERS in parts else len(parts)
    head, rest = "/".join(parts[:place]), "/".join(parts[place + 1 :])
    found = glob.glob(head, root_dir=root) if head else [""]
    bases = [os.path.join(root, path) if path else root for path in found]
    if place == len(parts):
        yield from bases
        return
    for base in bases:
        for folder, inner, names in os.walk(base):
            links = [name for name in inner if os.path.islink(os.path.join(folder, name))]
            inner[:] = [name for name in inner if not name.startswith(".")]
            if rest:
                yield from _below(folder, rest)
            else:
                yield folder
                shown = (name for name in (*names, *links) if not name.startswith("."))
                yield from (os.path.join(folder, name) for name in shown)


class Once:
    """Tells files apart that several ways lead to, through links to folders."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._seen: set[tuple[str, str]] = set()

    def first(self, path: str) -> bool:
        """Whether no other path to this file was asked for before."""
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        key = self._folders[folder], name
        if key in self._seen:
            return False
        self._seen.add(key)
        return True
