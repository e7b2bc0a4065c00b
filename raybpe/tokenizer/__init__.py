"""Text to ids and back with a trained vocabulary."""

from raybpe.tokenizer.tokenizer import Tokenizer
from raybpe.tokenizer.vocabulary import Vocabulary

__all__ = ["Tokenizer", "Vocabulary"]
