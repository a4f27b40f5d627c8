"""Files at a URL: s3://, gs://, abfss://, hdfs://, file://, and what fsspec knows (az://, ...)."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from sabal.core.extras import import_optional
from sabal.core.files import write_text_whole, write_whole
from sabal.errors import FileError, MissingPackageError, SabalError

GCS_RETRY_SECONDS = 5
"""How long Google Cloud Storage is tried again for, where a URL does not say; Arrow's default, a
quarter of an hour, looks as if it hung."""

ANONYMOUS = "write gs://anonymous@bucket/..."

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(source: object) -> bool:
    """Return whether `source` is a URL rather than a path."""
    return isinstance(source, str) and _URL.match(source) is not None


def local_path(url: str) -> Path | None:
    """Return the path that a URL of this machine (file://) names; None for any other."""
    parts = urlsplit(url)
    here = parts.scheme.lower() == "file" and parts.netloc in ("", "localhost")
    return Path(url2pathname(parts.path)) if here else None


def file_ending(path: str | Path) -> str:
    """Return the ending of a file name, in lower case, at a path or a URL."""
    name = urlsplit(path).path if isinstance(path, str) and is_url(path) else str(path)
    return PurePosixPath(name).suffix.lower()


def join_url(url: str, name: str) -> str:
    """Return the URL of a file in a folder; a query stays at the end."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, as Arrow has them, and the path in it.

    Schemes that Arrow does not know are looked up in fsspec.
    """
    fs = import_optional("pyarrow.fs", "parquet", "to read and write at a URL")
    with url_errors(url, "a URL of a known kind"):
        try:
            system, path = fs.FileSystem.from_uri(_with_retry_limit(url))
        except ValueError as error:
            if "nrecognized" not in str(error):
                raise
            return _fsspec_system(fs, url)
        return system, path


def _with_retry_limit(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("gs", "gcs") or "retry_limit_seconds=" in parts.query:
        return url
    limit = f"retry_limit_seconds={GCS_RETRY_SECONDS}"
    return urlunsplit(parts._replace(query=f"{parts.query}&{limit}" if parts.query else limit))


def _fsspec_system(fs: Any, url: str) -> tuple[Any, str]:
    scheme = urlsplit(url).scheme
    core = import_optional("fsspec.core", "remote", f"for URLs of the kind {scheme}://")
    try:
        system, path = core.url_to_fs(url)
    except ImportError as error:
        raise MissingPackageError(
            f"the package behind {scheme}:// URLs", str(error), "install that package"
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def write_file(path: str | Path, write: Callable[[Path], object]) -> str | Path:
    """Write a file at a path or a URL so that it is either complete or absent.

    `write` fills a temporary file. At a URL, the file is uploaded once it is complete.
    """
    if not isinstance(path, str) or not is_url(path):
        return write_whole(path, write)
    here = local_path(path)
    if here is not None:
        write_whole(here, write)
        return path
    system, name = file_system(path)
    with tempfile.TemporaryDirectory() as folder:
        filled = Path(folder) / "content"
        write(filled)
        with (
            url_errors(path, f"to write {path}"),
            filled.open("rb") as content,
            system.open_output_stream(name) as stream,
        ):
            shutil.copyfileobj(content, stream)
    return path


def write_text_file(path: str | Path, text: str) -> str | Path:
    """Write text in UTF-8 as `write_file` does."""
    if is_url(path):
        return write_file(path, lambda target: target.write_bytes(text.encode()))
    return write_text_whole(path, text)


@contextmanager
def url_errors(
    url: str, expected: str, fix: str = "check the URL and the permissions"
) -> Iterator[None]:
    """Turn the errors of a file system into a FileError about this URL."""
    import pyarrow as pa

    try:
        yield
    except SabalError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "google::cloud::Status" in reason:
            reason = reason.split(" error_info=")[0].split("last message of ")[-1]
            if "access token" in reason:
                reason = "no credentials for Google Cloud Storage"
                fix = f"set GOOGLE_APPLICATION_CREDENTIALS; for a public bucket {ANONYMOUS}"
        raise FileError(expected, f"{reason} ({url})", fix) from None
