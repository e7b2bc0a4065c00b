"""Small tokenizers for the tests of formats, made by the textbook trainer."""

from functools import lru_cache

from raybpe.merges.byte_order import byte_ids
from raybpe.pretokenize import PATTERNS
from raybpe.reference import count_pretokens, train, vocabulary
from raybpe.tokenizer.tokenizer import Tokenizer

TEXT = (
    "It's the end of the world as we know it, and I feel fine. The tokenizer's tokens are here, "
    "there and everywhere; they'll be counted 1234567 times.  Two  spaces\n\n\tand tabs\r\n"
    "Grüße aus München, naïve café. 日本語のテキストと漢字。日本語です。 नमस्ते नमस्ते दुनिया "
    "Привет мир, привет! def f(x): return {'a': x[1:], 'b': -x**2}  # 100% 2024-01-02\n"
)
SPECIALS = ("<|endoftext|>", "<t1>", "<t12>")


@lru_cache(maxsize=32)
def trained(
    pattern: str = "gpt2",
    merges: int = 120,
    specials: tuple[str, ...] = SPECIALS,
    at: str = "start",
    order: str = "gpt2",
) -> Tokenizer:
    """A tokenizer of TEXT."""
    ids = byte_ids(order).tolist()  # type: ignore[arg-type]
    counts = count_pretokens([TEXT], PATTERNS.get(pattern, pattern))
    learned, _ = train(counts, merges, byte_ids=ids)
    vocab = vocabulary(learned, specials, byte_ids=ids, special_tokens_at=at)  # type: ignore[arg-type]
    return Tokenizer(vocab, learned, list(specials), pattern=pattern)


def of_merges(merges: list[tuple[bytes, bytes]], **options: object) -> Tokenizer:
    """256 bytes by value, then the merges in order."""
    return Tokenizer(vocabulary(merges), merges, **options)  # type: ignore[arg-type]
