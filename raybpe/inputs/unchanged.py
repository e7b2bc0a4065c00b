"""Whether local files are still those that were planned, once they were read.

A file that is written again at the same size shows only in its time of change, and a part may have
been read before or after that. Stores are not asked: it would be a request for each file.
"""

from __future__ import annotations

import os
from collections import defaultdict

from raybpe.errors import ChangedInputError
from raybpe.filesystems import is_local, local_version, shown
from raybpe.inputs.plan import Plan, Source


def check_unchanged(plan: Plan) -> None:
    """Look at every local file of a plan again; some seconds for a million files.

    Raises:
        ChangedInputError: its size or time of change is another one, or it is gone.
    """
    called = _called(plan)
    for source in plan.sources:
        if source.version and is_local(source.uri):
            paths = called[source.uri] if "\\" in source.uri else {source.uri}
            if len(paths) == 1:  # else files are shown alike, and which is which is not known
                _check(min(paths), source)


def _called(plan: Plan) -> dict[str, set[str]]:
    """Paths by how they are shown, where that differs: names that are not UTF-8."""
    called: dict[str, set[str]] = defaultdict(set)
    if any("\\" in source.uri for source in plan.sources):
        for chunk in plan.chunks:
            for part in chunk.parts:
                called[shown(part.uri)].add(part.uri)
    return called


def _check(path: str, source: Source) -> None:
    try:
        facts = os.stat(path)
    except OSError as error:
        raise ChangedInputError(
            f"{source.uri} is gone since the run was planned ({error.strerror}); run again with "
            "what there is now, when nothing writes to the inputs"
        ) from error
    size, version = facts.st_size, local_version(facts.st_mtime_ns)
    if size != source.size or (version != source.version and size):  # files of /proc are always new
        raise ChangedInputError(
            f"{source.uri} has {size:,} bytes of {version} but had {source.state} when the run was "
            "planned, so its counts may be of both; run again when nothing writes to it"
        )
