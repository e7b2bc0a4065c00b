"""The end of the story: write the tokenizer in every format, after comparing what loads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from raybpe.config import RunOptions

if TYPE_CHECKING:
    from raybpe.flow.executor import Executor
    from raybpe.flow.manifest import Manifest
    from raybpe.flow.steps import Merged
    from raybpe.tokenizer.tokenizer import Tokenizer


def export(
    tokenizer: Tokenizer,
    merged: Merged,
    samples: Sequence[str],
    options: RunOptions,
    executor: Executor,
    manifest: Manifest,
) -> None:
    """Write the tokenizer to the output.

    Raises:
        VerifyError: a library gives other ids than our own on the samples; nothing is replaced.
        OutputError: the output cannot be written; nothing is replaced.
    """
    from raybpe.formats import write_tokenizer

    assert options.output is not None
    with executor.progress.stage("write", None, "files"):
        write_tokenizer(
            tokenizer,
            options.output,
            merge_counts=merged.counts,
            manifest=manifest.as_dict(),
            sample=samples if options.verify else None,
        )


def load_ahead(verify: bool) -> threading.Thread:
    """Import what writing and verifying need, while kernels that release the GIL run."""

    def load() -> None:
        import raybpe.formats  # noqa: F401

        if verify:
            with suppress(ImportError):
                import tokenizers  # noqa: F401
            with suppress(ImportError):
                import tiktoken  # noqa: F401

    thread = threading.Thread(target=load, name="raybpe-imports", daemon=True)
    thread.start()
    return thread
