"""Everyone's tokenizer files: written, read, and verified with the libraries that load them."""

from raybpe.formats.read import read_tokenizer
from raybpe.formats.write import EXPORTS, export_tokenizer, files_left_out, render, write_tokenizer

__all__ = [
    "EXPORTS",
    "export_tokenizer",
    "files_left_out",
    "read_tokenizer",
    "render",
    "write_tokenizer",
]
