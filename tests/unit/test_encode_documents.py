"""Documents of a block encode as each would alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybpe
from raybpe.block import PADDING_BYTES, Block
from raybpe.tokenizer.tokenizer import Tokenizer

TEXTS = ["the cat sat on the mat ", "नमस्ते दुनिया ", "é è ê ", "12 345 "]
PIECES = st.sampled_from(
    [
        b"the cat",
        b" sat",
        b"\n",
        b"<|x|>",
        "नमस्ते".encode(),
        b"\xff",
        b"\xe0\xa4",
        b"\xa8",
        b" ",
        b"",
    ]
)


@pytest.fixture(scope="module", params=["gpt2", "cl100k", r"\w+(?<!q)|\W"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return raybpe.train_from_iterator(
        TEXTS * 3, 320, special_tokens=["<|x|>"], pattern=request.param, progress="none"
    )


@settings(deadline=None, max_examples=60)
@given(
    documents=st.lists(st.lists(PIECES, max_size=5).map(b"".join), min_size=1, max_size=6),
    gap=st.sampled_from([b"", b"\n", b"\r\n", b"\xff\xa8<|x|>"]),
)
def test_as_each_alone(tokenizer: Tokenizer, documents: list[bytes], gap: bytes) -> None:
    data = np.frombuffer(gap + gap.join(documents) + bytes(PADDING_BYTES), np.uint8)
    lengths = np.array([len(document) for document in documents])
    ends = np.cumsum(lengths + len(gap))
    block = Block(data, ends - lengths, ends)
    ids, token_ends = tokenizer.encode_documents(block)
    expected = [tokenizer.encode(document) for document in documents]
    assert ids.tolist() == [i for one in expected for i in one]
    assert token_ends.tolist() == np.cumsum([len(one) for one in expected]).tolist()
