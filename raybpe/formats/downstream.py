"""Which patterns the programs that run tokenizers know by name.

Loaders of `tokenizer.json` run any pattern that is written in it. llama.cpp does not: GGUF files
name one of a fixed list of pre-tokenizers. Its converter finds the name by hashing the ids of a
test text, so it knows published vocabularies only, and stops at a new one; the name below is what
to add to its list (`convert_hf_to_gguf_update.py`), and None means there is none to add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern

LLAMA_CPP_NAMES = {
    "gpt2": "gpt-2",
    "cl100k": "dbrx",
    "o200k": "gpt-4o",
    "llama3": "llama-bpe",
    "qwen2": "qwen2",
    "deepseek-v3": "deepseek-v3",
    "starcoder": "starcoder",
}


def llama_cpp_name(pattern: Pattern) -> str | None:
    """llama.cpp's name of the pre-tokenizer with this pattern, or None."""
    return LLAMA_CPP_NAMES.get(pattern.name or "")
