"""`raybpe.json`: what the other files of the folder are, and how they came about.

A JSON object. ``format`` is its version; ``tokenizer`` holds the pattern as text (which rank files
and GPT-2 files lack), the special tokens, sizes and the content fingerprint; ``files`` the size and
SHA-256 of every file; ``left_out`` the files that could not hold this tokenizer, with the reasons;
``verified`` what was loaded back and compared. Everything else is the run's own account.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import regex

from raybpe.errors import FormatError
from raybpe.formats.downstream import llama_cpp_name
from raybpe.formats.files import kind, read_json_object
from raybpe.formats.names import check_ids

if TYPE_CHECKING:
    from raybpe.tokenizer.tokenizer import Tokenizer

FILE_NAME = "raybpe.json"
FORMAT = 1


@dataclass(frozen=True)
class Described:
    """What a manifest says about the tokenizer beside it."""

    pattern: str
    special_tokens: dict[str, int]
    fingerprint: str


def render_manifest(
    tokenizer: Tokenizer,
    files: Mapping[str, bytes],
    left_out: Mapping[str, str],
    verified: Mapping[str, Any],
    account: Mapping[str, Any],
) -> bytes:
    """The file. `account` is what the run has to say; its keys come after the fixed ones."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "tokenizer": {
            "fingerprint": tokenizer.fingerprint(),
            "vocab_size": tokenizer.vocab_size,
            "merges": len(tokenizer.vocabulary.merge_ids),
            "pattern": tokenizer.pattern.regex,
            "pattern_name": tokenizer.pattern.name,
            "special_tokens": tokenizer.special_tokens,
            "ignore_merges": tokenizer.ignore_merges,
            "llama_cpp": llama_cpp_name(tokenizer.pattern),
            "regex": regex.__version__,
        },
        "files": {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        },
        "left_out": dict(left_out),
        "verified": dict(verified),
    }
    content.update((key, value) for key, value in account.items() if key not in content)
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def read_manifest(path: Path) -> Described:
    """Read what is needed to load the other files.

    Raises:
        FormatError: unreadable, damaged, or of a later version.
    """
    content = read_json_object(path)
    if content.get("format") != FORMAT:
        raise FormatError(
            f"{path} has the format {content.get('format')!r:.40}; this raybpe reads {FORMAT}"
        )
    about = content.get("tokenizer")
    if not isinstance(about, dict):
        raise FormatError(f"{path}: 'tokenizer' is {kind(about)} where an object is needed")
    pattern, mark = about.get("pattern"), about.get("fingerprint")
    special_tokens = about.get("special_tokens")
    if not isinstance(pattern, str) or not isinstance(mark, str):
        raise FormatError(f"{path}: the pattern or the fingerprint is not a text")
    if not isinstance(special_tokens, dict):
        raise FormatError(f"{path}: 'special_tokens' is {kind(special_tokens)}, not an object")
    check_ids(special_tokens, str(path))
    return Described(pattern, special_tokens, mark)
