"""Hugging Face's `tokenizer.json`, read.

Read is byte-level BPE: a BPE model over ByteLevel's alphabet, without a normalizer, dropout,
affixes or a prefix space, pretokenized by one pattern (ByteLevel's own, a Split, or one of the
sequences in `KNOWN_SEQUENCES`). Everything else is refused with the reason, since it would give
other ids. Added tokens, special or not, become special tokens, for both are cut out first. What
only matters around encoding (truncation, padding, post-processor) is not read: the ids are those
of ``encode(text, add_special_tokens=False)``.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import regex

from raybpe.errors import FormatError
from raybpe.formats.dialects import translate
from raybpe.formats.files import kind, read_json_object
from raybpe.formats.hf import pre_tokenizer
from raybpe.formats.names import check_ids, from_names, merges_of
from raybpe.formats.parts import Parts

if TYPE_CHECKING:
    from raybpe.pretokenize import Pattern

_DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)
_SPELLED_GPT2 = (
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
)
KNOWN_SEQUENCES: dict[tuple[str, ...], str] = {
    (r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", _DEEPSEEK): "deepseek-v3",
    ("each digit", "ByteLevel"): "starcoder",
    ("ByteLevel",): "gpt2",
    (): "none",
    **{(text,): "gpt2" for text in _SPELLED_GPT2},
}


def read_hf(path: Path, expected: Pattern | None = None) -> Parts:
    """Read a `tokenizer.json`.

    Args:
        path: the file.
        expected: the pattern that the file must have been written for, where that is known.

    Raises:
        FormatError: unreadable, damaged, not byte-level BPE, or written for another pattern.
    """
    return _Reader(str(path)).read(read_json_object(path), expected)


class _Reader:
    """Holds the file's name for messages."""

    def __init__(self, where: str) -> None:
        self.where = where

    def refuse(self, reason: str) -> NoReturn:
        raise FormatError(f"{self.where}: {reason}")

    def read(self, root: dict[str, Any], expected: Pattern | None) -> Parts:
        model = self._object(root, "model")
        self._check_model(model)
        normalizer = root.get("normalizer")
        if normalizer is not None and normalizer != {"type": "Sequence", "normalizers": []}:
            self.refuse(
                f"it has a normalizer ({_type(normalizer)}), which changes text before it is "
                "encoded; raybpe encodes text as it is"
            )
        decoder = root.get("decoder")
        if decoder is not None and _type(decoder) != "ByteLevel":
            self.refuse(f"its decoder is {_type(decoder)}, not ByteLevel")
        special_tokens = self._added_tokens(root.get("added_tokens", []))
        pattern = self._pattern(root.get("pre_tokenizer"), expected)
        named = from_names(model["vocab"], special_tokens, self.where)
        merges = merges_of(*self._pairs(model["merges"]), named, self.where)
        return Parts(
            named.vocab, merges, special_tokens, pattern, model.get("ignore_merges", False)
        )

    def _object(self, parent: dict[str, Any], key: str) -> dict[str, Any]:
        value = parent.get(key)
        if not isinstance(value, dict):
            self.refuse(f"{key!r} is {kind(value)} where an object is needed")
        return value

    def _check_model(self, model: dict[str, Any]) -> None:
        if model.get("type", "BPE") != "BPE":
            self.refuse(f"its model is {_type(model)}, not BPE")
        self._object(model, "vocab")
        if not isinstance(model.get("merges"), list):
            self.refuse(f"'merges' is {kind(model.get('merges'))} where a list is needed")
        for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
            if model.get(key) not in (None, "", False, 0):
                self.refuse(f"its BPE model has {key} = {model[key]!r:.80}, which raybpe has not")
        if not isinstance(model.get("ignore_merges", False), bool):
            self.refuse("'ignore_merges' is neither true nor false")

    def _pairs(self, merges: list[Any]) -> tuple[list[str], list[str]]:
        """The left and the right parts of all merges."""
        kinds = set(map(type, merges))
        if kinds == {str}:
            merges = [merge.split(" ") for merge in merges]
        elif kinds - {list}:
            self.refuse("a merge is neither a text nor a pair of texts")
        if set(map(len, merges)) - {2}:
            rank = next(i for i, merge in enumerate(merges) if len(merge) != 2)
            self.refuse(f"merge {rank} is {merges[rank]!r:.120}, not two tokens")
        parts = list(chain.from_iterable(merges))
        if set(map(type, parts)) - {str}:
            rank = next(i for i, part in enumerate(parts) if type(part) is not str) // 2
            self.refuse(f"merge {rank} is {merges[rank]!r:.120}, not two tokens")
        return parts[0::2], parts[1::2]

    def _added_tokens(self, tokens: Any) -> dict[str, int]:
        if tokens is None:
            return {}
        if not isinstance(tokens, list):
            self.refuse(f"'added_tokens' is {kind(tokens)} where a list is needed")
        found: dict[str, int] = {}
        normalized: dict[bool, list[str]] = {True: [], False: []}
        for token in tokens:
            text = token.get("content") if isinstance(token, dict) else None
            if not isinstance(text, str) or not text:
                self.refuse("an added token has no text in 'content'")
            for key in ("lstrip", "rstrip", "single_word"):
                if token.get(key, False) is not False:
                    self.refuse(
                        f"the added token {text!r} has {key} set, so it takes in the text around "
                        "it; raybpe's special tokens do not"
                    )
            if text in found:
                self.refuse(f"the added token {text!r} is listed twice")
            found[text] = token.get("id")
            normalized[token.get("normalized") is True].append(text)
        check_ids(found, f"{self.where}: added_tokens")
        if len(set(found.values())) != len(found):
            self.refuse("two added tokens have the same id")
        self._check_overlaps(normalized[False], normalized[True])
        return found

    def _check_overlaps(self, first: list[str], second: list[str]) -> None:
        """Hugging Face cuts out tokens with `normalized` unset first, whatever is longer."""
        if len(first) * len(second) > 10**6:
            self.refuse("too many added tokens differ in 'normalized'")
        for one in first:
            for other in second:
                if _overlap(one, other):
                    self.refuse(
                        f"the added tokens {one!r} and {other!r} overlap and differ in "
                        "'normalized', so the longest does not always win"
                    )

    def _pattern(self, node: Any, expected: Pattern | None) -> Pattern:
        from raybpe.pretokenize import resolve_pattern

        if expected is not None:
            if node == pre_tokenizer(expected):
                return expected
            self.refuse(
                "its pre-tokenizer is not the one of the pattern in the raybpe.json beside it, "
                f"{expected.regex!r:.200}; the two do not belong together, so remove one"
            )
        if node is None:
            self.refuse("it has no pre-tokenizer, so its vocabulary is not byte-level")
        steps = self._steps(node)
        if not steps or steps[-1][0] != "byte level":
            self.refuse("its pre-tokenizer does not end in ByteLevel, so it is not byte-level BPE")
        splits = tuple(text for name, text in steps if name != "byte level" or text)
        if splits in KNOWN_SEQUENCES:
            return resolve_pattern(KNOWN_SEQUENCES[splits])
        if len(splits) != 1 or steps[0][0] == "digits":
            self.refuse(
                f"its pre-tokenizer splits {len(splits)} times ({', '.join(splits):.300}); raybpe "
                "splits once, by one pattern"
            )
        try:
            pattern = resolve_pattern(translate(splits[0], "oniguruma", "regex"))
            regex.compile(pattern.regex)
        except regex.error as error:
            self.refuse(f"its pattern {splits[0]!r:.200} cannot be read: {error}")
        except FormatError as error:
            self.refuse(str(error))
        if steps[0][0] == "matches only" and pattern.name is None:
            self.refuse(
                "its Split drops text that the pattern does not match; raybpe loses no text"
            )
        return pattern

    def _steps(self, node: Any) -> list[tuple[str, str]]:
        """(kind, regex) of each step; the pre-tokenizers of nested sequences in one row."""
        queue, steps = [node], []
        while queue:
            node = queue.pop(0)
            if not isinstance(node, dict):
                self.refuse(f"a pre-tokenizer is {kind(node)} where an object is needed")
            if node.get("type") == "Sequence":
                inner = node.get("pretokenizers")
                if not isinstance(inner, list) or len(inner) > 64:
                    self.refuse("a Sequence without a list of at most 64 pre-tokenizers")
                queue[:0] = inner
            else:
                steps.append(self._step(node))
        return steps

    def _step(self, node: dict[str, Any]) -> tuple[str, str]:
        name = node.get("type")
        if name == "ByteLevel":
            if node.get("add_prefix_space", True) is not False:
                self.refuse(
                    "its ByteLevel has add_prefix_space, which puts a space before every text; "
                    "raybpe encodes text as it is"
                )
            return "byte level", "ByteLevel" if node.get("use_regex", True) is True else ""
        if name == "Digits":
            return "digits", "each digit" if node.get("individual_digits") is True else "digits"
        if name != "Split":
            self.refuse(f"its pre-tokenizer {_type(node)} is neither Split nor ByteLevel")
        pattern = node.get("pattern")
        if not isinstance(pattern, dict) or len(pattern) != 1:
            self.refuse("a Split has no pattern")
        ((syntax, text),) = pattern.items()
        if syntax not in ("Regex", "String") or not isinstance(text, str) or not text:
            self.refuse("the pattern of a Split is neither a Regex nor a String")
        if syntax == "String":
            text = regex.escape(text, special_only=True, literal_spaces=True)
        behavior, invert = node.get("behavior"), node.get("invert", False)
        if behavior == "Isolated":
            return "split", text
        if behavior == "Removed" and invert is True:
            return "matches only", text
        self.refuse(f"a Split with the behaviour {behavior!r:.40} is not a plain cut at matches")


def _type(node: Any) -> str:
    return str(node.get("type"))[:80] if isinstance(node, dict) else kind(node)


def _overlap(one: str, other: str) -> bool:
    """Whether one place in a text can be in an occurrence of both."""
    if one in other or other in one:
        return True
    return any(
        one.endswith(other[:size]) or other.endswith(one[:size])
        for size in range(1, min(len(one), len(other)))
    )
