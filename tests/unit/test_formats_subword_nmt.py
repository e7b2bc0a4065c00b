"""Codes of subword-nmt."""

from pathlib import Path

import pytest

from raybpe.errors import FormatError
from raybpe.formats.subword_nmt import END_OF_WORD, SubwordCodes, read_codes
from raybpe.reference import train_on_characters
from raybpe.tokenizer.stream import DecodeStream

WORDS = {"low": 5, "lower": 2, "newest": 6, "widest": 3, "naïve": 4, "日本語": 3, "aaaa": 4}
TEXT = "lowest newer 日本 aaaaa naïve x"


@pytest.fixture
def codes() -> SubwordCodes:
    return SubwordCodes(tuple(train_on_characters(WORDS, 40)))


def test_words_of_the_training_text_are_whole(codes: SubwordCodes) -> None:
    for word in ("newest", "naïve", "日本語", "low"):
        assert codes.segment(word) == [word + END_OF_WORD]
    assert codes.segment("lowx") == ["lo", "w", "x" + END_OF_WORD]


def test_what_is_cut_comes_together_again(codes: SubwordCodes) -> None:
    assert codes.decode(codes.segment(TEXT)) == TEXT


def test_written_and_read(codes: SubwordCodes, tmp_path: Path) -> None:
    path = tmp_path / "codes.bpe"
    path.write_bytes(codes.render())
    assert path.read_text().startswith("#version: 0.2\n")
    assert read_codes(path) == codes


def test_pieces_stream_word_by_word(codes: SubwordCodes) -> None:
    ids = {token: number for number, token in codes.vocab.items()}
    stream = DecodeStream(codes.vocab, end_of_word=END_OF_WORD)
    text = "newest low naïve"
    fed = [stream.feed(ids[piece.encode()]) for piece in codes.segment(text)]
    assert "".join(fed) + stream.flush() == text


def test_same_pieces_as_subword_nmt(codes: SubwordCodes, tmp_path: Path) -> None:
    apply_bpe = pytest.importorskip("subword_nmt.apply_bpe")
    path = tmp_path / "codes.bpe"
    path.write_bytes(codes.render())
    with path.open(encoding="utf-8") as file:
        theirs = apply_bpe.BPE(file).process_line(TEXT).split()
    ours = [
        piece.removesuffix(END_OF_WORD) if piece.endswith(END_OF_WORD) else piece + "@@"
        for piece in codes.segment(TEXT)
    ]
    assert ours == theirs


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a b\n", "does not begin with"),
        ("", "does not begin with"),
        ("#version: 0.1\na b\n", "does not begin with"),
        ("#version: 0.2\na b\nab\n", "line 3"),
        ("#version: 0.2\na  b\n", "line 2"),
        ("#version: 0.2\na b c\n", "line 2"),
        ("#version: 0.2\na b\na b\n", "line 3 repeats"),
    ],
)
def test_faults_are_named(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "codes").write_text(text)
    with pytest.raises(FormatError, match=reason):
        read_codes(tmp_path / "codes")
