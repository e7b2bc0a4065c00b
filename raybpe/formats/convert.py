"""Objects of other libraries made from a tokenizer: `tokenizers`, `tiktoken`, `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from raybpe.errors import UsageError
from raybpe.formats.hf import END_TOKENS, render_hf
from raybpe.formats.ranks import fancy_pattern, ranks_of
from raybpe.formats.source import Source

if TYPE_CHECKING:
    from raybpe.tokenizer.tokenizer import Tokenizer


def to_hf(tokenizer: Tokenizer) -> Any:
    """A `tokenizers.Tokenizer`.

    Raises:
        FormatError: it cannot hold the tokenizer.
        UsageError: `tokenizers` is not installed.
    """
    try:
        from tokenizers import Tokenizer as HuggingFace
    except ImportError:
        raise _missing("tokenizers") from None
    return HuggingFace.from_buffer(render_hf(Source(tokenizer)))


def to_tiktoken(tokenizer: Tokenizer, ranks: Mapping[bytes, int] | None = None) -> Any:
    """A `tiktoken.Encoding`.

    Args:
        tokenizer: what to convert.
        ranks: the mergeable ranks, when they were read from a file.

    Raises:
        FormatError: it cannot hold the tokenizer.
        UsageError: `tiktoken` is not installed.
    """
    try:
        import tiktoken
    except ImportError:
        raise _missing("tiktoken") from None
    return tiktoken.Encoding(
        name=tokenizer.pattern.name or "raybpe",
        pat_str=fancy_pattern(tokenizer.pattern),
        mergeable_ranks=dict(ranks_of(tokenizer) if ranks is None else ranks),
        special_tokens=tokenizer.special_tokens,
    )


def to_transformers(tokenizer: Tokenizer) -> Any:
    """A fast tokenizer of `transformers`.

    Raises:
        FormatError: it cannot hold the tokenizer.
        UsageError: `transformers` is not installed.
    """
    try:
        from transformers import PreTrainedTokenizerFast
    except ImportError:
        raise _missing("transformers") from None
    texts = list(tokenizer.special_tokens)
    end = next((text for text in END_TOKENS if text in texts), None)
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=to_hf(tokenizer),
        eos_token=end,
        additional_special_tokens=[text for text in texts if text != end],
        clean_up_tokenization_spaces=False,
    )


def _missing(library: str) -> UsageError:
    return UsageError(f"{library} is not installed; install it with: pip install {library}")
