"""From what people type to the configuration dataclasses: sizes, presets, patterns.

The command line and the Python functions both go through here, so an option means the same in
both. Imports the pattern compiler (`regex`) only when a pattern is resolved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, cast

from raybpe import given
from raybpe.config import (
    DEFAULT_CHUNK_BYTES,
    DEFAULT_SPECIAL_TOKENS,
    CountConfig,
    InvalidUtf8,
    RunOptions,
    TrainConfig,
    apply_preset,
    check_in_order,
)
from raybpe.errors import UsageError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

CHOICES: dict[str, tuple[str, ...]] = {
    "tie_break": ("lowest-ids", "greatest-bytes"),
    "byte_order": ("gpt2", "value"),
    "special_tokens_at": ("start", "end"),
    "invalid_utf8": ("error", "replace", "skip", "keep"),
    "executor": ("auto", "local", "ray"),
    "progress": ("auto", "json", "none"),
    "documents": ("text", "lines"),
}


def parse_size(text: str | int) -> int:
    """Bytes in a size such as 64MB (decimal), 64MiB (binary), 4k or 7.

    >>> parse_size("64MB"), parse_size("1 KiB"), parse_size("7B")
    (64000000, 1024, 7)
    """
    if not isinstance(text, str):
        return given.whole_number("chunk_size", text)
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"cannot read the size {text!r}; write for example 64MB, 1MiB, 4k or 512")
    number, unit, binary = match.groups()
    size = float(number) * (1024 if binary else 1000) ** _POWER[unit.lower()]
    if size < 1 or size > 2**62:
        raise UsageError(f"the size {text!r} is not between 1 byte and 4 EB")
    return int(size)


def _check_choices(**chosen: Any) -> None:
    for name, value in chosen.items():
        if given.text(name, value) not in CHOICES[name]:
            raise UsageError(
                f"{name.replace('_', '-')} {value!r} is not one of {', '.join(CHOICES[name])}"
            )


def count_config(
    *,
    pattern: str = "gpt2",
    special_tokens: Sequence[str] | None = DEFAULT_SPECIAL_TOKENS,
    invalid_utf8: str = "error",
    max_pretoken_length: int | None = None,
) -> CountConfig:
    """Resolve the pattern by name or as a regex; no special tokens for None."""
    from raybpe.pretokenize.parse import check
    from raybpe.pretokenize.patterns import resolve_pattern

    _check_choices(invalid_utf8=invalid_utf8)
    check_in_order(special_tokens)
    special_tokens = [] if special_tokens is None else given.special_tokens(special_tokens)
    if max_pretoken_length is not None:
        max_pretoken_length = given.whole_number("max_pretoken_length", max_pretoken_length)
    resolved = resolve_pattern(pattern)
    check(resolved.regex)
    return CountConfig(
        pattern=resolved.regex,
        pattern_name=resolved.name,
        special_tokens=tuple(special_tokens),
        invalid_utf8=cast(InvalidUtf8, invalid_utf8),
        max_pretoken_length=max_pretoken_length,
    )


def train_config(
    vocab_size: int,
    counting: CountConfig,
    *,
    compat: str = "hf",
    tie_break: str | None = None,
    byte_order: str | None = None,
    special_tokens_at: str | None = None,
    min_frequency: int | None = None,
    max_token_length: int | None = None,
    min_pretoken_count: int = 1,
    strict: bool = False,
) -> TrainConfig:
    """Apply the preset; choices that are given win over it."""
    chosen = {
        "tie_break": tie_break,
        "byte_order": byte_order,
        "special_tokens_at": special_tokens_at,
    }
    _check_choices(**{name: value for name, value in chosen.items() if value is not None})
    if min_frequency is not None:
        min_frequency = given.whole_number("min_frequency", min_frequency)
    if max_token_length is not None:
        max_token_length = given.whole_number("max_token_length", max_token_length)
    choices = apply_preset(
        given.text("compat", compat),
        min_frequency=min_frequency,
        **chosen,
    )
    return TrainConfig(
        vocab_size=given.whole_number("vocab_size", vocab_size),
        counting=counting,
        max_token_length=max_token_length,
        min_pretoken_count=given.whole_number("min_pretoken_count", min_pretoken_count),
        strict=given.flag("strict", strict),
        **choices,
    )


def run_options(
    *,
    executor: str = "auto",
    address: str | None = None,
    workers: int | None = None,
    chunk_size: str | int = DEFAULT_CHUNK_BYTES,
    fan_in: int = 8,
    output: str | os.PathLike[str] | None = None,
    resume: bool = True,
    verify: bool = True,
    progress: str = "auto",
    documents: str = "text",
    field: str = "text",
) -> RunOptions:
    """Options of a run, with sizes as people write them."""
    _check_choices(executor=executor, progress=progress, documents=documents)
    if address is not None:
        given.text("address", address)
    if address is not None and executor == "local":
        raise UsageError("--address names a Ray cluster, but --executor is local; drop one of them")
    if output is not None:
        output = given.path("output", output)
    if output == "":
        raise UsageError("the output is empty; name a folder")
    return RunOptions(
        executor=executor,  # type: ignore[arg-type]
        address=address,
        workers=None if workers is None else given.whole_number("workers", workers),
        chunk_bytes=parse_size(chunk_size),
        fan_in=given.whole_number("fan_in", fan_in),
        output=output,
        resume=given.flag("resume", resume),
        verify=given.flag("verify", verify),
        progress=progress,  # type: ignore[arg-type]
        documents=documents,  # type: ignore[arg-type]
        field=given.text("field", field),
    )
