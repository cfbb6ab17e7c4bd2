"""Whether a file is the published one and whole: size, checksum, integrity, number of rows."""

import gzip
import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from castpoi.checkins.fetch_sources import Source
from castpoi.core.errors import DownloadFailed

_CHUNK: Final = 1 << 20
_LONGEST_TEXT: Final = 8 << 30
"""Unpacked, no data set we fetch comes near this; more is a bomb."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What is known of a file after all checks passed."""

    bytes: int
    sha256: str
    rows: int
    checks: tuple[str, ...]
    """The checks that were made and passed."""
    checksum: str
    """Which published checksum the file, or the zip it comes from, was held against."""


CHECKSUM_NOT_KNOWN: Final = "checksum not known"


def check_published(path: Path, source: Source) -> Checked:
    """Check a file as published (a zip or a gzip) in every way that is known."""
    checks: list[str] = []
    size = path.stat().st_size
    if source.size is not None:
        if size != source.size:
            raise DownloadFailed(f"it has {size:,} bytes, the published file has {source.size:,}")
        checks.append("size")
    if source.checksum is not None:
        method, expected = source.checksum.method, source.checksum.digest
        found = digest_of(path, method)
        if found != expected:
            raise DownloadFailed(f"its {method} is {found}, that of the published file {expected}")
        checks.append(method)
    with unpacked(path, source) as text:
        rows = _enough_rows(text, source)
    return Checked(
        bytes=size,
        sha256=digest_of(path, "sha256"),
        rows=rows,
        checks=(*checks, "integrity", "rows"),
        checksum=f"{checks[-1]} of {source.published}" if source.checksum else CHECKSUM_NOT_KNOWN,
    )


def check_text(path: Path, source: Source, *, checksum: str = CHECKSUM_NOT_KNOWN) -> Checked:
    """Check a text from a zip; of the text alone only the number of rows is published."""
    with path.open("rb") as text:
        rows = _enough_rows(text, source)
    return Checked(
        bytes=path.stat().st_size,
        sha256=digest_of(path, "sha256"),
        rows=rows,
        checks=("rows",),
        checksum=checksum,
    )


def digest_of(path: Path, method: str) -> str:
    """The digest of a whole file in hexadecimal digits."""
    with path.open("rb") as content:
        return hashlib.file_digest(
            content, lambda: hashlib.new(method, usedforsecurity=False)
        ).hexdigest()


@contextmanager
def unpacked(path: Path, source: Source) -> Iterator[IO[bytes]]:
    """The text of check-ins inside a zip or gzip, from its first byte to its checked end."""
    try:
        if not source.members:
            with gzip.open(path) as text:
                yield text  # type: ignore[misc]  # GzipFile reads bytes like any binary file
            return
        with zipfile.ZipFile(path) as folder, folder.open(_member(folder, source)) as text:
            yield text
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as problem:
        kind = "zip" if source.members else "gzip"
        raise DownloadFailed(f"it is not a whole {kind} file: {problem}") from problem
    except (NotImplementedError, RuntimeError) as problem:
        # zipfile says so of encryption and of compressions it does not know
        raise DownloadFailed(f"it cannot be unpacked: {problem}") from problem


def _member(folder: zipfile.ZipFile, source: Source) -> zipfile.ZipInfo:
    present = set(folder.namelist())
    for name in source.members:
        if name in present:
            return folder.getinfo(name)
    raise DownloadFailed(f"it holds no {source.file}")


def _enough_rows(text: IO[bytes], source: Source) -> int:
    rows, length, last = 0, 0, b"\n"
    while chunk := text.read(_CHUNK):
        rows += chunk.count(b"\n")
        length += len(chunk)
        last = chunk[-1:]
        if length > _LONGEST_TEXT:
            raise DownloadFailed(f"it unpacks to more than {_LONGEST_TEXT:,} bytes")
    rows += last != b"\n"
    if rows < source.least_rows:
        raise DownloadFailed(f"it has {rows:,} rows, at least {source.least_rows:,} are published")
    return rows
