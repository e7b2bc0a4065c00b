"""Trainers that the kernel is compared with, and short ways to call it."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from raybpe.merges.trainer import MergeTrainer

Merges = list[tuple[bytes, bytes]]


def arrays(words: Mapping[bytes, int]) -> tuple[Any, Any, Any]:
    """Words as the trainer takes them: data, offsets, counts."""
    offsets = np.zeros(len(words) + 1, np.int64)
    offsets[1:] = np.cumsum([len(word) for word in words])
    data = np.frombuffer(b"".join(words), np.uint8)
    return data, offsets, np.array(list(words.values()), np.int64)


def trainer(
    words: Mapping[bytes, int],
    max_merges: int,
    byte_ids: Sequence[int] = range(256),
    **options: Any,
) -> MergeTrainer:
    ids = np.array(byte_ids, np.uint8)
    return MergeTrainer(*arrays(words), byte_ids=ids, max_merges=max_merges, **options)


def token_bytes(made: MergeTrainer, byte_ids: Iterable[int] = range(256)) -> list[bytes]:
    """Bytes of every id made so far: 256 single bytes in id order, then the merges."""
    tokens = [b""] * 256
    for byte, token in enumerate(byte_ids):
        tokens[token] = bytes([byte])
    for left, right in zip(made.left.tolist(), made.right.tolist(), strict=True):
        tokens.append(tokens[left] + tokens[right])
    return tokens


def result(made: MergeTrainer, byte_ids: Iterable[int] = range(256)) -> tuple[Merges, list[int]]:
    """Merges as bytes, and counts: what `reference.train` gives."""
    tokens = token_bytes(made, byte_ids)
    assert len(set(tokens)) == len(tokens)
    merges = [(tokens[a], tokens[b]) for a, b in zip(made.left, made.right, strict=True)]
    return merges, made.counts.tolist()


def fast_train(
    words: Mapping[bytes, int],
    max_merges: int,
    byte_ids: Sequence[int] = range(256),
    **options: Any,
) -> tuple[Merges, list[int]]:
    made = trainer(words, max_merges, byte_ids, **options)
    made.advance()
    assert made.done
    return result(made, byte_ids)


def slow_train(words: Mapping[bytes, int], max_merges: int) -> tuple[Merges, list[int]]:
    """Greatest-bytes training that updates counts word by word: shares nothing with the kernel.

    Pairs of equal count lie in one bucket; a heap holds the counts that ever had a bucket.
    """
    spelled = [([bytes([byte]) for byte in word], count) for word, count in words.items()]
    counts: Counter[tuple[bytes, bytes]] = Counter()
    where: dict[tuple[bytes, bytes], set[int]] = defaultdict(set)
    for index, (tokens, count) in enumerate(spelled):
        for pair in pairwise(tokens):
            counts[pair] += count
            where[pair].add(index)
    buckets: dict[int, set[tuple[bytes, bytes]]] = defaultdict(set)
    for pair, count in counts.items():
        buckets[count].add(pair)
    heap = [-count for count in buckets]
    heapq.heapify(heap)

    merges: Merges = []
    merged_counts: list[int] = []
    while len(merges) < max_merges:
        while heap and not buckets[-heap[0]]:
            del buckets[-heapq.heappop(heap)]
        if not heap or heap[0] >= 0:
            break
        best = max(buckets[-heap[0]])
        merges.append(best)
        merged_counts.append(counts[best])
        changes: Counter[tuple[bytes, bytes]] = Counter()
        for index in where.pop(best):
            tokens, count = spelled[index]
            merged: list[bytes] = []
            for token in tokens:
                if token == best[1] and merged and merged[-1] == best[0]:
                    # A token just merged is longer than best[0], so it never matches here.
                    merged[-1] = best[0] + best[1]
                else:
                    merged.append(token)
            for pair in pairwise(tokens):
                changes[pair] -= count
            for pair in pairwise(merged):
                changes[pair] += count
                where[pair].add(index)
            spelled[index] = (merged, count)
        for pair, change in changes.items():
            if change == 0:
                continue
            old = counts[pair]
            buckets[old].discard(pair)
            counts[pair] = old + change
            if counts[pair] not in buckets:
                heapq.heappush(heap, -counts[pair])
            buckets[counts[pair]].add(pair)
    return merges, merged_counts
