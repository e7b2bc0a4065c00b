"""How a command differs from an unfinished one, in words."""

import pytest

from raybpe.errors import UsageError
from raybpe.flow.differences import refuse_differences

BEFORE = {
    "config": {"vocab_size": 400, "counting": {"pattern_name": "gpt2"}},
    "inputs": {"a.txt": "5 bytes", "b.txt": "6 bytes"},
    "fan_in": 8,
    "plan": "1f",
}


def test_the_same_goes_on() -> None:
    refuse_differences(BEFORE, dict(BEFORE), "out has a run", "throw it away")
    refuse_differences(BEFORE, BEFORE | {"plan": "2e"}, "out has a run", "throw it away")


def test_each_difference_is_named() -> None:
    now = {
        "config": {"vocab_size": 401, "counting": {"pattern_name": "gpt2"}},
        "inputs": {"a.txt": "5 bytes", "c.txt": "6 bytes"},
        "fan_in": 9,
        "plan": "2e",
    }
    with pytest.raises(UsageError) as caught:
        refuse_differences(BEFORE, now, "out has a run", "throw it away")
    assert str(caught.value) == (
        "out has a run that differs: vocab size was 400, is 401; input b.txt is gone; fan in was "
        "8, is 9; input c.txt is new. Give the same settings and inputs to continue it, "
        "--no-resume to throw it away, or another --output"
    )


def test_what_is_long_is_cut() -> None:
    many = {"inputs": {f"{number}.txt": "5 bytes" for number in range(100)}}
    with pytest.raises(UsageError, match=r"; and 88 more\. Give"):
        refuse_differences({"inputs": {}}, many, "out has a run", "throw it away")
    with pytest.raises(UsageError, match=r"xxx… \(100,002 characters\)") as caught:
        refuse_differences({"pattern": "x" * 100_000}, {"pattern": ""}, "out", "throw it away")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("inputs", [None, 3, "text", [], [3], [{"uri": []}], {}])
def test_records_may_hold_anything(inputs: object) -> None:
    with pytest.raises(UsageError, match="input"):
        refuse_differences({"inputs": inputs}, {"inputs": {"a.txt": "5"}}, "out", "replace it")
