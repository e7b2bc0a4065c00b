"""How a command differs from the one that began what its output holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from raybpe.errors import UsageError

SHOWN = 12
SHOWN_CHARACTERS = 200  # of a value


def refuse_differences(
    before: Mapping[str, Any], now: Mapping[str, Any], held: str, over: str
) -> None:
    """Refuse to go on with other settings or inputs.

    Args:
        before: what the record in the output says.
        now: the same for this command, as it would be read back from JSON.
        held: the output and what it has, such as `out has an unfinished run`.
        over: what --no-resume does with it, such as `throw it away`.

    Raises:
        UsageError: something differs; it lists what.
    """
    found = list(_differences(_flat(before), _flat(now)))
    if not found:
        return
    listed = "; ".join(found[:SHOWN])
    if len(found) > SHOWN:
        listed += f"; and {len(found) - SHOWN:,} more"
    raise UsageError(
        f"{held} that differs: {listed}. Give the same settings and inputs to continue it, "
        f"--no-resume to {over}, or another --output"
    )


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Sentences such as `vocab size was 1000, is 2000`."""
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"{name} is gone"
        elif name not in old:
            yield f"{name} is new"
        elif old[name] != new[name]:
            yield f"{name} was {_short(old[name])}, is {_short(new[name])}"


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """One value per setting and per input, so that one changed input among many is seen."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if key == "plan":
            continue  # follows from the others
        if key == "inputs" and isinstance(value, dict):
            flat.update({f"input {uri}": state for uri, state in value.items()})
        elif isinstance(value, dict):
            flat.update(_flat(value))
        else:
            flat[key.replace("_", " ")] = value
    return flat


def _short(value: Any) -> str:
    text = repr(value)
    cut = SHOWN_CHARACTERS
    return text if len(text) <= cut else f"{text[:cut]}… ({len(text):,} characters)"
