"""Loading what was written with the libraries that will load it, and comparing ids.

Every file of a folder is read back by raybpe itself and must give the same tokenizer.
`tokenizer.json` is loaded with Hugging Face `tokenizers` and the ranks with tiktoken, where they
are installed; on a sample of text and on short built-in texts that try each part of a pattern, ids
must be equal. A difference that comes from characters newer than the other library's Unicode
version is no fault of the file: it is listed with the characters. Any other difference is a
`VerifyError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raybpe.errors import FormatError, VerifyError
from raybpe.formats.ranks import read_ranks

if TYPE_CHECKING:
    from raybpe.tokenizer.tokenizer import Tokenizer

Encode = Callable[[str], list[int]]

LOADERS = {"tokenizer.json": "tokenizers", "tokenizer.tiktoken": "tiktoken"}
SAMPLE_CHARACTERS = 40_000  # about 40 ms with the slower of the two libraries
PROBES = (
    "Hello world, it's 2024! We'll see: I'd say they've DONE it, she'RE and he'S.",
    "  two  spaces\n\n\nthree newlines \n trailing \t tab\r\n end   ",
    "12345678 1,000.50 ½ ² Ⅷ x1y22z333 ٣٤٥",
    "naïve café Ünïcode e\u0301 ǅungla Straße ſ K",
    "日本語のテキスト、漢字とカナ。 中文123 한국어",
    "नमस्ते दुनिया عربى עברית ไทย Привет Ελλάδα",
    "def f(x):\n    return {'a': x[1:], \"b\": -x**2}  # comment\n\n\n",
    "👩‍👩‍👧‍👦 🏳️‍🌈 … — “quoted” \u00a0\u2003\u3000 \x00\x1c\x7f",
    "\ufeffhttps://example.com/a_b?c=d&e=%20 <tag attr='x'/> C:\\dir\\file",
)


@dataclass(frozen=True)
class Verification:
    """What was compared.

    Attributes:
        checked: file → who loaded it.
        skipped: library → why it was not asked.
        known_differences: library → what differs for a known reason.
        left_out: file → why it was not written.
        texts: number of texts compared.
    """

    checked: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    known_differences: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    texts: int = 0

    def with_left_out(self, left_out: Mapping[str, str]) -> Verification:
        """The same, with the files that were not written."""
        return replace(self, left_out=dict(left_out))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "checked": self.checked,
            "skipped": self.skipped,
            "known_differences": self.known_differences,
            "texts": self.texts,
        }


def verify(folder: str | Path, tokenizer: Tokenizer, sample: Sequence[str] = ()) -> Verification:
    """Load every tokenizer file in a folder and compare it with `tokenizer`.

    Args:
        folder: holds some of the files that `write_tokenizer` writes.
        tokenizer: what they should be.
        sample: texts to compare ids on; the first SAMPLE_CHARACTERS of them are used.

    Raises:
        VerifyError: a file does not load, or gives other ids.
    """
    folder = Path(folder)
    texts = [*PROBES, *tokenizer.special_tokens, *_cut(sample)]
    texts += [f"a {text}b{text} " for text in list(tokenizer.special_tokens)[:16]]
    found = Verification(texts=len(texts))
    with ThreadPoolExecutor(2, "raybpe-verify") as pool:
        # Both libraries release the GIL, so they run beside our own reading.
        ranks = pool.submit(read_ranks, folder / "tokenizer.tiktoken")
        loads = {
            "tokenizers": lambda: _load_hf(folder / "tokenizer.json", tokenizer),
            "tiktoken": lambda: _load_tiktoken(ranks.result(), tokenizer),
        }
        asked = {
            library: pool.submit(_ask, name, library, loads[library], texts)
            for name, library in LOADERS.items()
            if (folder / name).exists() and find_spec(library) is not None
        }
        for name, check in _own_checks(folder, tokenizer, ranks.result).items():
            _check_own(name, check)
            found.checked[name] = ["raybpe"]
        expected = tokenizer.encode_batch(texts)
    for name, library in LOADERS.items():
        if library in asked:
            encode, given = asked[library].result()
            difference = _compare(tokenizer, encode, given, texts, expected, library)
            if difference:
                found.known_differences[library] = difference
            found.checked[name].append(library)
        elif name in found.checked:
            found.skipped[library] = f"not installed; pip install {library}"
    return found


def _ask(
    name: str, library: str, load: Callable[[], Encode], texts: Sequence[str]
) -> tuple[Encode, list[list[int]]]:
    """Load a file with its library: how to encode with it, and the ids of the texts."""
    try:
        encode = load()
        return encode, [encode(text) for text in texts]
    except VerifyError:
        raise
    except Exception as error:  # the library's own, whatever it raises
        raise VerifyError(f"{library} cannot load the {name} just written: {error}") from error


def _cut(sample: Sequence[str]) -> list[str]:
    """The first SAMPLE_CHARACTERS, without texts that are not Unicode text."""
    texts, left = [], SAMPLE_CHARACTERS
    for text in sample:
        if left <= 0:
            break
        text = text[:left].encode("utf-8", "replace").decode()
        texts.append(text)
        left -= len(text)
    return texts


def _own_checks(
    folder: Path, tokenizer: Tokenizer, ranks: Callable[[], dict[int, bytes]]
) -> dict[str, Callable[[], str | None]]:
    """For each file that is there: what differs when raybpe reads it."""
    from raybpe.formats.gpt2 import read_gpt2
    from raybpe.formats.hf_read import read_hf

    specials = tokenizer.special_tokens
    special_ids = set(specials.values())
    vocab, merges = folder / "vocab.json", folder / "merges.txt"

    def ranks_differ() -> str | None:
        # Whether these ranks give these merges was found out before they were written.
        ordinary = {n: t for n, t in tokenizer.vocab.items() if n not in special_ids}
        return "the ranks" if ranks() != ordinary else None

    checks: dict[str, Callable[[], str | None]] = {
        "tokenizer.json": lambda: read_hf(folder / "tokenizer.json").differs_from(tokenizer),
        "vocab.json": lambda: read_gpt2(vocab, merges, specials).differs_from(tokenizer),
        "tokenizer.tiktoken": ranks_differ,
    }
    return {name: check for name, check in checks.items() if (folder / name).exists()}


def _check_own(name: str, check: Callable[[], str | None]) -> None:
    try:
        different = check()
    except FormatError as error:
        raise VerifyError(f"{name} cannot be read back: {error}") from error
    if different:
        raise VerifyError(f"{name}, read back, differs in {different}")


def _load_hf(path: Path, tokenizer: Tokenizer) -> Encode:
    from tokenizers import Tokenizer as HuggingFace

    loaded = HuggingFace.from_buffer(path.read_bytes())  # takes only UTF-8 for a path
    size = loaded.get_vocab_size(with_added_tokens=True)
    if size != tokenizer.vocabulary.id_limit:
        raise VerifyError(
            f"tokenizers counts {size:,} ids in tokenizer.json, but there are "
            f"{tokenizer.vocabulary.id_limit:,}"
        )

    def encode(text: str) -> list[int]:
        ids: list[int] = loaded.encode(text, add_special_tokens=False).ids
        return ids

    return encode


def _load_tiktoken(ranks: dict[int, bytes], tokenizer: Tokenizer) -> Encode:
    """By tiktoken's own class. Its file loader is not used: it caches files by path for good."""
    from raybpe.formats.convert import to_tiktoken

    encoding = to_tiktoken(tokenizer, {token: rank for rank, token in ranks.items()})

    def encode(text: str) -> list[int]:
        ids: list[int] = encoding.encode(text, allowed_special="all")
        return ids

    return encode


def _compare(
    tokenizer: Tokenizer,
    encode: Encode,
    given: Sequence[Sequence[int]],
    texts: Sequence[str],
    expected: Sequence[Sequence[int]],
    library: str,
) -> str | None:
    """None when all ids are equal, a sentence when newer characters explain the difference."""
    newer: set[str] = set()
    for text, theirs, ours in zip(texts, given, expected, strict=True):
        if list(theirs) == list(ours):
            continue
        unknown = unknown_characters(text, library)
        for piece in _without(text, unknown):
            their_ids, our_ids = encode(piece), tokenizer.encode(piece)
            if their_ids != our_ids:
                raise VerifyError(_describe(tokenizer, library, piece, their_ids, our_ids))
        newer |= unknown
    if not newer:
        return None
    names = " ".join(f"U+{ord(char):04X}" for char in sorted(newer)[:20])
    return (
        f"{len(newer)} characters in the sample are newer than the Unicode version of {library}, "
        f"which takes them for neither letters nor numbers: {names}"
    )


def unknown_characters(text: str, library: str) -> set[str]:
    """The characters of a text that `regex` knows and the library's regex engine does not."""
    import regex

    candidates = "".join({char for char in text if ord(char) > 127})
    known = "".join(regex.findall(r"\P{Cn}", candidates))
    return set(_unassigned(known, library))


def _unassigned(text: str, library: str) -> str:
    """The characters of a text that are unassigned for the library's regex engine."""
    if library == "tokenizers":
        from tokenizers import Regex, pre_tokenizers

        split = pre_tokenizers.Split(Regex(r"\p{Cn}"), "removed", invert=True)
        return "".join(piece for piece, _ in split.pre_tokenize_str(text))
    import tiktoken

    probe = tiktoken.Encoding(
        "probe",
        pat_str=r"\p{Cn}",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={},
    )
    return str(probe.decode(probe.encode_ordinary(text)))


def _without(text: str, characters: set[str]) -> list[str]:
    """The stretches of a text between some characters."""
    if not characters:
        return [text]
    pieces = [""]
    for char in text:
        if char in characters:
            pieces.append("")
        else:
            pieces[-1] += char
    return [piece for piece in pieces if piece]


def _describe(
    tokenizer: Tokenizer, library: str, text: str, theirs: Sequence[int], ours: Sequence[int]
) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b),
        min(len(theirs), len(ours)),
    )
    before = tokenizer.decode_bytes(ours[:at])
    return (
        f"{library} gives other ids than raybpe after byte {len(before)} of the text "
        f"{text!r:.80}: {list(theirs[at : at + 4])} where raybpe gives {list(ours[at : at + 4])} "
        f"(pattern {tokenizer.pattern.name or tokenizer.pattern.regex!r:.200})"
    )
