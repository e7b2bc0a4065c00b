"""Everyone's tokenizer files: written, read, and verified with the libraries that load them."""

from raybpe.formats.read import read_tokenizer
from raybpe.formats.verify import Verification, verify
from raybpe.formats.write import EXPORTS, export_tokenizer, render, write_tokenizer

__all__ = [
    "EXPORTS",
    "Verification",
    "export_tokenizer",
    "read_tokenizer",
    "render",
    "verify",
    "write_tokenizer",
]
