"""Downloading public data sets into a folder, with every check that is possible.

    FOLDER/FILE                    the input of `castpoi data prepare`
    FOLDER/FILE.source.json        address, size, SHA-256, checks, date, what to cite
    FOLDER/dataset_tsmc2014.zip    kept, because New York and Tokyo are in the same zip
    FOLDER/FILE.part               an unfinished download; the next command resumes it

A file gets its name only after every check has passed. A file that is there already is checked in
the same way and never removed.
"""

import gzip
import hashlib
import shlex
import shutil
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Final

from castpoi.checkins.datasets import Source, source_of
from castpoi.checkins.download import Patience, address, download
from castpoi.core.errors import DownloadFailed
from castpoi.core.files import read_or_nothing, write_json, writing
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import now_utc

_LONGEST_TEXT: Final = 8 << 30
"""Limit for an unpacked file in bytes; a longer one is a zip bomb."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A public data set in its folder, complete and checked."""

    dataset: str
    file: Path
    bytes: int
    rows: int
    seconds: float
    downloaded: bool
    """False if the file was there already."""
    resumed: bool
    """Whether an unfinished download was continued."""
    checksum: str
    """The published checksum that the file was compared with, or that none is known."""


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """The properties of a file that passed all checks."""

    bytes: int
    sha256: str
    rows: int
    checks: tuple[str, ...]
    checksum: str = "checksum not known"


def fetch(
    dataset: str,
    folder: Path,
    *,
    mirror: str | None = None,
    progress: Progress = SILENCE,
    patience: Patience | None = None,
) -> Fetched:
    """Download a public data set to a folder, from its publisher or from a mirror.

    Raises:
        DownloadFailed: no address has the published file; the sentence explains the way by hand.
        BadInput: the data set is unknown, the mirror is no address, the folder not writable.
    """
    source, started = source_of(dataset), time.perf_counter()
    urls = source.urls if mirror is None else (address(mirror),)
    file, published = folder / source.file, folder / source.published
    resumed = False
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with writing(file):
        is_new = not file.exists() and not published.exists()
        if is_new:
            checked, resumed = _download(source, published, urls, patience or Patience(), progress)
        else:
            checked = _check_present(file if file.exists() else published, source, progress)
        if not file.exists():
            checked = _unpack(published, file, source, checked.checksum, progress)
    return Fetched(
        dataset=dataset,
        file=file,
        bytes=checked.bytes,
        rows=checked.rows,
        seconds=time.perf_counter() - started,
        downloaded=is_new,
        resumed=resumed,
        checksum=checked.checksum,
    )


def record_of(file: Path) -> Path:
    """The file with the origin of a data set, next to it."""
    return file.with_name(file.name + ".source.json")


def _check_present(file: Path, source: Source, progress: Progress) -> _Checked:
    """Check a file that is there already: against its record, otherwise against what is known."""
    with progress.task(f"checking {file.name}"):
        recorded = _recorded(file)
        if recorded is not None and recorded.sha256 == _digest_of(file, "sha256"):
            return recorded
        if recorded is not None:
            raise DownloadFailed(
                f"{file} has changed since {record_of(file).name} was written; remove both to "
                "download it again, or only the latter to check the file as it is"
            )
        try:
            is_published = file.name == source.published
            checked = _check_published(file, source) if is_published else _check_text(file, source)
        except DownloadFailed as problem:
            raise DownloadFailed(
                f"{file} is not the published file: {problem}; remove it to download it again or, "
                "if you trust it, use it with 'castpoi data prepare' as it is"
            ) from problem
    _write_record(file, source, checked, None)
    return checked


def _recorded(file: Path) -> _Checked | None:
    record = read_or_nothing(record_of(file))
    try:
        return _Checked(
            bytes=file.stat().st_size,
            sha256=str(record["sha256"]),
            rows=int(record["rows"]),
            checks=tuple(record["checks"]),
            checksum=str(record["checksum"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _write_record(file: Path, source: Source, checked: _Checked, url: str | None) -> None:
    write_json(
        record_of(file),
        {
            "dataset": source.dataset,
            "url": url,
            "origin": "downloaded" if url else "found in the folder",
            **asdict(checked),
            "fetched_at_utc": now_utc(),
            "page": source.page,
            "citation": source.citation,
        },
    )


def _check_published(path: Path, source: Source) -> _Checked:
    """Check a zip or gzip as it is published: size, digest, integrity, rows."""
    checks: list[str] = []
    size = path.stat().st_size
    if source.size is not None:
        if size != source.size:
            raise DownloadFailed(f"it has {size:,} bytes, the published file has {source.size:,}")
        checks.append("size")
    if source.checksum is not None:
        method, expected = source.checksum
        found = _digest_of(path, method)
        if found != expected:
            raise DownloadFailed(f"its {method} is {found}, that of the published file {expected}")
        checks.append(method)
    with _unpacked(path, source) as text:
        rows = _count_rows(text, source)
    checked = _Checked(
        bytes=size,
        sha256=_digest_of(path, "sha256"),
        rows=rows,
        checks=(*checks, "integrity", "rows"),
    )
    if source.checksum is None:
        return checked
    return replace(checked, checksum=f"{source.checksum[0]} of {source.published}")


def _check_text(path: Path, source: Source) -> _Checked:
    """Check an unpacked text, of which only the number of rows is published."""
    with path.open("rb") as text:
        rows = _count_rows(text, source)
    size, digest = path.stat().st_size, _digest_of(path, "sha256")
    return _Checked(bytes=size, sha256=digest, rows=rows, checks=("rows",))


def _digest_of(path: Path, method: str) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(
            content, lambda: hashlib.new(method, usedforsecurity=False)
        ).hexdigest()


@contextmanager
def _unpacked(path: Path, source: Source) -> Iterator[IO[bytes]]:
    """The text in a zip or gzip; a reader at its end has checked its CRC."""
    try:
        if not source.members:
            with gzip.open(path) as text:
                yield text  # type: ignore[misc]  # GzipFile reads bytes like any binary file
            return
        with zipfile.ZipFile(path) as folder:
            names = [name for name in source.members if name in folder.namelist()]
            if not names:
                raise DownloadFailed(f"it has no {source.file}")
            with folder.open(names[0]) as text:
                yield text
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as problem:
        kind = "zip" if source.members else "gzip"
        raise DownloadFailed(f"it is not a complete {kind} file: {problem}") from problem
    except (NotImplementedError, RuntimeError) as problem:  # encryption or unknown compression
        raise DownloadFailed(f"it cannot be unpacked: {problem}") from problem


def _count_rows(text: IO[bytes], source: Source) -> int:
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


def _unpack(
    published: Path, file: Path, source: Source, checksum: str, progress: Progress
) -> _Checked:
    staging = file.with_name(f".{file.name}.tmp")
    try:
        with progress.task(f"unpacking {file.name}"):
            with _unpacked(published, source) as text, staging.open("wb") as sink:
                shutil.copyfileobj(text, sink)
            checked = replace(_check_text(staging, source), checksum=checksum)
            staging.replace(file)
    except DownloadFailed as problem:
        raise DownloadFailed(
            f"{published} cannot be unpacked to {file.name}: {problem}; remove it to download it "
            "again"
        ) from problem
    finally:
        staging.unlink(missing_ok=True)
    _write_record(file, source, checked, read_or_nothing(record_of(published)).get("url"))
    return checked


def _download(
    source: Source, target: Path, urls: tuple[str, ...], patience: Patience, progress: Progress
) -> tuple[_Checked, bool]:
    """Download and check a file from the first address that has it; and whether it was resumed."""
    part = target.with_name(target.name + ".part")
    reasons = []
    for url in urls:
        try:
            checked, resumed = _download_checked(source, url, part, patience, progress)
        except DownloadFailed as problem:
            reasons.append(str(problem))
            continue
        part.replace(target)
        _write_record(target, source, checked, url)
        return checked, resumed
    raise DownloadFailed(
        f"{source.dataset} cannot be downloaded: {'; '.join(reasons)}. "
        f"Download {source.published} by hand from {source.urls[0]} (described at {source.page}) "
        f"or from a copy you trust, put it at {target.absolute()} and run 'castpoi data fetch "
        f"{source.dataset} --out {shlex.quote(str(target.parent))}' again to check it."
    )


def _download_checked(
    source: Source, url: str, part: Path, patience: Patience, progress: Progress
) -> tuple[_Checked, bool]:
    for _ in range(2):
        resumed = download(url, part, size=source.size, patience=patience, progress=progress)
        try:
            with progress.task(f"checking {source.published}"):
                return _check_published(part, source), resumed
        except DownloadFailed as problem:
            part.unlink()
            failed = problem
        if not resumed:  # otherwise its two halves may be of different files: once more, in one go
            break
    raise DownloadFailed(f"{url} has another file: {failed}") from failed
