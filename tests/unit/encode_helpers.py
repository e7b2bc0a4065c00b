"""Tokenizers for the encode tests: GPT-2's own, random ones; and the textbook encoder of bytes."""

import json
from functools import lru_cache
from itertools import pairwise

import regex

from raybpe.tokenizer import Tokenizer

END = "<|endoftext|>"


def gpt2_bytes():
    """GPT-2's printable character → byte."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    return {chr(byte): byte for byte in kept} | {
        chr(256 + index): byte for index, byte in enumerate(others)
    }


@lru_cache(maxsize=1)
def gpt2_files(fixtures):
    """(vocab, merges) of the published GPT-2 tokenizer."""
    table = gpt2_bytes()

    def decode(text):
        return bytes(table[char] for char in text)

    names = json.loads((fixtures / "gpt2_vocab.json").read_text(encoding="utf-8"))
    vocab = {number: decode(name) for name, number in names.items() if name != END}
    vocab[names[END]] = END.encode()
    lines = (fixtures / "gpt2_merges.txt").read_text(encoding="utf-8").split("\n")
    merges = [tuple(map(decode, line.split(" "))) for line in lines if line]
    return vocab, merges


def encode_plainly(tokenizer, data, specials=None):
    """Ids of some bytes, from the definition: slow, and with nothing in common with the kernels."""
    specials = tokenizer.special_tokens if specials is None else specials
    ranks = {merge: rank for rank, merge in enumerate(tokenizer.merges)}
    pattern = regex.compile(tokenizer.pattern.regex)
    ids = []
    # Invalid bytes become lone surrogates U+DC80 to U+DCFF, one each.
    by_length = sorted(map(regex.escape, specials), key=len, reverse=True)
    separators = "|".join([*by_length, "[\udc80-\udcff]"])
    for piece in regex.split(f"({separators})", data.decode("utf-8", "surrogateescape")):
        if piece in specials:
            ids.append(tokenizer.special_tokens[piece])
            continue
        bounds = {0, len(piece)}
        for match in pattern.finditer(piece):
            if match.end() > match.start():
                bounds.update(match.span())
        for start, end in pairwise(sorted(bounds)):
            pretoken = piece[start:end].encode("utf-8", "surrogateescape")
            ids += _merge(tokenizer, ranks, pretoken)
    return ids


def _merge(tokenizer, ranks, pretoken):
    ordinary = tokenizer.vocabulary.ordinary
    if tokenizer.ignore_merges and pretoken in ordinary:
        return [ordinary[pretoken]]
    parts = [bytes([byte]) for byte in pretoken]
    while len(parts) > 1:
        rank, at = min(
            (ranks.get(pair, len(ranks)), index) for index, pair in enumerate(pairwise(parts))
        )
        if rank == len(ranks):
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [ordinary[part] for part in parts]


def random_tokenizer(random, merges, alphabet=b"ab ", **options):
    """Merges of any order: later ones may be needed by earlier ones, results may repeat."""
    tokens = [bytes([byte]) for byte in range(256)]
    usable = [bytes([byte]) for byte in alphabet]
    pairs = []
    for _ in range(merges):
        pair = (random.choice(usable), random.choice(usable))
        if pair not in pairs and len(pair[0] + pair[1]) < 40:
            pairs.append(pair)
            usable.append(pair[0] + pair[1])
    random.shuffle(pairs)
    made = list(dict.fromkeys(left + right for left, right in pairs))
    tokens += [token for token in made if len(token) > 1]
    return Tokenizer(dict(enumerate(tokens)), pairs, **options)
