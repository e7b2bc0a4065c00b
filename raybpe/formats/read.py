"""Reading a tokenizer from whatever people have: a folder or a file in any format we know.

Only the path given and the fixed names beside it are opened, whatever the files say. A folder that
raybpe wrote is read by its manifest, which holds the pattern as it was given; a `tokenizer.json`
beside it that has another pattern is refused.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from raybpe import given
from raybpe.errors import FormatError, RaybpeError
from raybpe.filesystems import is_local, local_path, shown
from raybpe.formats.files import collector_paused
from raybpe.formats.gpt2 import read_gpt2
from raybpe.formats.hf_read import read_hf
from raybpe.formats.manifest import FILE_NAME as MANIFEST
from raybpe.formats.manifest import Described, read_manifest
from raybpe.formats.parts import Parts
from raybpe.formats.places import copied
from raybpe.formats.ranks import PUBLISHED, parts_of_ranks, read_ranks

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern
    from raybpe.tokenizer.tokenizer import Tokenizer

_WANTED = "tokenizer.json, vocab.json with merges.txt, or one .tiktoken file"


def read_tokenizer(
    path: str | os.PathLike[str],
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Tokenizer:
    """Load a tokenizer.

    Args:
        path: a folder (as raybpe or transformers write it), `tokenizer.json`, a `.tiktoken` file,
            or `vocab.json` or `merges.txt` with the other beside it; or the URI of such, whose
            files are copied first.
        pattern: the pattern, for formats that do not hold it (.tiktoken, GPT-2 files); another
            than the one that a file or the `raybpe.json` beside it holds is refused. Without it,
            that of a `raybpe.json` beside the file, or of a published file of that name, or
            ``gpt2``, with a warning where a rank file leaves it open.
        special_tokens: text → id, for the same formats.

    Raises:
        FormatError: unreadable, damaged, or not byte-level BPE; names the file and the place.
    """
    name = given.path("path", path)
    if pattern is not None:
        given.text("pattern", pattern)
    ids = None if special_tokens is None else given.special_ids(special_tokens)
    if is_local(name):
        return _read_here(Path(local_path(name)), pattern, ids)
    with copied(name) as copy:
        try:
            return _read_here(copy, pattern, ids)
        except FormatError as error:
            there = shown(name).rstrip("/")
            raise FormatError(str(error).replace(str(copy), there)) from None


def _read_here(path: Path, pattern: str | None, special_tokens: dict[str, int] | None) -> Tokenizer:
    from raybpe.pretokenize import resolve_pattern
    from raybpe.tokenizer.tokenizer import Tokenizer

    file = _find(path)
    try:
        with collector_paused():
            parts = _read(file, pattern, special_tokens)
            resolved = parts.pattern if parts.pattern is not None else "gpt2"
            return Tokenizer(
                parts.vocab,
                parts.merges,
                parts.special_tokens,
                pattern=resolve_pattern(resolved) if isinstance(resolved, str) else resolved,
                ignore_merges=parts.ignore_merges,
            )
    except RaybpeError as error:
        if str(file) in str(error):
            raise
        raise FormatError(f"{file}: {error}") from None


def _find(path: Path) -> Path:
    """The file to read first."""
    if not path.is_dir():
        if not os.path.lexists(path):
            raise FormatError(f"there is no tokenizer at {path}: no such file or folder")
        return path
    for name in ("tokenizer.json", "vocab.json"):
        if (path / name).exists():
            return path / name
    ranks = sorted(path.glob("*.tiktoken"))[:2]
    if len(ranks) == 1:
        return ranks[0]
    found = "several .tiktoken files" if ranks else "none of them"
    raise FormatError(f"the folder {path} holds {found}; a tokenizer is {_WANTED}")


def _read(file: Path, pattern: str | None, special_tokens: dict[str, int] | None) -> Parts:
    beside = _manifest(file)
    _refuse_other_pattern(file, beside.pattern if beside else None, pattern)
    if file.name.endswith(".tiktoken"):
        return _read_ranks(file, pattern, special_tokens, beside)
    pair = _gpt2_pair(file)
    if pair is not None:
        if special_tokens is None and beside is not None:
            special_tokens = beside.special_tokens
        parts = read_gpt2(*pair, special_tokens)
        return _with_pattern(parts, pattern or (beside.pattern if beside else "gpt2"))
    if file.suffix != ".json":
        raise FormatError(f"{file} is no format that is known by its name: {_WANTED}")
    parts = read_hf(file, _expected_pattern(file, beside))
    _refuse_other_pattern(file, parts.pattern, pattern)
    return parts


def _read_ranks(
    file: Path,
    pattern: str | None,
    special_tokens: dict[str, int] | None,
    beside: Described | None,
) -> Parts:
    ranks = read_ranks(file)
    if beside is not None:
        published = (beside.pattern, beside.special_tokens)
    elif file.stem in PUBLISHED:
        published = PUBLISHED[file.stem]
    else:
        published = ("gpt2", {})
        if pattern is None:
            warnings.warn(
                f"{file} does not say its pattern; gpt2 is taken. Give pattern= if it is another, "
                "or the ids will be wrong.",
                stacklevel=_levels_to_caller(),
            )
    parts = parts_of_ranks(file, ranks, published[1] if special_tokens is None else special_tokens)
    return _with_pattern(parts, pattern or published[0])


def _refuse_other_pattern(file: Path, stored: Pattern | str | None, pattern: str | None) -> None:
    """Ids are right only with the pattern of the training."""
    from raybpe.pretokenize import resolve_pattern

    if stored is None or pattern is None:
        return
    made_with = resolve_pattern(stored).regex if isinstance(stored, str) else stored.regex
    if resolve_pattern(pattern).regex != made_with:
        raise FormatError(
            f"{file} was made with the pattern {made_with!r}, so pattern={pattern!r} would give "
            "other ids; leave it out"
        )


def _levels_to_caller() -> int:
    """The `stacklevel` at which a warning of the function that asks names the user's line."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("raybpe."):
        frame, levels = frame.f_back, levels + 1
    return levels


def _with_pattern(parts: Parts, pattern: str) -> Parts:
    return Parts(parts.vocab, parts.merges, parts.special_tokens, pattern, parts.ignore_merges)


def _manifest(file: Path) -> Described | None:
    path = file.parent / MANIFEST
    return read_manifest(path) if path.exists() else None


def _gpt2_pair(file: Path) -> tuple[Path, Path] | None:
    """The two files when `file` is one of such a pair."""
    for ending, other in (("vocab.json", "merges.txt"), ("merges.txt", "vocab.json")):
        if file.name.endswith(ending):
            partner = file.with_name(file.name.removesuffix(ending) + other)
            if not partner.exists():
                raise FormatError(f"{file} needs {partner.name} beside it, which is not there")
            return (file, partner) if ending == "vocab.json" else (partner, file)
    return None


def _expected_pattern(file: Path, beside: Described | None) -> Pattern | None:
    """The manifest's pattern, for the file that it describes."""
    from raybpe.pretokenize import resolve_pattern

    if beside is None or file.name != "tokenizer.json":
        return None
    return resolve_pattern(beside.pattern)
