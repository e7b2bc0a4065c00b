"""Training end to end in this process: against the textbook, and the same bytes in any shape."""

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from input_forms import tar

from raybpe import flow, reference, storage
from raybpe.cli.show import training_summary
from raybpe.config import CountConfig, RunOptions, TrainConfig, apply_preset
from raybpe.counts.counts import Counts
from raybpe.counts.unicode_version import unicode_version
from raybpe.errors import (
    InputError,
    InvalidUtf8Error,
    OutputError,
    PatternError,
    TransientError,
    UsageError,
)
from raybpe.flow import checks, steps
from raybpe.flow.run_directory import FOLDER
from raybpe.inputs import plan_inputs
from raybpe.merges.byte_order import byte_ids
from raybpe.pretokenize import PATTERNS

SEPARATOR = "<|endoftext|>"
GPT2 = CountConfig(PATTERNS["gpt2"], "gpt2")
TEXT = ("It's 1 tiny text, isn't it?  Three\n\n  lines; naïve café 12345 \U0001f642 "
        + SEPARATOR + "the the then there they ") * 7  # fmt: skip


def quiet(**options: Any) -> RunOptions:
    return RunOptions(**{"executor": "local", "progress": "none", **options})


def digest(folder: Path) -> dict[str, str]:
    """Hash of every file that two runs must have in common."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name not in ("raybpe.json", "report.html")
    }


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.txt"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("preset", ["hf", "cs336", "rustbpe"])
def test_same_merges_as_the_textbook(tiny: str, preset: str) -> None:
    config = TrainConfig(300, GPT2, **apply_preset(preset))
    result = flow.train([tiny], config, quiet())
    expected, _ = reference.train(
        reference.count_pretokens([TEXT], PATTERNS["gpt2"], [SEPARATOR]),
        config.max_merges,
        tie_break=config.tie_break,
        byte_ids=byte_ids(config.byte_order).tolist(),
    )
    assert result.tokenizer.merges == expected
    assert result.tokenizer.decode(result.tokenizer.encode(TEXT)) == TEXT


def test_special_tokens_stand_where_they_are_asked_to(tiny: str) -> None:
    specials = ("<|a|>", SEPARATOR)
    counting = CountConfig(PATTERNS["gpt2"], "gpt2", specials)
    at_start = flow.train([tiny], TrainConfig(300, counting), quiet()).tokenizer
    at_end = flow.train(
        [tiny], TrainConfig(300, counting, special_tokens_at="end"), quiet()
    ).tokenizer
    assert at_start.special_tokens == {"<|a|>": 0, SEPARATOR: 1}
    assert at_end.special_tokens == {"<|a|>": 298, SEPARATOR: 299}
    assert at_start.merges == at_end.merges
    assert at_start.vocab_size == at_end.vocab_size == 300


def test_special_tokens_at_the_end_follow_the_last_merge_made(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text("ab ab")
    config = TrainConfig(5000, GPT2, special_tokens_at="end")
    tokenizer = flow.train([str(path)], config, quiet()).tokenizer
    assert tokenizer.special_tokens == {SEPARATOR: tokenizer.vocab_size - 1}
    assert list(tokenizer.vocab) == list(range(tokenizer.vocab_size))


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64, 10**6])
@pytest.mark.parametrize("workers", [1, 3])
def test_shape_of_the_work_changes_nothing(tiny: str, chunk_bytes: int, workers: int) -> None:
    config = TrainConfig(300, GPT2)
    expected = flow.train([tiny], config, quiet())
    result = flow.train([tiny], config, quiet(chunk_bytes=chunk_bytes, workers=workers))
    assert result.tokenizer.merges == expected.tokenizer.merges
    assert result.manifest["totals"] == expected.manifest["totals"]


def test_files_are_the_same_whatever_the_shape(tmp_path: Path, sample_text: Any) -> None:
    inputs = []
    for i in range(3):
        path = tmp_path / f"part{i}.txt"
        path.write_bytes(sample_text(300_000)[i * 90_000 : (i + 1) * 90_000].rsplit(b"\n", 1)[0])
        inputs.append(str(path))
    config = TrainConfig(700, GPT2)
    seen = set()
    shapes = itertools.product([4096, 64 * 10**6], [1, 2, 8], [1, -1])
    for i, (chunk_bytes, workers, order) in enumerate(shapes):
        output = tmp_path / f"out{i}"
        options = quiet(chunk_bytes=chunk_bytes, workers=workers, output=str(output), verify=i == 0)
        flow.train(inputs[::order], config, options)
        seen.add(json.dumps(digest(output), sort_keys=True))
    assert len(seen) == 1


def test_hash_seed_changes_nothing(tiny: str, tmp_path: Path) -> None:
    script = (
        "import sys; from raybpe import flow; from raybpe.config import *\n"
        "from raybpe.pretokenize import PATTERNS\n"
        "flow.train(sys.argv[1:2], TrainConfig(300, CountConfig(PATTERNS['gpt2'], 'gpt2')),"
        " RunOptions(executor='local', output=sys.argv[2], progress='none', verify=False))"
    )
    seen = set()
    for seed in ("0", "4711"):
        output = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", script, tiny, output], check=True, env=environment)
        seen.add(json.dumps(digest(output), sort_keys=True))
    assert len(seen) == 1


def test_iterator_and_counts_give_what_files_give(tiny: str) -> None:
    config = TrainConfig(300, GPT2)
    expected = flow.train([tiny], config, quiet()).tokenizer.merges
    assert flow.train_from_iterator([TEXT], config, quiet()).tokenizer.merges == expected
    assert flow.train_from_iterator([TEXT.encode()], config, quiet()).tokenizer.merges == expected
    counts = flow.count([tiny], GPT2, quiet())
    assert flow.train_from_counts(counts, config, quiet()).tokenizer.merges == expected
    assert dict(counts.items()) == dict(
        reference.count_pretokens([TEXT], PATTERNS["gpt2"], [SEPARATOR])
    )


def test_counts_know_their_sources(tiny: str, tmp_path: Path) -> None:
    counts = flow.count([tiny], GPT2, quiet(chunk_bytes=50))
    again = flow.count([tiny], GPT2, quiet(workers=1))
    counts.save(tmp_path / "a.arrow")
    again.save(tmp_path / "b.arrow")
    assert (tmp_path / "a.arrow").read_bytes() == (tmp_path / "b.arrow").read_bytes()
    assert [(source.uri, source.size) for source in counts.sources] == [(tiny, len(TEXT.encode()))]
    assert Counts.load(tmp_path / "a.arrow").config == GPT2


def test_manifest_says_what_was_done(tiny: str, tmp_path: Path) -> None:
    config = TrainConfig(300, GPT2)
    result = flow.train([tiny], config, quiet(output=str(tmp_path / "out")))
    written = json.loads((tmp_path / "out" / "raybpe.json").read_text())
    assert written["fingerprint"] == config.fingerprint()
    assert written["config"]["tie_break"] == "lowest-ids"
    assert written["pattern"] == PATTERNS["gpt2"]
    assert written["inputs"] == [{"uri": tiny, "size": len(TEXT.encode())}]
    assert written["totals"]["text_bytes"] == len(TEXT.encode())
    assert written["totals"]["merges"] == len(result.tokenizer.merges)
    assert written["run"]["executor"] == "local"
    assert written["run"]["chunks"] == {"counted": 1, "resumed": 0}
    assert set(written["run"]["versions"]) >= {"raybpe", "python", "numba", "pyarrow", "regex"}
    assert not (tmp_path / "out" / FOLDER).exists()


# -- running out, finding nothing, refusing ------------------------------------------------------


@pytest.mark.parametrize("text", ["", SEPARATOR * 3])
def test_nothing_to_count_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.txt"
    path.write_text(text)
    with pytest.raises((InputError, PatternError)):
        flow.train([str(path)], TrainConfig(300, GPT2), quiet(output=str(tmp_path / "out")))
    assert not list((tmp_path / "out").glob("*.json"))


def test_empty_iterator_is_an_error() -> None:
    with pytest.raises(InputError, match="no text"):
        flow.train_from_iterator([], TrainConfig(300, GPT2), quiet())


def test_pattern_that_never_matches_is_an_error(tiny: str) -> None:
    counting = CountConfig(r"\\w\+")
    with pytest.raises(PatternError, match="never matched"):
        flow.train([tiny], TrainConfig(300, counting), quiet())


def test_pattern_that_never_matches_stops_before_the_end(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "NEVER_MATCHED_BYTES", 100)
    counted = []
    real = steps.count_chunk
    monkeypatch.setattr(steps, "count_chunk", lambda *a: counted.append(a) or real(*a))
    with pytest.raises(PatternError, match="never matched"):
        flow.train([tiny], TrainConfig(300, CountConfig("xyzzy")), quiet(chunk_bytes=40, workers=1))
    assert len(counted) < len(TEXT.encode()) // 40


def test_invalid_text_names_file_and_offset(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"good text " * 10 + b"\xff" + b" more" * 10)
    for chunk_bytes in (7, 10**6):
        with pytest.raises(InvalidUtf8Error, match=r"bad\.txt.*100"):
            flow.train([str(path)], TrainConfig(300, GPT2), quiet(chunk_bytes=chunk_bytes))


@pytest.mark.parametrize("policy", ["replace", "skip", "keep"])
def test_policies_for_invalid_text_hold_at_any_cut(tmp_path: Path, policy: Any) -> None:
    raw = b"ab\xffcd \xe2\x82 ef\xe2\x82\xac\xf0\x9f\x92 gh " * 20
    path = tmp_path / "bad.txt"
    path.write_bytes(raw)
    config = CountConfig(PATTERNS["gpt2"], "gpt2", invalid_utf8=policy)
    expected: dict[bytes, int] = {}
    if policy == "keep":
        text = raw.decode("utf-8", "surrogateescape")
        pieces = "".join("\0\0" + c + "\0\0" if "\udc80" <= c <= "\udcff" else c for c in text)
        for piece in pieces.split("\0\0"):
            if len(piece) == 1 and "\udc80" <= piece <= "\udcff":
                byte = piece.encode("utf-8", "surrogateescape")
                expected[byte] = expected.get(byte, 0) + 1
            else:
                for token, n in reference.count_pretokens([piece], PATTERNS["gpt2"], []).items():
                    expected[token] = expected.get(token, 0) + n
    else:
        text = raw.decode("utf-8", "replace" if policy == "replace" else "ignore")
        expected = dict(reference.count_pretokens([text], PATTERNS["gpt2"], []))
    for chunk_bytes in (1, 7, 10**6):
        counts = flow.count([str(path)], config, quiet(chunk_bytes=chunk_bytes))
        assert dict(counts.items()) == expected, chunk_bytes


def test_long_and_rare_pretokens_are_left_out_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("aa aa " + "x" * 50 + " " + "y" * 50 + " bb aa aa cc")
    counting = CountConfig(PATTERNS["gpt2"], "gpt2", max_pretoken_length=20)
    config = TrainConfig(300, counting, min_pretoken_count=2)
    for chunk_bytes in (3, 10**6):
        result = flow.train([str(path)], config, quiet(chunk_bytes=chunk_bytes))
        totals = result.manifest["totals"]
        assert totals["long_pretokens_left_out"] == 2
        assert totals["rare_pretokens_left_out"] == {"unique": 3, "occurrences": 3}
        assert not any(b"x" in left + right for left, right in result.tokenizer.merges)
        assert not any(b"c" in left + right for left, right in result.tokenizer.merges)


def test_output_that_cannot_be_written_is_refused_before_counting(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(steps, "count_chunk", lambda *_: pytest.fail("counted"))
    with pytest.raises(OutputError):
        flow.train([tiny], TrainConfig(300, GPT2), quiet(output=str(tmp_path / "file" / "out")))
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize("form", ["iterator", "counts"])
def test_other_ways_to_train_check_their_output_first_too(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    where = quiet(output=str(tmp_path / "file" / "out"))
    config = TrainConfig(300, GPT2)
    monkeypatch.setattr(steps, "start_merging", lambda *_: pytest.fail("merged"))
    unread = (pytest.fail("read") for _ in "a")
    counts = Counts.from_mapping({"ab": 2})
    run: Any = flow.train_from_iterator if form == "iterator" else flow.train_from_counts
    with pytest.raises(OutputError):
        run(unread if form == "iterator" else counts, config, where)


def test_files_that_the_pattern_rules_out_are_named_before_counting(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, "count_chunk", stop)
    config = TrainConfig(300, CountConfig(r"\X"))
    with pytest.raises(KeyboardInterrupt):
        flow.train([tiny], config, quiet(progress="auto", output=str(tmp_path / "out")))
    said = capsys.readouterr().err
    assert "tokenizer_config.json, special_tokens_map.json will be left out: the pattern" in said
    assert "tokenizer.tiktoken will be left out: the pattern" in said


def test_a_pattern_that_cannot_be_compiled_is_told_of(
    tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = TrainConfig(300, CountConfig(r"(?<=a)b|."))
    flow.train([tiny], config, quiet(progress="auto"))
    assert "cannot be compiled (the group" in capsys.readouterr().err
    flow.train_from_iterator([TEXT], config, quiet(progress="auto"))
    assert "cannot be compiled (the group" in capsys.readouterr().err
    flow.train([tiny], TrainConfig(300, GPT2), quiet(progress="auto"))
    assert "compiled (" not in capsys.readouterr().err


# -- tables in memory, and counts made elsewhere ---------------------------------------------------


def test_columns_of_tables_are_found_and_nulls_told(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"body": [TEXT, None, "\ufeffmarked", None]})
    config = TrainConfig(300, GPT2)
    result = flow.train_from_iterator(table, config, quiet(field="body", progress="auto"))
    assert result.tokenizer.vocab_size == 300
    assert result.manifest["totals"]["nulls"] == 2
    assert "2 records have no text" in capsys.readouterr().err
    with pytest.raises(InputError, match="text"):
        flow.train_from_iterator(table, config, quiet())


def test_members_of_tar_files_that_are_not_read_are_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = {"a.txt": TEXT.encode(), "b.pdf": b"%PDF", ".c.txt": b"no", "blob": b"\0"}
    (tmp_path / "a.tar").write_bytes(tar(members))
    (tmp_path / "b.tar").write_bytes(tar({"d.txt": b"more", "e.png": b"no"}))
    result = flow.train(
        [str(tmp_path)], TrainConfig(300, GPT2), quiet(progress="auto", chunk_bytes=1)
    )
    assert result.manifest["totals"]["members_not_read"] == 4
    assert "4 members of tar files are hidden, binary or no files" in capsys.readouterr().err
    result = flow.train([str(tmp_path / "b.tar")], TrainConfig(300, GPT2), quiet())
    assert re.search(r"tar members not read +1\n", training_summary(result, "out"))


def test_the_manifest_says_where_counts_come_from(
    tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = TrainConfig(300, GPT2)
    counts = replace(flow.count([tiny], GPT2, quiet()), unicode="14.0")
    manifest = flow.train_from_counts(counts, config, quiet(progress="auto")).manifest
    assert manifest["unicode"] == "14.0"
    assert "made with Unicode 14.0" in capsys.readouterr().err
    assert manifest["inputs"] == [{"uri": tiny, "size": len(TEXT.encode())}]
    mapping = Counts.from_mapping(dict.fromkeys("abc", 2**62))  # without pairs, which may not wrap
    manifest = flow.train_from_counts(mapping, config, quiet(progress="auto")).manifest
    assert manifest["totals"]["pretokens"] == 3 * 2**62
    assert manifest["unicode"] == unicode_version()
    assert "Unicode" not in capsys.readouterr().err
    config = TrainConfig(300, GPT2, min_pretoken_count=2**62 + 1)
    totals = flow.train_from_counts(mapping, config, quiet()).manifest["totals"]
    assert totals["rare_pretokens_left_out"] == {"unique": 3, "occurrences": 3 * 2**62}


# -- faults ----------------------------------------------------------------------------------------


def test_a_failed_chunk_fails_the_run_and_is_named(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = steps.count_chunk

    def failing(chunk: Any, *rest: Any) -> Any:
        if chunk.index == 3:
            raise RuntimeError("boom")
        return real(chunk, *rest)

    monkeypatch.setattr(steps, "count_chunk", failing)
    with pytest.raises(Exception, match=r"chunk-00000003 .*tiny\.txt.*boom"):
        flow.train([tiny], TrainConfig(300, GPT2), quiet(chunk_bytes=60, workers=2))


def test_transient_trouble_is_tried_again_and_changes_nothing(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(300, GPT2)
    expected = flow.train([tiny], config, quiet())
    real = steps.count_chunk
    failures = {3: 2, 5: 1}

    def flaky(chunk: Any, counting: Any, table: Any, advance: Any) -> Any:
        tally = real(chunk, counting, table, advance)
        if failures.get(chunk.index, 0):
            failures[chunk.index] -= 1
            raise TransientError("try again")  # after the chunk is in the table
        return tally

    monkeypatch.setattr(steps, "count_chunk", flaky)
    result = flow.train([tiny], config, quiet(chunk_bytes=60, workers=2))
    assert result.tokenizer.merges == expected.tokenizer.merges
    assert result.manifest["totals"] == expected.manifest["totals"]
    failures[3] = 9
    with pytest.raises(TransientError):
        flow.train([tiny], config, quiet(chunk_bytes=60, workers=2))


def test_interrupt_stops_all_threads(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = steps.count_chunk

    def slow(chunk: Any, counting: Any, table: Any, advance: Any) -> Any:
        time.sleep(0.05)
        return real(chunk, counting, table, advance)

    monkeypatch.setattr(steps, "count_chunk", slow)
    monkeypatch.setattr(threading.Thread, "join", interrupting(threading.Thread.join), raising=True)
    with pytest.raises(KeyboardInterrupt):
        flow.train([tiny], TrainConfig(300, GPT2), quiet(chunk_bytes=20, workers=2))
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("raybpe-count")]


def test_what_is_counted_is_saved_when_the_run_is_interrupted(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    given = quiet(chunk_bytes=20, workers=2, output=str(output), progress="auto")
    real = steps.count_chunk
    counted: list[int] = []

    def slow(chunk: Any, *rest: Any) -> Any:
        counted.append(chunk.index)
        time.sleep(0.02)
        return real(chunk, *rest)

    monkeypatch.setattr("raybpe.flow.local.STOP_SHARE", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(steps, "count_chunk", slow)
        patch.setattr(threading.Thread, "join", interrupting(threading.Thread.join, counted))
        with pytest.raises(KeyboardInterrupt):
            flow.train([tiny], TrainConfig(300, GPT2), given)
    assert f"{len(counted)} of" in capsys.readouterr().err
    result = flow.train([tiny], TrainConfig(300, GPT2), given)
    assert result.manifest["run"]["chunks"]["resumed"] == len(counted) > 0
    expected = flow.train([tiny], TrainConfig(300, GPT2), quiet())
    assert result.manifest["totals"] == expected.manifest["totals"]
    assert result.tokenizer.merges == expected.tokenizer.merges


def interrupting(join: Any, work: Sequence[int] = (0,)) -> Any:
    """`Thread.join` that is interrupted the first time, once there is work, as by Ctrl-C."""
    calls = iter([True])

    def joining(self: threading.Thread, timeout: float | None = None) -> None:
        if self.name.startswith("raybpe-count") and next(calls, False):
            while not work:
                time.sleep(0.001)
            raise KeyboardInterrupt
        join(self, timeout)

    return joining


def test_an_iterator_that_fails_fails_the_run() -> None:
    def texts() -> Iterator[str]:
        yield "some text"
        raise ValueError("broken source")

    with pytest.raises(ValueError, match="broken source"):
        flow.train_from_iterator(texts(), TrainConfig(300, GPT2), quiet())


def test_auto_is_local_unless_a_cluster_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from raybpe.flow.executor import choose

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert choose(RunOptions()) == ("local", None)
    assert choose(RunOptions(address="a:1"))[0] == "ray"
    monkeypatch.setenv("RAY_ADDRESS", "b:2")
    assert choose(RunOptions())[0] == "ray"
    assert choose(RunOptions(executor="local"))[0] == "local"


def test_wrong_options_are_usage_errors() -> None:
    with pytest.raises(UsageError):
        RunOptions(fan_in=1)


def test_unusual_text_is_remarked_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfmarked text " + b"x\xff " * 5)
    (tmp_path / "b.txt").write_text("ACGT" * 5000)
    counting = CountConfig(PATTERNS["gpt2"], "gpt2", invalid_utf8="skip")
    monkeypatch.setattr(checks, "MANY_PRETOKEN_BYTES", 1000)
    flow.train([str(tmp_path)], TrainConfig(300, counting), quiet(progress="auto"))
    said = capsys.readouterr().err
    assert "1 texts begin with a byte order mark" in said
    assert "5 bytes were not UTF-8" in said
    assert "the longest pretoken has 20,000 bytes" in said
    assert "of the text, so memory" in said


def test_output_within_an_input_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("some text")
    config = TrainConfig(257, CountConfig(PATTERNS["gpt2"], "gpt2"))
    for output in ("text", "text/tokenizer"):
        options = RunOptions(executor="local", output=str(tmp_path / output), progress="none")
        with pytest.raises(UsageError, match="lies within the input folder"):
            flow.train([str(tmp_path / "text")], config, options)
        with pytest.raises(UsageError, match="lies within the input folder"):
            flow.count([str(tmp_path / "text")], config.counting, options)
    options = RunOptions(executor="local", output=str(tmp_path / "text2"), progress="none")
    flow.train([str(tmp_path / "text")], config, options)


@pytest.mark.parametrize("linked", [False, True])
def test_what_an_earlier_run_wrote_is_not_read_through_a_glob(tmp_path: Path, linked: bool) -> None:
    folder, elsewhere = tmp_path / "d", tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "a.txt").write_text("some text")
    output = folder / "tok"
    if linked:
        output, link = elsewhere, output
        elsewhere.mkdir()
        link.symlink_to(elsewhere)
    config = TrainConfig(257, GPT2)
    glob, options = str(folder / "*"), quiet(output=str(output), verify=False)
    flow.train([glob], config, options)
    before = (output / "raybpe.json").read_bytes()
    with pytest.raises(UsageError, match=r"the input .*/tok/.* is what a run writes to the output"):
        flow.train([glob], config, options)
    assert (output / "raybpe.json").read_bytes() == before
    flow.train([str(folder / "*.txt")], config, options)


def test_a_file_may_lie_beside_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    options = quiet(output=str(tmp_path), verify=False)
    for _ in range(2):
        flow.train([str(tmp_path / "a.txt")], TrainConfig(257, GPT2), options)
    with pytest.raises(UsageError, match=r"merges\.txt is what a run writes"):
        flow.train([str(tmp_path / "*.txt")], TrainConfig(257, GPT2), options)


def test_counts_are_not_counted_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    options = quiet(output=str(tmp_path / "c.arrow"))
    for inputs in ([str(tmp_path / "*")], [str(tmp_path / "c.arrow")]):
        (tmp_path / "c.arrow").unlink(missing_ok=True)
        flow.count([str(tmp_path / "a.txt")], GPT2, options)
        with pytest.raises(UsageError, match=r"c\.arrow is what a run writes"):
            flow.count(inputs, GPT2, options)


def test_outputs_in_stores_are_apart_from_the_inputs_too() -> None:
    base = f"memory://{uuid.uuid4()}"
    storage.write(f"{base}/d/a.txt", b"some text")
    config = TrainConfig(257, GPT2)
    options = quiet(output=f"{base}/d/tok", verify=False)
    for folder in (f"{base}/d", f"{base}/", f"{base}/d/tok"):
        with pytest.raises(UsageError, match="lies within the input folder"):
            flow.train([folder], config, options)
    flow.train([f"{base}/d/*"], config, options)
    with pytest.raises(UsageError, match=r"the input memory://.*/d/tok/.* is what a run writes"):
        flow.train([f"{base}/d/*"], config, options)


@pytest.mark.parametrize("name", ["index.json", "shard-00000.parquet", "merges.txt"])
def test_what_an_encoding_wrote_is_no_source(tmp_path: Path, name: str) -> None:
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / name).write_text("text")
    options = RunOptions(output=str(tmp_path / "e"))
    plan = plan_inputs([str(tmp_path / "*")], chunk_bytes=10**6)
    with pytest.raises(UsageError, match=f"{name} is what a run writes to the output .*--output"):
        checks.check_output_is_no_source(plan, options)


def test_a_disk_with_little_room_is_told_of_before_counting(
    sample_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = quiet(output=str(tmp_path / "t"), progress="auto", verify=False)
    flow.train([str(sample_file)], TrainConfig(300, GPT2), options)
    assert "are free" not in capsys.readouterr().err
    little = shutil.disk_usage(tmp_path)._replace(free=7 * 10**6)
    monkeypatch.setattr("raybpe.flow.checks.shutil.disk_usage", lambda _: little)
    options = quiet(output=str(tmp_path / "u"), progress="auto", verify=False)
    flow.train([str(sample_file)], TrainConfig(300, GPT2), options)
    told = capsys.readouterr().err
    assert "only 7 MB are free" in told
    assert told.index("are free") < told.index("count: ")
