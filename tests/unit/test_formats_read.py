"""Other people's files: what loads gives their ids, and the rest is refused with the place."""

import base64
import json
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from format_helpers import SPECIALS, TEXT, of_merges, trained

from raybpe.errors import FormatError
from raybpe.formats import export_tokenizer, read_tokenizer, write_tokenizer
from raybpe.formats.files import MAX_FILE_BYTES
from raybpe.formats.hf_read import KNOWN_SEQUENCES
from raybpe.formats.ranks import ranks_of, recover_merges
from raybpe.pretokenize import PATTERNS
from raybpe.tokenizer.tokenizer import Tokenizer

tokenizers = pytest.importorskip("tokenizers")
BYTES = [(bytes([byte]), byte) for byte in range(256)]


def hf_json(tmp_path: Path, **changes: Any) -> Path:
    """A tokenizer.json with some keys replaced; `model__x` replaces a key of the model."""
    path = tmp_path / "alone.json"
    export_tokenizer(trained(), "hf", path)
    content = json.loads(path.read_text())
    for key, value in changes.items():
        outer, _, inner = key.partition("__")
        if inner:
            content[outer][inner] = value
        else:
            content[key] = value
    path.write_text(json.dumps(content))
    return path


def rank_file(tmp_path: Path, rows: list[tuple[bytes, int]], name: str = "x.tiktoken") -> Path:
    path = tmp_path / name
    path.write_bytes(b"".join(base64.b64encode(t) + b" %d\n" % n for t, n in rows))
    return path


def split(regex: str, **changes: Any) -> dict[str, Any]:
    return {
        "type": "Split",
        "pattern": {"Regex": regex},
        "behavior": "Isolated",
        "invert": False,
    } | changes


BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}
CUT = {**BYTE_LEVEL, "use_regex": True}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def test_a_tokenizer_trained_by_hugging_face_loads(tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<s>", "<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator([TEXT], trainer)
    theirs.add_tokens(["wörld", "  "])
    theirs.save(str(tmp_path / "theirs.json"))
    ours = read_tokenizer(tmp_path / "theirs.json")
    text = TEXT + "<s>x<|endoftext|>  wörld"
    assert ours.encode(text) == theirs.encode(text).ids
    assert ours.pattern.name == "gpt2"
    write_tokenizer(ours, tmp_path / "again", sample=[text])
    assert read_tokenizer(tmp_path / "again") == ours


@pytest.mark.parametrize(("splits", "name"), list(KNOWN_SEQUENCES.items()))
def test_known_sequences_give_the_same_pieces(
    splits: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    steps = {"each digit": {"type": "Digits", "individual_digits": True}, "ByteLevel": CUT}
    node = sequence(*(steps.get(text) or split(text) for text in splits))
    if "ByteLevel" not in splits:
        node["pretokenizers"].append(BYTE_LEVEL)
    path = hf_json(tmp_path, pre_tokenizer=node)
    ours, theirs = read_tokenizer(path), tokenizers.Tokenizer.from_file(str(path))
    assert ours.pattern.regex == PATTERNS[name]
    for text in (
        TEXT,
        "This is an \nexample",
        "12345 日本  カナ12  x\n\n 9",
        "a  1",
        "  漢 字",
        "!abc'll\n",
    ):
        assert ours.encode(text) == theirs.encode(text).ids


@pytest.mark.parametrize(
    "regex", [r"\p{N}{1,2}+|\p{L}+|[^\p{N}\p{L}]+$|.", r"\p{L}+|[^\p{L}]+", r"\d", r"(?m:x.)|\s"]
)
def test_other_splits_give_the_same_ids(regex: str, tmp_path: Path) -> None:
    path = hf_json(tmp_path, pre_tokenizer=sequence(split(regex), BYTE_LEVEL))
    theirs = tokenizers.Tokenizer.from_file(str(path))
    assert read_tokenizer(path).encode(TEXT) == theirs.encode(TEXT).ids


def test_merges_as_text_and_as_pairs(tmp_path: Path) -> None:
    path = hf_json(tmp_path)
    pairs = json.loads(path.read_text())["model"]["merges"]
    by_pairs = read_tokenizer(path)
    as_text = read_tokenizer(hf_json(tmp_path, model__merges=[" ".join(pair) for pair in pairs]))
    assert as_text == by_pairs


def test_longest_special_token_wins_as_in_hugging_face(tmp_path: Path) -> None:
    path = hf_json(tmp_path)
    text = "<t12><t1><t1<t12"
    ours = read_tokenizer(path)
    assert ours.encode(text) == tokenizers.Tokenizer.from_file(str(path)).encode(text).ids
    assert ours.encode("<t12>") == [ours.special_tokens["<t12>"]]


def test_ignore_merges_is_kept(tmp_path: Path) -> None:
    content = json.loads(hf_json(tmp_path).read_text())
    vocab = content["model"]["vocab"] | {"Ġunreached": len(content["model"]["vocab"])}
    path = hf_json(tmp_path, model__vocab=vocab, model__ignore_merges=True)
    ours, theirs = read_tokenizer(path), tokenizers.Tokenizer.from_file(str(path))
    text = "an unreached token unreachedly"
    assert ours.encode(text) == theirs.encode(text).ids
    assert vocab["Ġunreached"] in ours.encode(text)
    write_tokenizer(ours, tmp_path / "again", sample=[text])
    assert read_tokenizer(tmp_path / "again") == ours


ADDED = {"content": "<x>", "id": 999, "special": True}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": None}, "'model' is null"),
        ({"model__type": "Unigram"}, "Unigram, not BPE"),
        ({"model__vocab": []}, "'vocab' is a list"),
        ({"model__merges": {}}, "'merges' is an object"),
        ({"model__merges": ["a"]}, "not two tokens"),
        ({"model__merges": ["a b c"]}, "not two tokens"),
        ({"model__merges": [["a", 1]]}, "not two tokens"),
        ({"model__merges": [1]}, "neither a text nor a pair"),
        ({"model__merges": ["zz qq"]}, "not in the vocabulary"),
        ({"model__merges": ["Z Z"]}, "ZZ"),
        ({"model__merges": ["t h", "t h"]}, "repetition|needs the token"),
        ({"model__dropout": 0.1}, "dropout"),
        ({"model__end_of_word_suffix": "</w>"}, "end_of_word_suffix"),
        ({"model__continuing_subword_prefix": "##"}, "continuing_subword_prefix"),
        ({"model__byte_fallback": True}, "byte_fallback"),
        ({"model__ignore_merges": 1}, "ignore_merges"),
        ({"normalizer": {"type": "NFC"}}, "normalizer .NFC"),
        ({"decoder": {"type": "WordPiece"}}, "decoder is WordPiece"),
        ({"added_tokens": {}}, "'added_tokens' is an object"),
        ({"added_tokens": [3]}, "no text"),
        ({"added_tokens": [ADDED, ADDED]}, "listed twice"),
        ({"added_tokens": [ADDED, {**ADDED, "content": "<y>"}]}, "same id"),
        ({"added_tokens": [{**ADDED, "lstrip": True}]}, "lstrip"),
        ({"added_tokens": [{**ADDED, "id": "1"}]}, "is a text"),
        ({"added_tokens": [{**ADDED, "id": 2**40}]}, "ids are from 0"),
        ({"added_tokens": [{**ADDED, "id": -1}]}, "ids are from 0"),
        ({"added_tokens": [{**ADDED, "content": "t", "id": 5}]}, "in another"),
        (
            {"added_tokens": [ADDED, {"content": "<x>y", "id": 1000, "normalized": True}]},
            "overlap",
        ),
        ({"pre_tokenizer": None}, "no pre-tokenizer"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "neither Split nor ByteLevel"),
        ({"pre_tokenizer": split("a")}, "does not end in ByteLevel"),
        ({"pre_tokenizer": {**CUT, "add_prefix_space": True}}, "add_prefix_space"),
        ({"pre_tokenizer": sequence(split("a"), split("b"), BYTE_LEVEL)}, "splits 2 times"),
        ({"pre_tokenizer": sequence(split("a", behavior="Removed"), BYTE_LEVEL)}, "Removed"),
        (
            {"pre_tokenizer": sequence(split("a", behavior="Removed", invert=True), BYTE_LEVEL)},
            "drops text",
        ),
        ({"pre_tokenizer": sequence(split(r"\X"), BYTE_LEVEL)}, "escape"),
        ({"pre_tokenizer": sequence(split("(a"), BYTE_LEVEL)}, "not closed"),
        ({"pre_tokenizer": sequence(3, BYTE_LEVEL)}, "the number 3"),
        ({"pre_tokenizer": {"type": "Sequence"}}, "Sequence without a list"),
    ],
)
def test_what_is_not_byte_level_bpe_is_refused(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = hf_json(tmp_path, **changes)
    with pytest.raises(FormatError, match=reason) as caught:
        read_tokenizer(path)
    assert str(path) in str(caught.value)


def test_vocabulary_faults_name_what_is_wrong(tmp_path: Path) -> None:
    vocab = json.loads(hf_json(tmp_path).read_text())["model"]["vocab"]
    for change, reason in (
        ({"Ġzzz": 5}, "the same id 5"),
        ({"Ġzzz": 2**24}, "ids are from 0"),
        ({"Ġzzz": True}, "is a truth value"),
        ({"Ġzzz": 1.5}, "the number 1.5"),
        ({"日": 4000}, "stands for no byte"),
    ):
        with pytest.raises(FormatError, match=reason):
            read_tokenizer(hf_json(tmp_path, model__vocab=vocab | change))
    del vocab["Z"]
    with pytest.raises(FormatError, match="0x5a"):
        read_tokenizer(hf_json(tmp_path, model__vocab=vocab))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"a":' * 100_000, "not valid JSON"),
        (b'{"model": "\xff"}', "not valid JSON"),
        (b"[]", "holds a list"),
        (b"3", "holds the number 3"),
        (b'{"model": {"vocab": {"a": 1, "a": 2}}}', "the key 'a' twice"),
        (b'{"model" : {"vocab": {"a": 1, "a": 2}}}', "the key 'a' twice"),
        (b'{"model"\n\t: {"vocab": {"a": 1, "a": 2}}}', "the key 'a' twice"),
        (b'{"model": {"b": "\\u0022:", "vocab": {"a": 1, "a": 2}}}', "the key 'a' twice"),
        (b'{"model": {"b": "\\u003Ax", "vocab": {"a": 1, "a": 2}}}', "the key 'a' twice"),
        (b'{"model": NaN}', "not valid JSON"),
    ],
)
def test_bad_json_is_refused(data: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=reason) as caught:
        read_tokenizer(path)
    assert str(path) in str(caught.value)


def test_paths_that_are_no_tokenizers(tmp_path: Path) -> None:
    import os

    with pytest.raises(FormatError, match="no such file"):
        read_tokenizer(tmp_path / "nothing")
    with pytest.raises(FormatError, match=r"none of them.*tokenizer\.json"):
        read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.model").write_text("x")
    with pytest.raises(FormatError, match="no format that is known"):
        read_tokenizer(tmp_path / "tokenizer.model")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(FormatError, match="not a regular file"):
        read_tokenizer(tmp_path / "pipe.json")
    with open(tmp_path / "big.json", "wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(FormatError, match="at most"):
        read_tokenizer(tmp_path / "big.json")
    (tmp_path / "dangling.json").symlink_to(tmp_path / "gone")
    with pytest.raises(FormatError, match="cannot read"):
        read_tokenizer(tmp_path / "dangling.json")


def test_only_fixed_names_are_opened(tmp_path: Path) -> None:
    """A path inside a file is never followed."""
    write_tokenizer(trained(), tmp_path / "out")
    config = tmp_path / "out" / "tokenizer_config.json"
    config.write_text(json.dumps({"tokenizer_file": "/dev/zero", "vocab_file": "../x"}))
    assert read_tokenizer(tmp_path / "out") == trained()


def test_a_pattern_other_than_the_manifests_is_refused(tmp_path: Path) -> None:
    write_tokenizer(trained("qwen2"), tmp_path / "a")
    write_tokenizer(trained("gpt2"), tmp_path / "b")
    (tmp_path / "a" / "tokenizer.json").write_bytes((tmp_path / "b/tokenizer.json").read_bytes())
    with pytest.raises(FormatError, match="do not belong together"):
        read_tokenizer(tmp_path / "a")


# --- tiktoken -----------------------------------------------------------------------------------


def test_ranks_load_with_pattern_and_special_tokens(tmp_path: Path) -> None:
    source = trained("cl100k", at="end")
    export_tokenizer(source, "tiktoken", tmp_path / "x.tiktoken")
    loaded = read_tokenizer(
        tmp_path / "x.tiktoken", pattern="cl100k", special_tokens=source.special_tokens
    )
    assert loaded == source
    with pytest.warns(UserWarning, match="does not say its pattern"):
        assert read_tokenizer(tmp_path / "x.tiktoken").pattern.name == "gpt2"


def test_tokenizers_load_with_pattern_or_a_warning_at_the_line(tmp_path: Path) -> None:
    path = rank_file(tmp_path, BYTES, "x.tiktoken")
    with pytest.warns(UserWarning, match="does not say its pattern") as warned:
        _ = [load(path) for load in (Tokenizer.load, read_tokenizer)]
    assert [one.filename for one in warned] == [__file__, __file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = Tokenizer.load(path, pattern="cl100k", special_tokens={"<s>": 300})
    assert loaded.pattern.name == "cl100k"
    assert loaded.special_tokens == {"<s>": 300}


def test_published_rank_files_are_known_by_name(tmp_path: Path) -> None:
    path = rank_file(tmp_path, BYTES, "cl100k_base.tiktoken")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = read_tokenizer(path)
    assert loaded.pattern.name == "cl100k"
    assert loaded.special_tokens["<|endofprompt|>"] == 100276


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([*BYTES, (b"ab", 256), (b"ab", 257)], "ranks 256 and 257 are both"),
        ([*BYTES, (b"abc", 256)], "do not determine a merge for the token b'abc'"),
        ([*BYTES, (b"ab", 2**24)], "ranks are below"),
    ],
)
def test_rank_faults(rows: list[tuple[bytes, int]], reason: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=reason):
        read_tokenizer(rank_file(tmp_path, rows), pattern="gpt2")


@pytest.mark.parametrize("line", [b"Yg==", b"Yg== ", b"Yg== x", b"Yg 1", b"!! 1", b"Yg==  1", b""])
def test_a_malformed_line_is_named(line: bytes, tmp_path: Path) -> None:
    path = rank_file(tmp_path, BYTES)
    lines = path.read_bytes().split(b"\n")
    lines[99] = line
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(FormatError, match="line 100"):
        read_tokenizer(path, pattern="gpt2")


def test_published_gpt2_merges_are_recovered_from_ranks(shared: Path, tmp_path: Path) -> None:
    source = read_tokenizer(shared / "fixtures" / "gpt2_vocab.json")
    assert source.special_tokens == {"<|endoftext|>": 50256}
    export_tokenizer(source, "tiktoken", tmp_path / "r50k_base.tiktoken")
    assert read_tokenizer(tmp_path / "r50k_base.tiktoken") == source


def test_ranks_of_huge_tokens_take_no_time_to_speak_of(tmp_path: Path) -> None:
    """As from a long line without a space; by trying each split anew this took half a minute."""
    merges = [(b"a", b"b"), *((b"ab" * 2**k, b"ab" * 2**k) for k in range(17))]
    tokenizer = of_merges(merges, pattern="none")
    export_tokenizer(of_merges(merges[:1]), "tiktoken", tmp_path / "warm.tiktoken")
    began = perf_counter()
    ranks = ranks_of(tokenizer)
    assert perf_counter() - began < 5
    left, _ = recover_merges(list(ranks))
    assert left[-1] == len(ranks) - 2


# --- GPT-2 and CS336 ----------------------------------------------------------------------------


def test_gpt2_files_by_either_name_and_special_tokens(tmp_path: Path) -> None:
    paths = export_tokenizer(trained(), "gpt2", tmp_path / "out")
    (tmp_path / "out" / "vocab.json").rename(tmp_path / "out" / "my_vocab.json")
    (tmp_path / "out" / "merges.txt").rename(tmp_path / "out" / "my_merges.txt")
    assert len(paths) == 2
    for name in ("my_vocab.json", "my_merges.txt"):
        assert read_tokenizer(tmp_path / "out" / name) == trained()
    none = read_tokenizer(tmp_path / "out" / "my_vocab.json", special_tokens={}, pattern="qwen2")
    assert none.special_tokens == {}
    assert none.pattern.name == "qwen2"
    assert none.vocab[trained().special_tokens[SPECIALS[0]]] == SPECIALS[0].encode()


@pytest.mark.parametrize("line", ["a", "a b c", " a", "a ", "a  b", "Ġt zz zz"])
def test_a_malformed_merge_line_is_named(line: str, tmp_path: Path) -> None:
    export_tokenizer(trained(), "gpt2", tmp_path / "out")
    path = tmp_path / "out" / "merges.txt"
    lines = path.read_text().split("\n")
    lines[9] = line
    path.write_text("\n".join(lines))
    with pytest.raises(FormatError, match=r"merges\.txt: line 10"):
        read_tokenizer(path)


def test_merges_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    export_tokenizer(trained(), "cs336", tmp_path / "out")
    path = tmp_path / "out" / "merges.txt"
    path.write_bytes(b"t h\n\xff\xfe e\n")
    with pytest.raises(FormatError, match=r"offset 4 \(line 2\)"):
        read_tokenizer(path)
    path.unlink()
    with pytest.raises(FormatError, match=r"needs merges\.txt"):
        read_tokenizer(tmp_path / "out")


def test_duplicate_merges_are_refused(tmp_path: Path) -> None:
    export_tokenizer(trained(), "gpt2", tmp_path / "out")
    path = tmp_path / "out" / "merges.txt"
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:5], lines[1], *lines[5:]]))
    with pytest.raises(FormatError, match="repetition of merge 0"):
        read_tokenizer(path)


def test_gpt2_itself_equals_tiktoken(shared: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ours = read_tokenizer(shared / "fixtures" / "gpt2_merges.txt")
    theirs = ours.to_tiktoken()
    assert isinstance(theirs, tiktoken.Encoding)
    text = (shared / "fixtures" / "tinystories_sample.txt").read_text()[:100_000]
    assert ours.encode(text) == theirs.encode(text, allowed_special="all")


def test_other_libraries_objects() -> None:
    tokenizer: Tokenizer = trained()
    text = TEXT + "<|endoftext|><t12>"
    assert tokenizer.to_hf().encode(text).ids == tokenizer.encode(text)
    assert tokenizer.to_tiktoken().encode(text, allowed_special="all") == tokenizer.encode(text)


@pytest.mark.slow
def test_transformers_loads_the_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = trained("qwen2")
    write_tokenizer(tokenizer, tmp_path / "out")
    loaded = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "out"))
    text = TEXT + "<|endoftext|><t12>"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.decode(loaded.encode(text)) == text
    assert loaded.eos_token == "<|endoftext|>"
    assert set(SPECIALS) <= set(loaded.all_special_tokens)
    assert tokenizer.to_transformers().encode(text) == tokenizer.encode(text)
