"""Look at tokenizers: audit one, compare two."""
