"""Writing tokenizers: everything into one folder, or one format to a path; all or nothing.

Files are rendered in memory, which finds out what a format cannot hold before anything is written.
They go to a temporary folder in or beside the target, are loaded back and compared there, and only
then renamed into place, one by one, the manifest last. If anything fails before that, what was in
the target is untouched; nothing is left beside it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raybpe.errors import FormatError, OutputError
from raybpe.formats.files import collector_paused
from raybpe.formats.gpt2 import render_merges, render_vocab
from raybpe.formats.hf import pre_tokenizer, render_config, render_hf, render_special_tokens_map
from raybpe.formats.listing import render_listing
from raybpe.formats.manifest import FILE_NAME as MANIFEST
from raybpe.formats.manifest import render_manifest
from raybpe.formats.places import local_target
from raybpe.formats.ranks import fancy_pattern, render_ranks
from raybpe.formats.source import Source
from raybpe.formats.verify import Verification, verify

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern
    from raybpe.tokenizer.tokenizer import Tokenizer

Renderer = Callable[[Source], bytes]

_HF: dict[str, Renderer] = {"tokenizer.json": render_hf}
_TRANSFORMERS: dict[str, Renderer] = {
    **_HF,
    "tokenizer_config.json": render_config,
    "special_tokens_map.json": render_special_tokens_map,
}
_GPT2: dict[str, Renderer] = {"vocab.json": render_vocab, "merges.txt": render_merges}
_TIKTOKEN: dict[str, Renderer] = {"tokenizer.tiktoken": render_ranks}
EXPORTS: dict[str, dict[str, Renderer]] = {
    "hf": _HF,
    "transformers": _TRANSFORMERS,
    "tiktoken": _TIKTOKEN,
    "gpt2": _GPT2,
    "cs336": {
        "vocab.json": render_vocab,
        "merges.txt": lambda source: render_merges(source, header=False),
    },
}
_FOLDER = (_TRANSFORMERS, _GPT2, _TIKTOKEN)  # each of these is written whole or left out


# Every file that a folder may get.
FILES = (*(name for group in _FOLDER for name in group), "merges.tsv", "raybpe.json")


@dataclass(frozen=True)
class Rendered:
    """The content of a folder.

    Attributes:
        files: name → content.
        left_out: name → why the format cannot hold this tokenizer.
    """

    files: dict[str, bytes]
    left_out: dict[str, str]


def render(tokenizer: Tokenizer, merge_counts: Sequence[int] | None = None) -> Rendered:
    """Everything that `write_tokenizer` writes except the manifest.

    Raises:
        FormatError: neither tokenizer.json nor the GPT-2 files can hold the tokenizer.
    """
    source = Source(tokenizer)
    files: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    for group in _FOLDER:
        try:
            files.update({name: renderer(source) for name, renderer in group.items()})
        except FormatError as error:
            left_out.update(dict.fromkeys(group, str(error)))
    if "vocab.json" in left_out and "tokenizer.json" in left_out:
        raise FormatError(f"no format can hold this tokenizer: {left_out['vocab.json']}")
    files["merges.tsv"] = render_listing(source, merge_counts)
    return Rendered(files, left_out)


def files_left_out(pattern: Pattern) -> dict[str, str]:
    """Files that no tokenizer with this pattern can have, and why: to be said before training."""
    left_out: dict[str, str] = {}
    for group, check in ((_TRANSFORMERS, pre_tokenizer), (_TIKTOKEN, fancy_pattern)):
        try:
            check(pattern)
        except FormatError as error:
            left_out.update(dict.fromkeys(group, str(error)))
    return left_out


def write_tokenizer(
    tokenizer: Tokenizer,
    folder: str | os.PathLike[str],
    *,
    merge_counts: Sequence[int] | None = None,
    manifest: Mapping[str, Any] | None = None,
    sample: Sequence[str] | None = (),
) -> Verification:
    """Write every format into a folder, load each back and compare.

    Args:
        tokenizer: what to write.
        folder: of this machine; made if it is not there. Other files in it stay.
        merge_counts: count of each pair when it was merged, for merges.tsv.
        manifest: the run's account, for raybpe.json.
        sample: texts on which ids are compared, besides built-in ones; None loads and compares
            nothing.

    Returns:
        What was compared, and the files that were left out and why.

    Raises:
        UsageError: the folder is not on this machine.
        FormatError: no format can hold the tokenizer.
        VerifyError: a loader gives other ids.
        OutputError: the folder cannot be written.
    """
    target = local_target(folder)
    with collector_paused(), _temporary_beside(target) as temporary:
        rendered = render(tokenizer, merge_counts)
        _put(temporary, rendered.files)
        found = Verification() if sample is None else verify(temporary, tokenizer, sample)
        found = found.with_left_out(rendered.left_out)
        account = render_manifest(
            tokenizer, rendered.files, rendered.left_out, found.as_dict(), manifest or {}
        )
        _put(temporary, {MANIFEST: account})
        _move(temporary, target, (*rendered.files, MANIFEST), tuple(rendered.left_out))
    return found


def export_tokenizer(
    tokenizer: Tokenizer, format: str, output: str | os.PathLike[str], sample: Sequence[str] = ()
) -> list[str]:
    """Write one format, load it back and compare.

    Args:
        tokenizer: what to write.
        format: a key of `EXPORTS`.
        output: a folder; or, for the formats of one file, a file name with its suffix.
        sample: texts on which ids are compared, besides built-in ones.

    Returns:
        The paths written.

    Raises:
        UsageError: the output is not on this machine.
        FormatError: the format cannot hold the tokenizer.
        VerifyError: a loader gives other ids.
        OutputError: the output cannot be written.
    """
    source = Source(tokenizer)
    files = {name: renderer(source) for name, renderer in EXPORTS[format].items()}
    target = local_target(output)
    only = next(iter(files)) if len(files) == 1 else None
    if only is None or target.suffix != Path(only).suffix or target.is_dir():
        with _temporary_beside(target) as temporary:
            _put(temporary, files)
            verify(temporary, tokenizer, sample)
            _move(temporary, target, tuple(files), ())
        return [str(target / name) for name in files]
    with _temporary_beside(target) as temporary:
        _put(temporary, files)
        verify(temporary, tokenizer, sample)
        try:
            os.replace(temporary / only, target)
        except OSError as error:
            raise _output_error(target, error) from None
    return [str(target)]


@contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    """A hidden folder on the same file system, removed at the end whatever happens."""
    # A folder may be a mount, so what goes into it begins in it.
    parent = target.absolute() if target.is_dir() else target.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=parent))
    except OSError as error:
        raise _output_error(target, error) from None
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        try:
            (folder / name).write_bytes(data)
        except OSError as error:
            raise _output_error(folder / name, error) from None


def _move(temporary: Path, target: Path, names: Sequence[str], stale: Sequence[str]) -> None:
    """Move files into place, in order; then remove what an earlier write left of `stale`."""
    for name in names:
        if (target / name).is_dir():
            raise OutputError(
                f"cannot write {target / name}: it is a folder; what was there before is untouched"
            )
    try:
        target.mkdir(exist_ok=True)
        for name in names:
            os.replace(temporary / name, target / name)
        for name in stale:
            (target / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot move all files into {target}: {error.strerror or error}; some of them may be "
            "new already, so write again"
        ) from None


def _output_error(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot write {path}: {error.strerror or error}; what was there before is untouched"
    )
