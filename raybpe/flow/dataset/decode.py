"""Ids of a data set, of one shard, or typed by hand, for decoding."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from raybpe.errors import InputError, UsageError
from raybpe.flow.dataset.index import INDEX, UNFINISHED, load, shards_of
from raybpe.flow.dataset.shards import read_ids
from raybpe.tokenizer.tokenizer import Tokenizer


def ids_of(source: str, tokenizer: Tokenizer, dtype: str | None) -> Iterator[npt.NDArray[Any]]:
    """Pieces of ids, in order; between the rows of a table comes the end-of-text id.

    Args:
        source: `-` for ids as text on standard input, a folder with an index, a shard, or a
            text file of ids.
        dtype: of `.bin` shards; None for what the index beside them says, or what fits.

    Raises:
        InputError: something is missing or is no ids.
        UsageError: the ids are those of another tokenizer.
    """
    if source == "-":
        yield from _typed(sys.stdin.read(), "standard input")
        return
    path = Path(source)
    is_shard = path.suffix in (".npy", ".bin", ".parquet")
    index_file = str((path if path.is_dir() else path.parent) / INDEX)
    index = (load(index_file) if path.is_dir() or is_shard else None) or {}
    if dtype not in (None, "uint16", "uint32"):
        raise UsageError(f"--dtype {dtype!r} is not one of uint16, uint32")
    _check_tokenizer(source, index, tokenizer)
    kind = dtype or index.get("dtype") or ("uint16" if max(tokenizer.vocab) < 2**16 else "uint32")
    if not path.is_dir():
        if is_shard:
            yield from _shard(path, kind, index, True)
        else:
            try:
                yield from _typed(path.read_text(encoding="utf-8"), source)
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"cannot read {source} as ids: {error}") from error
        return
    if not index:
        unfinished = " (its encoding is not finished)" if (path / UNFINISHED).is_dir() else ""
        raise InputError(f"{source} has no {INDEX}, so it is no data set{unfinished}")
    for number, shard in enumerate(shards_of(index, index_file)):
        yield from _shard(path / shard.file, kind, index, number == 0, shard.tokens)


def _check_tokenizer(source: str, index: dict[str, Any], tokenizer: Tokenizer) -> None:
    """Refuse ids that another tokenizer made: what came out would be some other text."""
    made_by, given = index.get("tokenizer"), tokenizer.fingerprint()
    if made_by not in (None, given):
        raise UsageError(
            f"{source} was encoded with the tokenizer of fingerprint {made_by} "
            f"({index.get('vocab_size')} ids), and the one given is {given} "
            f"({tokenizer.vocab_size} ids); decode with the tokenizer that encoded it"
        )


def _shard(
    path: Path, dtype: str, index: dict[str, Any], first: bool, expected: int | None = None
) -> Iterator[npt.NDArray[Any]]:
    """The ids of a shard; refused at its end if they are not as many as expected."""
    found = 0
    between = index.get("eot_id") if path.suffix == ".parquet" else None
    for ids in read_ids(path, dtype):
        if between is not None and not first:
            yield np.array([between], np.uint32)
        first = False
        found += len(ids)
        yield ids
    if expected not in (None, found):
        raise InputError(f"{path} holds {found:,} ids, and the index says {expected:,}")


def _typed(text: str, name: str) -> Iterator[npt.NDArray[Any]]:
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
    for place, word in enumerate(words):
        if not word.isdecimal() or len(word) > 9:
            raise InputError(f"{name}: {word[:40]!r}, word {place + 1:,}, is no token id")
    yield np.array(words, np.int64)
