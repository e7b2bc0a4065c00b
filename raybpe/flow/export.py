"""The end of the story: write the tokenizer in every format, after comparing what loads."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from raybpe.config import RunOptions, TrainConfig
from raybpe.filesystems import is_local, local_path
from raybpe.flow.warm import warm_exporting

if TYPE_CHECKING:
    from raybpe.flow.manifest import Manifest
    from raybpe.flow.progress import Progress
    from raybpe.flow.steps import Merged
    from raybpe.formats.verify import Verification
    from raybpe.tokenizer.tokenizer import Tokenizer


def export(
    tokenizer: Tokenizer,
    merged: Merged,
    samples: Sequence[str],
    options: RunOptions,
    manifest: Manifest,
) -> None:
    """Write the tokenizer to the output; for an object store, write here and upload.

    Raises:
        VerifyError: a library gives other ids than our own on the samples; nothing is replaced.
        OutputError: the output cannot be written; nothing is replaced.
    """
    output = options.output
    assert output is not None
    if is_local(output):
        _write(Path(local_path(output)), tokenizer, merged, samples, options, manifest)
        return
    from raybpe import storage
    from raybpe.formats.manifest import FILE_NAME

    with tempfile.TemporaryDirectory(prefix="raybpe-") as name:
        folder = Path(name, "tokenizer")
        found = _write(folder, tokenizer, merged, samples, options, manifest)
        paths = sorted(path for path in folder.iterdir() if path.name != FILE_NAME)
        for path in paths:
            storage.write(storage.join(output, path.name), path.read_bytes())
        for name in found.left_out:  # an earlier run may have written it
            storage.delete(storage.join(output, name))
        # Last, since it says what the others are.
        storage.write(storage.join(output, FILE_NAME), (folder / FILE_NAME).read_bytes())


def _write(
    folder: Path,
    tokenizer: Tokenizer,
    merged: Merged,
    samples: Sequence[str],
    options: RunOptions,
    manifest: Manifest,
) -> Verification:
    from raybpe.formats import write_tokenizer
    from raybpe.formats.write import FILES

    progress = manifest.executor.progress
    if options.verify and manifest.config is not None:
        warm_exporting(manifest.config, progress.note)
    with progress.stage("write", None, "files") as stage:
        found = write_tokenizer(
            tokenizer,
            folder,
            merge_counts=merged.counts.tolist(),
            manifest=manifest.as_dict(),
            sample=samples if options.verify else None,
        )
        stage.reach(sum((folder / name).exists() for name in FILES))
    for file, reason in found.left_out.items():
        progress.note(f"{file} is left out: {reason}")
    if found.skipped:
        names = " and ".join(found.skipped)
        progress.note(f"ids were not compared with {names}: pip install 'raybpe[verify]'")
    for library, difference in found.known_differences.items():
        progress.note(f"{library}: {difference}")
    return found


def check_output(config: TrainConfig, options: RunOptions, progress: Progress) -> None:
    """Find out before the work whether its result can be written, and say what cannot.

    Raises:
        OutputError: nothing can be written to the output.
    """
    if options.output is None:
        return
    from raybpe import storage

    storage.check_writable(options.output)
    counting = config.counting
    if counting.pattern_name is None:  # every format holds those with a name
        from raybpe.formats import files_left_out
        from raybpe.pretokenize import Pattern

        left_out = files_left_out(Pattern(None, counting.pattern))
        for reason in dict.fromkeys(left_out.values()):
            names = ", ".join(name for name, why in left_out.items() if why == reason)
            progress.note(f"{names} will be left out: {reason}")
