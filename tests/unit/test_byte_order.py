"""Numbering of the base tokens, and GPT-2's printable characters for bytes."""

import json

import pytest

from raybpe.errors import UsageError
from raybpe.merges.byte_order import (
    BYTE_TO_CHARACTER,
    CHARACTER_TO_BYTE,
    byte_ids,
    bytes_to_text,
)


def test_every_byte_has_one_printable_character():
    assert len(BYTE_TO_CHARACTER) == len(CHARACTER_TO_BYTE) == 256
    assert all(character.isprintable() for character in CHARACTER_TO_BYTE)
    assert bytes_to_text(b" \n\x00~\xff") == "ĠĊĀ~ÿ"


def test_text_and_bytes_are_inverse():
    everything = bytes(range(256))
    text = bytes_to_text(everything)
    assert bytes(CHARACTER_TO_BYTE[character] for character in text) == everything
    assert " " not in text


def test_gpt2_order_is_that_of_gpt2s_vocabulary(shared):
    vocab = json.loads((shared / "fixtures" / "gpt2_vocab.json").read_text())
    ids = byte_ids("gpt2")
    assert all(vocab[BYTE_TO_CHARACTER[byte]] == ids[byte] for byte in range(256))


def test_orders():
    assert byte_ids("value").tolist() == list(range(256))
    ids = byte_ids("gpt2")
    assert sorted(ids.tolist()) == list(range(256))
    assert (ids[ord("!")], ids[ord("~")], ids[0xA1], ids[0], ids[ord(" ")]) == (0, 93, 94, 188, 220)
    with pytest.raises(UsageError, match="byte order"):
        byte_ids("alphabetical")  # type: ignore[arg-type]
