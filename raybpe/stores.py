"""Which URIs name something, and how those that pyarrow.fs does not know are opened.

Only `s3://`, `gs://`, `abfs://`, `hdfs://`, `hf://` and `https://` are promised to work. Other
schemes that fsspec knows are tried, and refused where it needs more than a URI can say.
"""

from __future__ import annotations

import inspect
from typing import Any

WORKING = "s3://, gs://, abfs://, hdfs://, hf://, https://, file:// and plain paths work"
_EXTRAS = {"hf": "hf", "http": "https", "https": "https"}
_WITH_OPTIONS = frozenset({"s3", "gs", "gcs", "abfs", "abfss"})
_HADOOP = frozenset({"hdfs", "viewfs"})
_AUTHORITIES = {
    **dict.fromkeys(("s3", "gs", "gcs"), "bucket"),
    **dict.fromkeys(("abfs", "abfss"), "container"),
    **dict.fromkeys(("http", "https"), "host"),
}
_KINDS_OF_HF = frozenset({"datasets", "spaces", "buckets"})


def nameless(uri: str) -> str | None:
    """Why the URI of a store names nothing in it; None if it does."""
    head, _, rest = uri.partition("://")
    scheme = head.lower()
    authority, _, path = rest.partition("?")[0].partition("/")
    authority = authority.rpartition("@")[2]
    if scheme in _AUTHORITIES and not authority:
        return f"names no {_AUTHORITIES[scheme]}; {WORKING}"
    if scheme == "hf":
        repository = path if authority in _KINDS_OF_HF else f"{authority}/{path}"
        if "/" in repository.strip("/"):
            return None
        return (
            "names no repository; write hf://OWNER/NAME/… for a model, hf://datasets/OWNER/NAME/… "
            "for a data set"
        )
    if scheme == "data":
        return f"holds its own content and names no file; {WORKING}"
    if not authority and not path.strip("/"):
        return f"names nothing; {WORKING}"
    return None


def fsspec_filesystem(scheme: str) -> Any:
    """The filesystem of a scheme.

    Raises:
        ImportError: the package for it is not installed.
        ValueError: there is none, or it needs what a URI does not say.
    """
    import fsspec

    kind = fsspec.get_filesystem_class(scheme)
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    needed = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    if needed:
        raise ValueError(f"fsspec needs {' and '.join(needed)} for it, which a URI does not give")
    try:
        return kind()
    except ImportError:
        raise
    except Exception as error:  # whatever those of strangers raise without their arguments
        raise ValueError(f"{type(error).__name__}: {error}") from error


def cure(scheme: str, error: Exception) -> str:
    """What helps where opening a store raised this."""
    if isinstance(error, ImportError):
        extra = _EXTRAS.get(scheme)
        return f'pip install "raybpe[{extra}]"' if extra else "install that package"
    if scheme in _HADOOP:
        return f"{scheme}:// needs Java and Hadoop on this machine, at JAVA_HOME and HADOOP_HOME"
    return "check the options after the question mark" if scheme in _WITH_OPTIONS else WORKING


def explained(scheme: str, error: OSError) -> Exception:
    """The error of opening a store of pyarrow.fs, without the places where Java was looked for."""
    line = str(error).strip().partition("\n")[0]
    if scheme in _HADOOP and "load lib" in line:
        return ValueError(line)
    return error
