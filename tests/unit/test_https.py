"""https://, as a server of this process plays it: ranges, streams, versions, errors."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from input_forms import DOCUMENTS, all_forms, texts

import raybpe
from raybpe.config import CountConfig, RunOptions
from raybpe.errors import InputError, TransientError, UsageError
from raybpe.flow.executor import Executor
from raybpe.flow.local import LocalExecutor
from raybpe.flow.progress import progress_for
from raybpe.flow.run_directory import RunDirectory
from raybpe.flow.steps import Tally
from raybpe.inputs import plan_inputs
from raybpe.inputs.find import find_files
from raybpe.pretokenize import PATTERNS

pytest.importorskip("aiohttp", reason="http needs aiohttp")
GPT2 = CountConfig(PATTERNS["gpt2"], "gpt2")
EXPECTED = [text.encode() for text in DOCUMENTS]


class _Handler(http.server.BaseHTTPRequestHandler):
    """Files of a dictionary, with ranges and ETags."""

    files: dict[str, bytes]
    failures: list[int]

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, with_body: bool) -> None:
        data = self.files.get(self.path, self.files.get(self.path.partition("?")[0]))
        if data is None or (with_body and self.failures):
            self.send_response(404 if data is None else self.failures.pop())
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        asked = self.headers.get("Range")
        start, end = 0, len(data)
        if asked:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1, end) if last else end
        self.send_response(206 if asked else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", hashlib.sha256(data).hexdigest())
        self.send_header("Last-Modified", formatdate(0, usegmt=True))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if with_body:
            self.wfile.write(data[start:end])

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, type[_Handler]]]:
    """A server's URI, and the class that holds its files and the failures to come."""
    monkeypatch.setattr("raybpe.filesystems.FIRST_PAUSE_SECONDS", 0.0)

    class Handler(_Handler):
        files: dict[str, bytes] = {}  # noqa: RUF012 - one per server
        failures: list[int] = []  # noqa: RUF012

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, name="http-server", daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}", Handler
    running.shutdown()
    thread.join()
    running.server_close()


def test_every_form(server: tuple[str, type[_Handler]]) -> None:
    base, handler = server
    for name, data in all_forms(DOCUMENTS).items():
        handler.files[f"/{name}"] = data
        for query in ("", "?signature=x", "?X-Amz-Expires=60&X-Amz-Signature=a/b.c%2Fd"):
            plan = plan_inputs([f"{base}/{name}{query}"], chunk_bytes=500)
            assert texts(plan) == EXPECTED, name + query


def test_a_link_that_asks_for_a_file_by_name(server: tuple[str, type[_Handler]]) -> None:
    base, handler = server
    forms = all_forms(DOCUMENTS)
    for name in ("a.jsonl.gz", "a.parquet"):
        handler.files["/get"] = next(d for n, d in forms.items() if n.endswith(name[1:]))
        assert texts(plan_inputs([f"{base}/get?file={name}"], chunk_bytes=500)) == EXPECTED


def test_a_json_link_that_holds_no_records_is_told_of(server: tuple[str, type[_Handler]]) -> None:
    base, handler = server
    handler.files["/a.json"] = b'["no record"]'
    plan = plan_inputs([f"{base}/a.json?signature=x"], chunk_bytes=500)
    assert texts(plan) == [b'["no record"]']
    assert "1 .json file(s) are read as text" in plan.notes[0]
    assert "signature" not in plan.notes[0]


def test_ranges_signatures_and_failures_that_pass(server: tuple[str, type[_Handler]]) -> None:
    base, handler = server
    handler.files["/a.txt"] = b"some words and more " * 500
    handler.failures += [503, 503]
    counts = raybpe.count(f"{base}/a.txt?signature=x", chunk_size=1000, progress="none")
    assert counts.total == 2000 + 1  # the space at the end
    assert [source.uri for source in counts.sources] == [f"{base}/a.txt"]
    with pytest.raises(InputError, match="does not exist"):
        plan_inputs([f"{base}/b.txt"], chunk_bytes=1000)
    plan = plan_inputs([f"{base}/a.txt"], chunk_bytes=10**6)
    handler.failures += [503] * 20
    with pytest.raises(TransientError):
        texts(plan)


def opened(output: Path, *links: str, **more: Any) -> RunDirectory:
    options = RunOptions(executor="local", output=str(output), chunk_bytes=1, **more)
    executor: Executor = LocalExecutor(options, progress_for("none"))
    return RunDirectory.open(links, None, GPT2, options, executor)


def test_work_on_a_link_survives_another_signature(
    server: tuple[str, type[_Handler]], tmp_path: Path
) -> None:
    base, handler = server
    handler.files["/f.txt"] = b"ab"
    output = tmp_path / "c.arrow"
    directory = opened(output, f"{base}/f.txt?signature=x")
    directory.save_partial([0], [], Tally(chunks=1))
    again = opened(output, f"{base}/f.txt?signature=y")
    assert again.identity == directory.identity
    assert again.covered == {0}
    assert again.plan.chunks[0].parts[0].uri.endswith("?signature=y")
    handler.files["/f.txt"] = b"AB"
    with pytest.raises(
        UsageError, match=r"input http.*/f\.txt was '2 bytes of .*, is '2 bytes of "
    ):
        opened(output, f"{base}/f.txt?signature=y")


def test_links_that_differ_in_their_query_are_told_apart(
    server: tuple[str, type[_Handler]], tmp_path: Path
) -> None:
    base, handler = server
    handler.files |= {"/f.txt?x=1": b"ab", "/f.txt?x=2": b"cd"}
    handler.files |= {"/f.txt?x=3": b"ab", "/f.txt?x=4": b"cd"}
    output = tmp_path / "c.arrow"
    links = [f"{base}/f.txt?x=1", f"{base}/f.txt?x=2"]
    directory = opened(output, *links)
    assert [source.uri for source in directory.plan.sources] == [f"{base}/f.txt"] * 2
    directory.save_partial([0], [], Tally(chunks=1))
    assert opened(output, *links).covered == {0}
    # Which of two that are shown alike is which, only the query says.
    assert not opened(output, f"{base}/f.txt?x=3", f"{base}/f.txt?x=4").covered_before
    handler.files["/f.txt?x=2"] = b"CD"
    with pytest.raises(UsageError, match=r"f\.txt \(number 2 of that name\) was '2 bytes of "):
        opened(output, *links)
    with pytest.raises(UsageError, match=r"f\.txt \(number 2 of that name\) is gone"):
        opened(output, links[0])


def test_a_query_counts_where_a_server_tells_no_version(
    server: tuple[str, type[_Handler]], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, handler = server
    handler.files["/f.txt"] = b"ab"
    links = [f"{base}/f.txt?x={number}" for number in (1, 2)]
    one, two = (plan_inputs([link], chunk_bytes=9).fingerprint() for link in links)
    assert one == two
    monkeypatch.setattr("raybpe.inputs.find.store_version", lambda *_: "")
    one, two = (plan_inputs([link], chunk_bytes=9).fingerprint() for link in links)
    assert one != two


def test_versions(server: tuple[str, type[_Handler]]) -> None:
    base, handler = server
    handler.files["/a.txt"] = b"some text"
    first = find_files([f"{base}/a.txt"]).files[0]
    assert first == find_files([f"{base}/a.txt"]).files[0]
    handler.files["/a.txt"] = b"sOme text"
    second = find_files([f"{base}/a.txt"]).files[0]
    assert first.size == second.size
    assert first.version != second.version
