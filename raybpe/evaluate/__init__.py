"""Looking at tokenizers: audits and comparisons."""
