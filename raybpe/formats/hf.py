"""Hugging Face's `tokenizer.json`, written: for `tokenizers` and for `transformers`.

One JSON object. Merges are pairs, so that no token is ambiguous; special tokens are in the
vocabulary and in `added_tokens`, matched longest first by Hugging Face as here. The pattern
``gpt2`` is its ByteLevel pre-tokenizer; every other pattern is a Split, in Oniguruma's syntax,
followed by ByteLevel without a regex of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from raybpe.formats.dialects import translate
from raybpe.formats.source import Source

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern
    from raybpe.tokenizer.tokenizer import Tokenizer

END_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eot|>")


def render_hf(source: Source) -> bytes:
    """The file.

    Raises:
        FormatError: two tokens would have one name, or Oniguruma reads the pattern differently.
    """
    tokenizer = source.tokenizer
    parts: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(text, i) for text, i in tokenizer.special_tokens.items()],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer(tokenizer.pattern),
        "post_processor": None,
        "decoder": _byte_level(use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": tokenizer.ignore_merges,
            "vocab": source.names,
            "merges": list(zip(*source.merge_names, strict=True)),
        },
    }
    lines = [orjson.dumps(key) + b": " + orjson.dumps(value) for key, value in parts.items()]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def render_config(source: Source) -> bytes:
    """`tokenizer_config.json`: what `transformers` reads beside `tokenizer.json`."""
    tokenizer = source.tokenizer
    config: dict[str, Any] = {
        "added_tokens_decoder": {
            str(number): {key: value for key, value in _added(text, number).items() if key != "id"}
            for text, number in tokenizer.special_tokens.items()
        },
        "clean_up_tokenization_spaces": False,
        "model_max_length": 10**30,  # transformers' own way to say: no limit
        "tokenizer_class": "PreTrainedTokenizerFast",
        **_roles(tokenizer),
    }
    return _pretty(config)


def render_special_tokens_map(source: Source) -> bytes:
    """`special_tokens_map.json`: which special token plays which part."""
    return _pretty(_roles(source.tokenizer))


def pre_tokenizer(pattern: Pattern) -> dict[str, Any]:
    """The `pre_tokenizer` object for a pattern."""
    if pattern.name == "gpt2":
        return _byte_level(use_regex=True)
    split = {
        "type": "Split",
        "pattern": {"Regex": translate(pattern.regex, "regex", "oniguruma")},
        "behavior": "Isolated",
        "invert": False,
    }
    return {"type": "Sequence", "pretokenizers": [split, _byte_level(use_regex=False)]}


def _byte_level(*, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _added(text: str, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _roles(tokenizer: Tokenizer) -> dict[str, Any]:
    """The end-of-text token where one is named as usual; all others are additional."""
    texts = list(tokenizer.special_tokens)
    end = next((text for text in END_TOKENS if text in texts), None)
    roles: dict[str, Any] = {} if end is None else {"eos_token": end}
    others = [text for text in texts if text != end]
    if others:
        roles["additional_special_tokens"] = others
    return roles


def _pretty(value: dict[str, Any]) -> bytes:
    import json  # orjson refuses 10**30

    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
