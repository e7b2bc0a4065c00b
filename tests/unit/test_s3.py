"""S3, as a moto server in this process plays it: read, list, write, and the errors it gives."""

import logging
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from input_forms import DOCUMENTS, all_forms, texts

import raybpe
from raybpe import storage
from raybpe.counts.counts import Counts
from raybpe.errors import InputError, OutputError
from raybpe.inputs import plan_inputs

moto = pytest.importorskip("moto.server", reason="moto stands for S3; pip install 'moto[server]'")

KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    before = {name: os.environ.get(name) for name in KEYS}
    os.environ.update(KEYS)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture
def bucket(endpoint: str) -> tuple[str, str]:
    """A new bucket's URI, and the options that reach it."""
    from pyarrow.fs import S3FileSystem

    name = f"bucket-{uuid.uuid4().hex[:12]}"
    store = S3FileSystem(
        endpoint_override=endpoint, scheme="http", region="us-east-1", allow_bucket_creation=True
    )
    store.create_dir(name)
    return f"s3://{name}", f"?region=us-east-1&scheme=http&endpoint_override={endpoint}"


def test_every_form_reads_the_same(bucket: tuple[str, str]) -> None:
    base, options = bucket
    expected = [text.encode() for text in DOCUMENTS]
    for name, data in all_forms(DOCUMENTS).items():
        storage.write(f"{base}/forms/{name}{options}", data)
        plan = plan_inputs([f"{base}/forms/{name}{options}"], chunk_bytes=100)
        assert texts(plan) == expected, name
        assert plan.sources[0].uri == f"{base}/forms/{name}"


def test_text_by_ranges_folders_and_globs(bucket: tuple[str, str]) -> None:
    base, options = bucket
    text = " ".join(f"word{i} with some others" for i in range(2000)).encode()
    for name in ("a.txt", "deep/b.txt", "deep/.hidden", "deep/c.png"):
        storage.write(f"{base}/data/{name}{options}", text)
    plan = plan_inputs([f"{base}/data{options}"], chunk_bytes=9999)
    assert [source.uri for source in plan.sources] == [
        f"{base}/data/a.txt",
        f"{base}/data/deep/b.txt",
    ]
    assert b"".join(texts(plan)) == text + text
    assert "2 file(s) in folders are not read" in plan.notes[0]
    assert len(plan_inputs([f"{base}/data/**/*.txt{options}"], chunk_bytes=10**6).sources) == 2
    assert len(plan_inputs([f"{base}/data/*.txt{options}"], chunk_bytes=10**6).sources) == 1


def test_options_from_the_environment(bucket: tuple[str, str], endpoint: str, monkeypatch) -> None:
    base, options = bucket
    storage.write(f"{base}/a.txt{options}", b"text")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{endpoint}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert texts(plan_inputs([f"{base}/a.txt"], chunk_bytes=10)) == [b"text"]


def test_counts_and_run_files(bucket: tuple[str, str]) -> None:
    base, options = bucket
    counts = Counts.from_mapping({"low": 5, "lower": 2})
    path = storage.join(f"{base}/run{options}", "counts.arrow")
    counts.save(path)
    assert Counts.load(path) == counts
    assert storage.names(f"{base}/run{options}") == ["counts.arrow"]
    storage.delete(f"{base}/run{options}")
    assert not storage.exists(path)
    storage.check_writable(f"{base}/run{options}")


def test_counts_of_texts_are_not_lost_to_a_store_that_takes_none(bucket: tuple[str, str]) -> None:
    base, options = bucket
    texts: Iterator[str] = iter(["some words"])
    for place in (f"{base}-gone/counts.arrow", f"{base}-gone", f"{base}/"):
        with pytest.raises(OutputError, match="cannot write"):
            raybpe.count_from_iterator(texts, output=f"{place}{options}", progress="none")
    output = f"{base}/counts.arrow{options}"
    counts = raybpe.count_from_iterator(texts, output=output, progress="none")
    assert Counts.load(output) == counts
    assert storage.names(f"{base}{options}") == ["counts.arrow"]


def test_what_was_there_stays_when_writing_is_interrupted(bucket: tuple[str, str]) -> None:
    base, options = bucket
    path = f"{base}/counts{options}"
    storage.write(path, b"before")

    def interrupted(sink: Any) -> None:
        sink.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        storage.write_stream(path, interrupted)
    assert storage.read(path).to_pybytes() == b"before"
    storage.write_stream(path, lambda sink: sink.write(b"after"))
    assert storage.read(path).to_pybytes() == b"after"


def test_files_that_a_later_training_leaves_out_do_not_stay(bucket: tuple[str, str]) -> None:
    base, options = bucket
    output = f"{base}/tokenizer{options}"
    run: dict[str, Any] = {"executor": "local", "progress": "none", "verify": False}
    raybpe.train_from_iterator(["some words"], 260, output=output, **run)
    assert {"tokenizer.json", "tokenizer.tiktoken", "raybpe.json"} <= set(storage.names(output))
    raybpe.train_from_iterator(["some words"], 260, pattern=r"\X+", output=output, **run)
    assert storage.names(output) == ["merges.tsv", "merges.txt", "raybpe.json", "vocab.json"]


def test_what_is_missing_is_named(bucket: tuple[str, str]) -> None:
    base, options = bucket
    with pytest.raises(InputError, match=rf"{base}/gone\.txt does not exist"):
        plan_inputs([f"{base}/gone.txt{options}"], chunk_bytes=10)
    with pytest.raises(InputError, match="does not exist"):
        plan_inputs([f"s3://no-such-bucket-here/a.txt{options}"], chunk_bytes=10)
    with pytest.raises(InputError, match="matches nothing"):
        plan_inputs([f"{base}/*.txt{options}"], chunk_bytes=10)
    with pytest.raises(OutputError, match="cannot write s3://no-such-bucket-here"):
        storage.write(f"s3://no-such-bucket-here/a{options}", b"x")


def test_no_keys_in_what_is_shown(bucket: tuple[str, str], tmp_path: Path) -> None:
    base, options = bucket
    with_keys = base.replace("s3://", "s3://KEY:SECRET@")
    storage.write(f"{base}/a.txt{options}", b"text")
    plan = plan_inputs([f"{with_keys}/a.txt{options}"], chunk_bytes=10)
    assert texts(plan) == [b"text"]
    assert "SECRET" not in f"{plan.sources} {plan.notes}"


def test_over_http(bucket: tuple[str, str], endpoint: str) -> None:
    pytest.importorskip("aiohttp")
    base, options = bucket
    storage.write(f"{base}/b.jsonl.gz{options}", all_forms(["some words"])["a.jsonl.gz"])
    storage.write(f"{base}/a.txt{options}", b"words over http " * 100)
    web = base.replace("s3://", f"http://{endpoint}/")
    found = texts(plan_inputs([f"{web}/a.txt"], chunk_bytes=99))
    assert b"".join(found) == b"words over http " * 100
    assert texts(plan_inputs([f"{web}/b.jsonl.gz"], chunk_bytes=99)) == [b"some words"]
    with pytest.raises(InputError, match=r"gone\.txt does not exist"):
        plan_inputs([f"{web}/gone.txt"], chunk_bytes=99)


def test_another_process_reads_the_store_and_ends_well(
    bucket: tuple[str, str], tmp_path: Path, root: Path
) -> None:
    """S3 filesystems that outlive the interpreter have hung or aborted at its exit."""
    base, options = bucket
    storage.write(f"{base}/a.jsonl{options}", b'{"text": "some words"}\n')
    run = [sys.executable, "-m", "raybpe", "count", f"{base}/a.jsonl{options}"]
    target = f"{base}/counts.arrow{options}"
    done = subprocess.run(
        [*run, "--executor", "local", "--output", target],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert dict(Counts.load(target).items()) == {b"some": 1, b" words": 1}
    assert Counts.load(target).sources[0].uri == f"{base}/a.jsonl"
