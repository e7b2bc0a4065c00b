"""URIs: what is shown of them, and what is refused."""

import pytest

from raybpe.errors import UsageError
from raybpe.filesystems import explain, resolve, shown


def test_the_signature_of_a_link_is_not_shown() -> None:
    assert shown("https://me:secret@host/a?signature=secret") == "https://host/a"


@pytest.mark.parametrize("uri", ["https://host/a?signature=secret", "s3://me:secret@bucket/a"])
def test_errors_of_libraries_do_not_show_keys(uri: str) -> None:
    assert "secret" not in str(explain(uri, OSError(f"403 forbidden, url={uri}")))
    assert "secret" not in str(explain(uri, OSError(f"cannot parse {uri}")))


@pytest.mark.parametrize("uri", ["memory://folder/a?version=2", "s3://me:secret@bucket/a?foo=1"])
def test_options_that_nothing_reads_are_refused(uri: str) -> None:
    with pytest.raises(UsageError, match="question mark") as caught:
        resolve(uri)
    assert "secret" not in str(caught.value)
