r"""Byte-pair encoding in plain Python: the page to learn it from, and the oracle of the tests.

Nothing here is fast and nothing is hidden. It needs `regex` and no other part of raybpe; what the
fast kernels do must equal, merge for merge and id for id, what this page does.

The algorithm in one paragraph. Text is split into *pretokens* (about words); how often each
occurs is all that training looks at. Every pretoken starts as a sequence of single bytes. Then,
again and again: count every pair of neighbouring tokens, take the most frequent pair, and replace
it by a new token wherever it occurs. The list of merges, in order, is the tokenizer. Encoding new
text replays the merges: of all neighbouring pairs, the one learned earliest goes first.

A worked example, the textbook's: one pretoken, seen once, ``aaabdaaabac``.

>>> merges, counts = train({b"aaabdaaabac": 1}, 3)
>>> merges
[(b'a', b'a'), (b'a', b'b'), (b'aa', b'ab')]
>>> counts
[4, 2, 2]

``aa`` occurs four times, since windows may overlap (twice in each ``aaa``), and replacing it from
the left gives ``aa a b d aa a b a c``. Now ``aa a`` and ``a b`` occur twice each: a tie, which
goes to the pair of lowest ids, and single bytes have lower ids than anything merged.

And ``banana bandana``, with the other tie rule, the greatest pair of byte strings:

>>> merges, counts = train({b"banana": 1, b"bandana": 1}, 4, tie_break="greatest-bytes")
>>> merges
[(b'a', b'n'), (b'b', b'an'), (b'an', b'a'), (b'd', b'ana')]
>>> counts
[4, 2, 2, 1]

Two rules of which pair wins a tie, both exact:

* ``lowest-ids``: the smallest (left id, right id), as Hugging Face `tokenizers` does;
* ``greatest-bytes``: the greatest (left bytes, right bytes), as Stanford's CS336 asks.

**No two tokens have the same bytes.** Within any stretch of text that ends up as one token, no
merge ever crossed its edges, so that stretch was merged exactly as if it stood alone; and standing
alone, one byte string is merged in one way only. A length limit changes which merges are chosen,
not this. So a merged token needs no check for being new, here or in the kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, TypeVar

import regex

TieBreak = Literal["lowest-ids", "greatest-bytes"]
Symbol = TypeVar("Symbol", int, str)

GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
END_OF_WORD = "</w>"


# --- text to counts -----------------------------------------------------------------------------


def split_on_special_tokens(text: str, special_tokens: Sequence[str]) -> list[str]:
    """Cut out special tokens, the longest where several start at one place; they stay as items.

    >>> split_on_special_tokens("ab<|end|>c", ["<|end|>"])
    ['ab', '<|end|>', 'c']
    """
    if not special_tokens:
        return [text] if text else []
    longest_first = sorted(special_tokens, key=len, reverse=True)
    pieces = regex.split("(" + "|".join(map(regex.escape, longest_first)) + ")", text)
    return [piece for piece in pieces if piece]


def pretokenize(text: str, pattern: str, special_tokens: Sequence[str] = ()) -> list[str]:
    """Pretokens of a text in order, without the special tokens and whatever does not match.

    Each piece between special tokens is a text of its own, so no pretoken reaches across one.

    >>> pretokenize("don't  stop<|end|> now", GPT2_PATTERN, ["<|end|>"])
    ['don', "'t", ' ', ' stop', ' now']
    """
    compiled = regex.compile(pattern)
    special = set(special_tokens)
    return [
        match.group()
        for piece in split_on_special_tokens(text, special_tokens)
        if piece not in special
        for match in compiled.finditer(piece)
        if match.group()
    ]


def count_pretokens(
    documents: Iterable[str], pattern: str = GPT2_PATTERN, special_tokens: Sequence[str] = ()
) -> dict[bytes, int]:
    """How often each pretoken occurs; no pretoken spans two documents.

    >>> count_pretokens(["to be or not to be"])
    {b'to': 1, b' be': 2, b' or': 1, b' not': 1, b' to': 1}
    """
    counts: Counter[bytes] = Counter()
    for document in documents:
        counts.update(word.encode() for word in pretokenize(document, pattern, special_tokens))
    return dict(counts)


# --- one merge ----------------------------------------------------------------------------------


def count_pairs(words: Iterable[tuple[Sequence[Symbol], int]]) -> Counter[tuple[Symbol, Symbol]]:
    """Weighted count of every neighbouring pair; overlapping ones all count.

    >>> count_pairs([("aaab", 2)])
    Counter({('a', 'a'): 4, ('a', 'b'): 2})
    """
    pairs: Counter[tuple[Symbol, Symbol]] = Counter()
    for symbols, count in words:
        for left, right in pairwise(symbols):
            pairs[left, right] += count
    return pairs


def merge_pair(symbols: Sequence[Symbol], pair: tuple[Symbol, Symbol], new: Symbol) -> list[Symbol]:
    """Replace a pair by a new symbol, from left to right, without overlap.

    >>> merge_pair([1, 1, 1, 2], (1, 1), 9)
    [9, 1, 2]
    """
    merged: list[Symbol] = []
    i = 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            merged.append(new)
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return merged


# --- training -----------------------------------------------------------------------------------


def train(
    counts: Mapping[bytes, int],
    max_merges: int,
    *,
    tie_break: TieBreak = "lowest-ids",
    byte_ids: Sequence[int] = range(256),
    min_frequency: int = 1,
    max_token_length: int | None = None,
) -> tuple[list[tuple[bytes, bytes]], list[int]]:
    """Learn merges from pretoken counts.

    Args:
        counts: how often each pretoken occurs. Empty pretokens and zero counts are allowed.
        max_merges: stop after this many; sooner when no pair is left.
        tie_break: which of several pairs with the highest count is merged.
        byte_ids: id of each byte value, a permutation of 0..255; it only matters for ties. Merge i
            makes id 256 + i.
        min_frequency: a pair that occurs fewer times is never merged.
        max_token_length: a longer token (in bytes) is never made; a pair that would make one
            stays unmerged and others go on.

    Returns:
        the merges as (left bytes, right bytes) in order, and each pair's count when it was merged.

    >>> train({b"abc": 3, b"ab": 2, b"bc": 1}, 10)
    ([(b'a', b'b'), (b'ab', b'c'), (b'b', b'c')], [5, 3, 1])
    """
    if tie_break not in ("lowest-ids", "greatest-bytes"):
        raise ValueError(f"no tie rule named {tie_break!r}")
    vocab = {byte_ids[byte]: bytes([byte]) for byte in range(256)}
    words = [([byte_ids[byte] for byte in word], count) for word, count in counts.items()]

    merges: list[tuple[bytes, bytes]] = []
    merge_counts: list[int] = []
    while len(merges) < max_merges:
        pairs = {
            (left, right): count
            for (left, right), count in count_pairs(words).items()
            if count >= max(1, min_frequency)
            and (
                max_token_length is None or len(vocab[left]) + len(vocab[right]) <= max_token_length
            )
        }
        if not pairs:
            break
        highest = max(pairs.values())
        tied = [pair for pair, count in pairs.items() if count == highest]
        if tie_break == "lowest-ids":
            best = min(tied)
        else:
            best = max(tied, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))

        new = 256 + len(merges)
        merges.append((vocab[best[0]], vocab[best[1]]))
        merge_counts.append(highest)
        vocab[new] = vocab[best[0]] + vocab[best[1]]
        words = [(merge_pair(symbols, best, new), count) for symbols, count in words]
    return merges, merge_counts


def train_on_characters(
    counts: Mapping[str, int], max_merges: int, *, min_frequency: int = 2
) -> list[tuple[str, str]]:
    """The older form of the algorithm, on characters, as subword-nmt learns it.

    A word's last character carries the mark ``</w>``, so a token knows whether it ends a word. Ties
    go to the greatest pair of strings. Bytes replaced this: they need no unknown token, and the
    space that begins a pretoken does the work of the mark.

    >>> train_on_characters({"banana": 1, "bandana": 1}, 4)
    [('a', 'n'), ('b', 'an'), ('an', 'a</w>')]
    >>> train_on_characters({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 4)
    [('s', 't</w>'), ('e', 'st</w>'), ('l', 'o'), ('w', 'est</w>')]
    """
    words = [
        ([*word[:-1], word[-1] + END_OF_WORD], count) for word, count in counts.items() if word
    ]
    merges: list[tuple[str, str]] = []
    while len(merges) < max_merges:
        pairs = count_pairs(words)
        best = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if best is None or pairs[best] < max(1, min_frequency):
            break
        merges.append(best)
        words = [(merge_pair(symbols, best, best[0] + best[1]), count) for symbols, count in words]
    return merges


# --- the tokenizer ------------------------------------------------------------------------------


def vocabulary(
    merges: Sequence[tuple[bytes, bytes]],
    special_tokens: Sequence[str] = (),
    *,
    byte_ids: Sequence[int] = range(256),
    special_tokens_at: Literal["start", "end"] = "start",
) -> dict[int, bytes]:
    """Bytes of every id: the 256 bytes, then the merges; special tokens first or last.

    >>> vocabulary([(b"a", b"b")], ["<|end|>"])[257]
    b'ab'
    """
    plain = [b""] * 256 + [left + right for left, right in merges]
    for byte in range(256):
        plain[byte_ids[byte]] = bytes([byte])
    special = [token.encode() for token in special_tokens]
    tokens = special + plain if special_tokens_at == "start" else plain + special
    return dict(enumerate(tokens))


def encode(
    text: str,
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]],
    special_tokens: Mapping[str, int] = MappingProxyType({}),
    pattern: str = GPT2_PATTERN,
) -> list[int]:
    """Ids of a text: special tokens first, then the pattern, then the merges by rank.

    `special_tokens` gives their ids. Text that the pattern does not match has no ids.

    >>> merges = [(b"a", b"b"), (b"ab", b"c")]
    >>> vocab = vocabulary(merges, ["<|end|>"])
    >>> encode("abcab<|end|>c", vocab, merges, {"<|end|>": 0})
    [258, 257, 0, 100]
    """
    special_ids = set(special_tokens.values())
    ids = {value: i for i, value in vocab.items() if i not in special_ids}
    ranks = {pair: rank for rank, pair in enumerate(merges)}

    result: list[int] = []
    for piece in split_on_special_tokens(text, list(special_tokens)):
        if piece in special_tokens:
            result.append(special_tokens[piece])
            continue
        for word in pretokenize(piece, pattern):
            result.extend(ids[token] for token in apply_merges(word.encode(), ranks))
    return result


def apply_merges(word: bytes, ranks: Mapping[tuple[bytes, bytes], int]) -> list[bytes]:
    """Tokens of one pretoken: while any pair has a rank, merge the lowest (the leftmost of it).

    >>> apply_merges(b"banana", {(b"a", b"n"): 0, (b"an", b"a"): 1})
    [b'b', b'an', b'ana']
    """
    tokens = [bytes([byte]) for byte in word]
    while len(tokens) > 1:
        ranked = [(ranks[pair], i) for i, pair in enumerate(pairwise(tokens)) if pair in ranks]
        if not ranked:
            break
        _, i = min(ranked)
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    return tokens


def decode(ids: Iterable[int], vocab: Mapping[int, bytes]) -> str:
    """Text of ids; bytes that are not UTF-8 become U+FFFD.

    >>> decode([104, 105], vocabulary([]))
    'hi'
    """
    return b"".join(vocab[i] for i in ids).decode("utf-8", errors="replace")
