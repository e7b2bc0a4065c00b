"""Encoding and decoding: faults that people reported of other tools, and what is right here."""

import base64
from pathlib import Path
from time import perf_counter

import pytest
from encode_helpers import encode_plainly
from format_helpers import of_merges

from raybpe.cli import app as cli
from raybpe.errors import FormatError
from raybpe.evaluate.audit import audit
from raybpe.formats import export_tokenizer, write_tokenizer
from raybpe.pretokenize import PATTERNS
from raybpe.tokenizer import Tokenizer

BYTES = {byte: bytes([byte]) for byte in range(256)}


def doublings(letter: bytes, times: int) -> list[tuple[bytes, bytes]]:
    return [(letter * 2**k, letter * 2**k) for k in range(times)]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_million_of_one_character_are_no_crash(pattern: str) -> None:
    """openai/tiktoken #15, #245, #327: a long run overflows the regex engine's stack."""
    run = "^" * 10**6
    plain = of_merges([], pattern=pattern)
    assert plain.encode(run) == [ord("^")] * 10**6
    merged = of_merges(doublings(b"^", 4), pattern=pattern)
    ids = merged.encode(run)
    assert len(ids) == 10**6 // 16
    assert merged.decode(ids) == run


@pytest.mark.parametrize("merges", [0, 1, 16])
def test_one_long_piece_takes_no_time_to_speak_of(merges: int) -> None:
    """openai/tiktoken #195, #391: time grows with the square of a piece's length."""
    tokenizer = of_merges(doublings(b"a", merges), pattern="none")
    assert tokenizer.encode("a" * 5) == encode_plainly(tokenizer, b"a" * 5)  # all is compiled
    tokenizer.encode("a" * 3000)
    text = "a" * 100_000
    began = perf_counter()
    ids = tokenizer.encode(text)
    assert perf_counter() - began < 1
    assert tokenizer.decode(ids) == text
    assert len(ids) == 10**5 if merges == 0 else len(ids) <= 10**5 // 2


def test_a_split_character_waits_for_its_end() -> None:
    """Blaizzy/mlx-vlm PR #1778: flushing a stream at a space breaks a character in two."""
    euro = "€".encode()
    tokenizer = Tokenizer(BYTES | {256: euro[:2], 257: euro[2:] + b"!", 258: b" x"}, [])
    for ids, expected in (
        ([*euro, 32], ["", "", "€", " "]),
        ([256, euro[2], 258], ["", "€", " x"]),
        ([256, 257, 32], ["", "€!", " "]),
    ):
        stream = tokenizer.decode_stream()
        assert [stream.feed(number) for number in ids] == expected
        assert stream.flush() == ""


def test_the_longest_special_token_wins() -> None:
    """huggingface/transformers #12894, invergent-ai/surogate #157, keras-team/keras-hub #1435."""
    for specials in (["<t1>", "<t12>", "<t1"], ["<t1", "<t12>", "<t1>"]):
        tokenizer = Tokenizer(BYTES, [], specials)
        names = {number: text for text, number in tokenizer.special_tokens.items()}
        for text, expected in (
            ("<t12><t1>", ["<t12>", "<t1>"]),
            ("<t1><t12>", ["<t1>", "<t12>"]),
            ("<t12", ["<t1", None]),
        ):
            ids = tokenizer.encode(text)
            assert [names.get(number) for number in ids] == expected
            assert tokenizer.encode_to_numpy(text).tolist() == ids
            assert list(tokenizer.encode_iterable([text[:3], text[3:]])) == ids
            assert tokenizer.decode(ids) == text


def test_a_vocabulary_without_every_byte_is_refused_with_the_bytes_named(tmp_path: Path) -> None:
    """openai/tiktoken #289: a byte that has no rank is a panic at encoding."""
    with pytest.raises(FormatError, match=r"no token for the single bytes 0x00, 0x01, .*more"):
        Tokenizer({0: b"a", 1: "“".encode()}, [])
    path = tmp_path / "x.tiktoken"
    path.write_text(
        f"{base64.b64encode(b'a').decode()} 0\n{base64.b64encode('“'.encode()).decode()} 1\n"
    )
    with pytest.raises(FormatError, match=r"x\.tiktoken.*no rank for the single bytes 0x00"):
        Tokenizer.load(path, pattern="gpt2")
    lacking = {number: token for number, token in BYTES.items() if token not in b"zq"}
    with pytest.raises(FormatError, match="no token for the single bytes 0x71, 0x7a,"):
        Tokenizer(lacking, [])


def test_a_merge_listed_twice_is_refused(tmp_path: Path) -> None:
    """ohdearquant/lattice #259: of merges a b, x y, a b the last takes the rank of the first."""
    merges = [(b"a", b"b"), (b"x", b"y"), (b"a", b"b")]
    vocab = BYTES | {256: b"ab", 257: b"xy"}
    with pytest.raises(FormatError, match=r"merge 2 \(b'a', b'b'\) is a repetition of merge 0"):
        Tokenizer(vocab, merges)
    export_tokenizer(Tokenizer(vocab, merges[:2]), "gpt2", tmp_path)
    with (tmp_path / "merges.txt").open("a") as file:
        file.write("a b\n")
    with pytest.raises(FormatError, match=r"repetition of merge 0"):
        Tokenizer.load(tmp_path)


def test_a_token_that_no_merge_makes_is_listed_and_its_export_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """robertknight/rten #453, ggml-org/llama.cpp PR #7193, huggingface/tokenizers #1537."""
    tokenizer = Tokenizer(BYTES | {256: b"abc"}, [], pattern="none")
    assert audit(tokenizer).unreachable == [256]
    assert tokenizer.encode("abc") == [*b"abc"]
    assert tokenizer.encode("abcd") == [*b"abcd"]
    left_out = write_tokenizer(tokenizer, tmp_path / "tok", sample=["abc", "abcd"]).left_out
    assert "b'abc'" in left_out["tokenizer.tiktoken"]  # where a token without a merge is one
    for form in ("hf", "gpt2", "cs336"):
        command = ["export", str(tmp_path / "tok"), "--format", form, "-o", str(tmp_path / form)]
        assert cli.run(command) == 0
        assert "1 tokens are never made by the merges: 256:'abc'" in capsys.readouterr().err
    complete = of_merges([(b"a", b"b"), (b"ab", b"c")], pattern="none")
    write_tokenizer(complete, tmp_path / "complete")
    path = str(tmp_path / "complete")
    assert cli.run(["export", path, "--format", "hf", "-o", str(tmp_path / "x.json")]) == 0
    assert capsys.readouterr().err == ""
    assert [complete.encode(token) for token in complete.vocab.values()] == [
        [number] for number in complete.vocab
    ]


def test_dropout_has_a_seed_and_drops_to_bytes_and_never_splits_a_special_token() -> None:
    """VKCOM/YouTokenToMe #67, google/sentencepiece #607, rsennrich/subword-nmt #90."""
    merges = [(b"h", b"e"), (b"l", b"l"), (b"he", b"ll"), (b"hell", b"o")]
    hello = of_merges(merges, special_tokens=["</s>"])
    assert hello.encode("hello") == [259]
    assert hello.encode("hello", dropout=1.0) == [*b"hello"]
    assert hello.encode("hello</s>", dropout=1.0) == [*b"hello", hello.special_tokens["</s>"]]
    one, again, other = (hello.encode("hello" * 50, dropout=0.5, seed=s) for s in (1, 1, 2))
    assert one == again != other
