"""``run.json``: what an unfinished run counts and how, and what another run has otherwise.

Keys: ``format``, ``config``, ``inputs`` (a list of ``uri``, without keys and signatures, and
``state``: size and version), ``documents``, ``field``, ``chunk_bytes``, and ``plan``, the plan's
fingerprint. A link that was signed again is the same input.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from raybpe.config import RunOptions
from raybpe.errors import UsageError
from raybpe.filesystems import shown
from raybpe.flow.differences import refuse_differences

if TYPE_CHECKING:
    from raybpe.inputs import Plan

RUN_FILE = "run.json"
FORMAT = 2


def record(
    settings: Mapping[str, Any], plan: Plan, options: RunOptions, chunk_bytes: int
) -> dict[str, Any]:
    """The content of the file, as it is when read back."""
    run = {
        "format": FORMAT,
        "config": settings,
        "inputs": [{"uri": source.uri, "state": source.state} for source in plan.sources],
        "documents": options.documents,
        "field": options.field,
        "chunk_bytes": chunk_bytes,
        "plan": plan.fingerprint(),
    }
    return dict(json.loads(json.dumps(run)))  # tuples become lists


def read_record(root: str) -> dict[str, Any] | None:
    """What the file of a run directory holds; None if there is none.

    Raises:
        UsageError: it is damaged, or of another version.
    """
    from raybpe import storage

    uri = storage.join(root, RUN_FILE)
    if not storage.exists(uri):
        return None
    try:
        run = json.loads(storage.read(uri).to_pybytes())
        if run["format"] != FORMAT:
            raise ValueError(
                f"its format is {run['format']!r}, and this version of raybpe reads {FORMAT}"
            )
        if not isinstance(run["chunk_bytes"], int):
            raise ValueError("its chunk size is no number")
        _by_name(run)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{shown(uri)} cannot be read as the record of an unfinished run ({error}); start over "
            "with --no-resume, or give another --output"
        ) from error
    return dict(run)


def refuse_other_run(earlier: Mapping[str, Any], now: Mapping[str, Any], output: str) -> None:
    """Refuse to go on with a run that was another one.

    Raises:
        UsageError: something differs; it is named with both values.
    """
    held = f"{shown(output)} has an unfinished run"
    refuse_differences(_by_name(earlier), _by_name(now), held, "throw it away")


def _by_name(run: Mapping[str, Any]) -> dict[str, Any]:
    return {**run, "inputs": dict(_inputs(run["inputs"]))}


def _inputs(entries: list[dict[str, str]]) -> Iterator[tuple[str, str]]:
    """Names and states; links that differ in what is not shown are numbered, in their order."""
    seen: Counter[str] = Counter()
    for entry in entries:
        uri = entry["uri"]
        seen[uri] += 1
        number = f" (number {seen[uri]} of that name)" if seen[uri] > 1 else ""
        yield f"{uri}{number}", entry["state"]
