"""URIs: what is shown of them, and what is refused."""

import socket
from typing import NoReturn

import pytest

from raybpe.errors import InputError, TransientError, UsageError
from raybpe.filesystems import explain, resolve, shown
from raybpe.inputs.find import find_files


def test_the_signature_of_a_link_is_not_shown() -> None:
    assert shown("https://me:secret@host/a?signature=secret") == "https://host/a"


@pytest.mark.parametrize("uri", ["https://host/a?signature=secret", "s3://me:secret@bucket/a"])
def test_errors_of_libraries_do_not_show_keys(uri: str) -> None:
    assert "secret" not in str(explain(uri, OSError(f"403 forbidden, url={uri}")))
    assert "secret" not in str(explain(uri, OSError(f"cannot parse {uri}")))


@pytest.mark.parametrize(
    "uri",
    [
        "memory://folder/a?version=2",
        "memory://folder/a?token=secret",
        "s3://me:secret@bucket/a?foo=1",
    ],
)
def test_options_that_nothing_reads_are_refused(uri: str) -> None:
    with pytest.raises(UsageError, match="question mark") as caught:
        resolve(uri)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("uri", ["https://nowhere.invalid/a", "hf://datasets/a/b/c.txt"])
def test_a_host_that_cannot_be_reached_is_no_missing_file(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve_nothing(*_: object, **__: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    pytest.importorskip("aiohttp" if uri.startswith("https") else "huggingface_hub")
    monkeypatch.setattr(socket, "getaddrinfo", resolve_nothing)
    monkeypatch.setattr("raybpe.filesystems.FIRST_PAUSE_SECONDS", 0.0)
    with pytest.raises(TransientError, match=r"host of .* could not be reached"):
        find_files([uri])


def test_a_missing_file_of_a_host_that_answers() -> None:
    assert isinstance(explain("https://host/a", FileNotFoundError("https://host/a")), InputError)
