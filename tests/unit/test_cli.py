"""The command line: what it prints where, its exit codes, its errors."""

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pyarrow as pa
import pyarrow.parquet
import pytest

import raybpe
from raybpe.cli import app as cli
from raybpe.pretokenize import PATTERNS

COMMANDS = [
    "train", "count", "counts", "counts show", "counts add", "counts stats", "encode", "decode",
    "inspect", "compare", "export", "patterns", "doctor",
]  # fmt: skip
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A text and the folder of a tokenizer trained on it."""
    folder = tmp_path_factory.mktemp("trained")
    text = folder / "text.txt"
    text.write_text("the cat sat on the mat<|endoftext|>the dog ate the cat\n" * 50)
    raybpe.train(text, 270, output=folder / "tok", progress="none", executor="local")
    return text, folder / "tok"


def outside(*arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "raybpe", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from raybpe.cli import app; "
        f"codes = [app.run(command.split() + ['--help']) for command in {COMMANDS!r}]; "
        "print([m for m in ('ray', 'numba', 'pyarrow', 'numpy') if m in sys.modules], set(codes))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[] {0}", done.stderr
    assert all(f"Usage: raybpe {command} " in done.stdout for command in COMMANDS)


def test_help_is_quick() -> None:
    def once() -> float:
        before = getrusage(RUSAGE_CHILDREN)
        assert outside("--help").returncode == 0
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, since tests may share the machine with something else.
    assert min(once() for _ in range(5)) < 0.4


def test_train_writes_every_file_and_says_so(run: Run, sample_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "tok"
    code, out, err = run("train", sample_file, "--vocab-size", 600, "-o", output, "-q",
                         "--executor", "local")  # fmt: skip
    assert (code, err) == (0, "")
    assert "600 = 256 bytes + 1 special + 343 merges" in out
    names = {path.name for path in output.iterdir()}
    assert names >= {
        "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json",
        "merges.txt", "tokenizer.tiktoken", "merges.tsv", "raybpe.json",
    }  # fmt: skip


def test_python_and_command_line_agree(run: Run, sample_file: Path, tmp_path: Path) -> None:
    code, _, _ = run("train", sample_file, "--vocab-size", 500, "--compat", "rustbpe", "--pattern",
                     "cl100k", "-o", tmp_path / "tok", "-q", "--executor", "local")  # fmt: skip
    assert code == 0
    by_python = raybpe.train(
        sample_file, 500, compat="rustbpe", pattern="cl100k", executor="local", progress="none"
    )
    assert raybpe.Tokenizer.load(tmp_path / "tok") == by_python


def test_count_add_and_train_from_counts(run: Run, sample_file: Path, tmp_path: Path) -> None:
    one, both = tmp_path / "one.arrow", tmp_path / "both.arrow"
    assert run("count", sample_file, "-o", one, "-q")[0] == 0
    code, out, _ = run("counts", "add", one, one, "-o", both)
    assert code == 0
    assert str(both) in out
    once, twice = raybpe.Counts.load(one), raybpe.Counts.load(both)
    assert twice.total == 2 * once.total
    assert run("train", "--from-counts", one, "--from-counts", one, "--vocab-size", 400, "-o",
               tmp_path / "a", "-q")[0] == 0  # fmt: skip
    assert run("train", sample_file, "--vocab-size", 400, "-o", tmp_path / "b", "-q")[0] == 0
    assert raybpe.Tokenizer.load(tmp_path / "a") == raybpe.Tokenizer.load(tmp_path / "b")


def test_counts_show_and_stats(run: Run, sample_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "counts.arrow"
    run("count", sample_file, "-o", file, "-q", "--pattern", "whitespace")
    code, out, _ = run("counts", "show", file, "--top", 3)
    assert code == 0
    numbers = [int(line.split()[0].replace(",", "")) for line in out.splitlines()]
    assert len(numbers) == 3
    assert numbers == sorted(numbers, reverse=True)
    code, out, _ = run("counts", "show", file, "--find", "import")
    assert code == 0
    assert all("import" in line for line in out.splitlines())
    code, out, _ = run("counts", "stats", file)
    assert code == 0
    assert "whitespace" in out


def test_patterns_says_how_each_runs(run: Run) -> None:
    code, out, _ = run("patterns")
    rows = {line.split("\t")[0]: line.split("\t")[1] for line in out.splitlines()}
    assert code == 0
    assert rows["gpt2"] == "scan"
    assert rows["cl100k"] == "automaton"
    code, out, _ = run("patterns", r"(?<=a)b")
    assert code == 0
    assert out.split("\t")[1].startswith("regex")


def test_patterns_fit_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("patterns", "o200k")
    assert code == 0
    lead = len("o200k  automaton  ")
    assert "".join(line[lead:] for line in out.splitlines()) == PATTERNS["o200k"]
    assert max(map(len, out.splitlines())) == 80


WRONG = [
    ([], "no INPUT"),
    (["x.txt", "--from-counts", "y.arrow"], "either"),
    (["{text}", "--vocab-size", "100"], "too small"),
    (["{text}", "--special-token", ""], "empty"),
    (["{text}", "--special-token", "a", "--special-token", "a"], "twice"),
    (["{text}", "--special-token", "a", "--no-special-tokens"], "contradict"),
    (["{text}", "--pattern", "(a"], "position"),
    (["{text}", "--pattern", "gpt3"], "gpt3"),
    (["{text}", "--pattern", "x" * 5000], "x" * 80 + "'"),
    (["{text}", "--compat", "hugging"], "hugging"),
    (["{text}", "--tie-break", "random"], "lowest-ids"),
    (["{text}", "--chunk-size", "many"], "64MB"),
    (["{text}", "--chunk-size", "0"], "size"),
    (["{text}", "--workers", "0"], "workers"),
    (["{text}", "--executor", "slurm"], "slurm"),
    (["{text}", "--invalid-utf8", "maybe"], "replace"),
    (["{text}", "--quiet", "--progress-json"], "contradict"),
    (["{text}", "--nonsense"], "nonsense"),
    (["{text}", "--min-frequency", "0"], "min-frequency"),
    (["{text}", "--output", ""], "empty"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG, ids=lambda value: str(value))
def test_wrong_command_lines_end_with_two(
    run: Run, trained: tuple[Path, Path], tmp_path: Path, arguments: list[str], said: str
) -> None:
    given = [argument.format(text=trained[0]) for argument in arguments]
    if "--vocab-size" not in given:
        given += ["--vocab-size", "300"]
    code, out, err = run("train", "-o", tmp_path / "tok", *given)
    assert code == 2, err
    assert out == ""
    assert err.startswith("error: ")
    assert said in err
    assert "Traceback" not in err
    assert not (tmp_path / "tok").exists()


BROKEN: list[tuple[str, bytes | None, str]] = [
    ("empty", b"", "empty"),
    ("missing", None, "does not exist"),
    ("invalid", b"good text\n" * 3 + b"bad \xff byte", "byte"),
]


@pytest.mark.parametrize(("name", "content", "said"), BROKEN, ids=lambda value: str(value)[:20])
def test_failed_runs_end_with_one(
    run: Run, tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    text = tmp_path / f"{name}.txt"
    if content is not None:
        text.write_bytes(content)
    code, out, err = run("train", text, "--vocab-size", 300, "-o", tmp_path / "tok", "-q")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert f"{name}.txt" in err
    assert said in err
    assert not (tmp_path / "tok" / "tokenizer.json").exists()


def test_invalid_utf8_names_the_byte(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"a" * 1000 + b"\xff" + b"b" * 1000)
    code, _, err = run("count", text, "-q", "-o", tmp_path / "c.arrow")
    assert code == 1
    assert "1,000" in err or "1000" in err
    for policy, total in (("replace", 1), ("skip", 1), ("keep", 3)):
        assert run("count", text, "-q", "-o", tmp_path / "c.arrow", "--invalid-utf8", policy,
                   "--pattern", "none")[0] == 0  # fmt: skip
        assert raybpe.Counts.load(tmp_path / "c.arrow").total == total


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"hello\n" * 100, os.urandom(64)])
def test_foreign_counts_are_refused(run: Run, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "foreign.arrow"
    file.write_bytes(content)
    for command in (["counts", "show"], ["counts", "stats"], ["counts", "add"]):
        code, _, err = run(*command, file)
        assert code == 1, err
        assert "foreign.arrow" in err
    assert run("train", "--from-counts", file, "--vocab-size", 300, "-o", tmp_path / "t")[0] == 1


def test_strict_turns_running_out_into_an_error(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("ab ab")
    code, out, err = run("train", text, "--vocab-size", 500, "-o", tmp_path / "tok")
    assert code == 0
    assert "no pair" in err
    assert "259 = " in out
    code, _, err = run("train", text, "--vocab-size", 500, "-o", tmp_path / "tok2", "--strict")
    assert code == 1
    assert "--strict" in err
    assert not (tmp_path / "tok2" / "tokenizer.json").exists()


def test_unwritable_output_is_refused_before_counting(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    text = tmp_path / "text.txt"
    text.write_text("some text")
    monkeypatch.setattr("raybpe.flow.steps.count_chunk", lambda *_: pytest.fail("counted"))
    for command in (["train", "--vocab-size", 260], ["count"]):
        code, _, err = run(*command, text, "-o", file / "tok", "-q")
        assert code == 1
        assert str(file) in err
        assert "a file is where a folder is needed" in err
        assert file.read_text() == "in the way"


def test_a_fault_of_ours_is_one_paragraph(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("raybpe.doctor.machine_rows", explode)
    code, _, err = run("doctor")
    assert code == 1
    assert "ZeroDivisionError: oops" in err
    assert "Traceback" not in err
    code, _, err = run("--debug", "doctor")
    assert "Traceback" in err
    code, _, err = run("doctor", "--debug")
    assert "Traceback" in err


def test_interrupt_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("raybpe.doctor.machine_rows", interrupt)
    assert run("doctor")[0] == 130


def test_interrupt_while_importing_ends_with_130(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}"}
    command = [sys.executable, "-m", "raybpe", "patterns"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_closed_output_is_no_error(trained: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "raybpe", "inspect", str(trained[1]), "--list"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait() == 0


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", ">&- 2>&- <&-"])
def test_streams_that_are_not_there(trained: tuple[Path, Path], streams: str) -> None:
    shell = f'"$0" -m raybpe counts --help {streams}; "$0" -m raybpe inspect "$1" {streams}'
    done = subprocess.run(
        ["sh", "-c", shell, sys.executable, str(trained[1])], capture_output=True, check=True
    )
    assert done.stderr == b""


def test_standard_input_that_is_closed_holds_no_text(tmp_path: Path) -> None:
    output = tmp_path / "tok"
    shell = '"$0" -m raybpe train - --vocab-size 300 -q --pattern none -o "$1" <&-'
    done = subprocess.run(["sh", "-c", shell, sys.executable, str(output)], capture_output=True)
    assert done.returncode == 1
    assert b"no text" in done.stderr
    assert not output.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_takes_no_more(trained: tuple[Path, Path]) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "raybpe", "inspect", str(trained[1]), "--list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert b"no space is left" in done.stderr
    assert b"not foreseen" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux alone")
def test_names_that_are_not_utf8(trained: tuple[Path, Path], tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/d\xff")
    os.mkdir(folder)
    name = os.fsdecode(b"a\xfe")
    for suffix, content in (("txt", b"b b b"), ("txt.gz", gzip.compress(b"c c c"))):
        Path(folder, f"{name}.{suffix}").write_bytes(content)
    table = pa.table({"text": ["d d d"]})
    pa.parquet.write_table(table, tmp_path / "table")
    os.rename(tmp_path / "table", os.path.join(folder, f"{name}.parquet"))
    counts, tokenizer = os.path.join(folder, "n.counts"), folder + "-tok"

    def command(*arguments: str) -> bytes:
        full = [sys.executable, "-m", "raybpe", *arguments]
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(full, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    command("train", folder, "-o", tokenizer, "--vocab-size", "260")
    manifest = json.loads(Path(tokenizer, "raybpe.json").read_bytes())
    assert manifest["inputs"][0]["uri"] == rf"{tmp_path}/d\udcff/a\udcfe.parquet"
    inputs = [os.path.join(folder, f"{name}.{suffix}") for suffix in ("txt", "txt.gz", "parquet")]
    command("count", *inputs, "-o", counts)
    assert command("counts", "show", counts).count(b"\n") == 6
    command("inspect", tokenizer)


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"raybpe {raybpe.__version__}\n", "")


def test_progress_is_json_when_asked(run: Run, trained: tuple[Path, Path], tmp_path: Path) -> None:
    code, _, err = run("train", trained[0], "--vocab-size", 300, "-o", tmp_path / "tok",
                       "--progress-json")  # fmt: skip
    assert code == 0
    events = [json.loads(line) for line in err.splitlines()]
    assert {event["stage"] for event in events if event["event"] == "stage"} >= {"count", "merge"}


def test_inspect_compare_export(run: Run, trained: tuple[Path, Path], tmp_path: Path) -> None:
    code, out, _ = run("inspect", trained[1])
    assert code == 0
    assert "unreachable tokens" in out
    code, out, _ = run("inspect", trained[1], "--list")
    assert code == 0
    assert out.startswith("0\t'<|endoftext|>'\n")
    assert len(out.splitlines()) == 270
    for form, name in (("hf", "tokenizer.json"), ("tiktoken", "x.tiktoken")):
        assert run("export", trained[1], "--format", form, "-o", tmp_path / name)[0] == 0
    code, out, _ = run("compare", trained[1], tmp_path / "tokenizer.json")
    assert code == 0
    assert out.startswith("the same")
    other = tmp_path / "other"
    assert run("train", trained[0], "--vocab-size", 265, "-o", other, "-q")[0] == 0
    code, out, _ = run("compare", trained[1], other)
    assert code == 0
    assert "only in the first" in out
    assert run("export", trained[1], "--format", "word", "-o", tmp_path / "x")[0] == 2
    assert run("inspect", tmp_path / "nothing")[0] == 1


def test_encode_and_decode(
    trained: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    text, tokenizer = trained
    assert cli.run(["encode", str(tokenizer), str(text), "-o", str(tmp_path / "t"), "-q"]) == 0
    capsysbinary.readouterr()
    assert cli.run(["decode", str(tokenizer), str(tmp_path / "t")]) == 0
    assert capsysbinary.readouterr().out == text.read_bytes()
    monkeypatch.setattr(sys, "stdin", io.StringIO("1 2, 3\n"))
    assert cli.run(["decode", str(tokenizer)]) == 0
    assert capsysbinary.readouterr().out == b'!"#'
    monkeypatch.setattr(sys, "stdin", io.StringIO("1 x"))
    assert cli.run(["decode", str(tokenizer)]) == 1
    assert cli.run(["encode", str(tokenizer)]) == 2
