"""What `compare` finds."""

from format_helpers import of_merges, trained

from raybpe.evaluate.compare import compare
from raybpe.tokenizer.tokenizer import Tokenizer


def test_equal_tokenizers_are_the_same() -> None:
    again = Tokenizer(trained().vocab, trained().merges, trained().special_tokens)
    found = compare(trained(), again)
    assert found.same
    assert found.same_pattern
    assert found.first_difference is None
    assert found.shared == 256 + 3 + 120
    assert found.only_left == found.only_right == found.other_ids == found.swaps == []
    assert found.special_tokens == {}


def test_more_merges_and_other_merges() -> None:
    merges = [(b"a", b"b"), (b"c", b"d"), (b"ab", b"cd")]
    longer = compare(of_merges(merges[:2]), of_merges(merges))
    assert (longer.first_difference, longer.merges) == (None, (2, 3))
    assert (longer.only_left, longer.only_right) == ([], [258])
    assert not longer.same
    other = compare(of_merges(merges), of_merges([merges[0], (b"x", b"y")]))
    assert other.first_difference == 1
    assert (other.only_left, other.only_right) == ([257, 258], [257])


def test_patterns_and_ignore_merges_count() -> None:
    merges = [(b"a", b"b")]
    found = compare(of_merges(merges), of_merges(merges, pattern="qwen2"))
    assert (found.same, found.same_pattern) == (False, False)
    found = compare(of_merges(merges), of_merges(merges, ignore_merges=True))
    assert (found.same, found.same_pattern, found.same_ignore_merges) == (False, True, False)
    found = compare(of_merges(merges), of_merges(merges, special_tokens=["<x>"]))
    assert found.special_tokens == {"<x>": (None, 257)}
