"""Looking at tokenizers: audits, comparisons, what programs downstream know of them."""
