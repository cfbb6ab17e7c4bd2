"""Downloading public data sets into a folder, with every check that is possible.

    FOLDER/FILE                    the input of `castpoi data prepare`
    FOLDER/FILE.source.json        address, size, SHA-256, checks, date, what to cite
    FOLDER/dataset_tsmc2014.zip    kept, because New York and Tokyo are in the same zip
    FOLDER/FILE.part               an unfinished download; the next attempt requests the rest

A file gets its name only after every check has passed. A file that is there already is checked in
the same way and never removed. Without a published checksum a file is checked by the CRC in its zip
or gzip and by its number of rows.
"""

import gzip
import hashlib
import shlex
import shutil
import socket
import ssl
import time
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from castpoi import __version__
from castpoi.core.errors import BadInput, DownloadFailed
from castpoi.core.files import read_or_nothing, write_json, writing
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import now_utc

MAX_BYTES: Final = 2 << 30  # limit for a download; no data set here is near it
_LONGEST_TEXT: Final = 8 << 30  # limit for an unpacked file in bytes; a longer one is a zip bomb
_CHUNK: Final = 1 << 17
_SILENCE_SECONDS: Final = 30.0  # a connection that sends no byte for this long is closed
_WAITS_SECONDS: Final = (1.0, 2.0, 4.0)  # before each further attempt
_MAY_PASS: Final = {408, 416, 425, 429, 500, 502, 503, 504}
"""HTTP errors after which another attempt makes sense."""
_WILL_NOT_PASS: Final = (socket.gaierror, ssl.SSLCertVerificationError)
"""An unknown host name, and a certificate that is not trusted."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A public data set as `datasets.toml` describes it."""

    name: str
    urls: tuple[str, ...]
    members: tuple[str, ...] = ()
    size: int = 0
    checksum: tuple[str, ...] = ()  # (method in `hashlib`, digits) of the published file
    text_sha256: str = ""  # of a known copy of the unpacked file
    recipe: str = ""  # the cleaning recipe of the paper for the raw file
    min_rows: int
    page: str
    citation: str

    @property
    def published(self) -> str:
        """Name of the published file, a zip or a gzip."""
        return self.urls[-1].rpartition("/")[2]

    @property
    def file(self) -> str:
        """Name of the file that `castpoi data prepare` reads."""
        return self.members[0].rpartition("/")[2] if self.members else self.published


def _datasets() -> dict[str, Dataset]:
    tables = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))
    found = {}
    for name, table in tables.items():
        content: dict[str, Any] = {**tables.get(table.pop("like", ""), {}), **table, "name": name}
        for several in ("urls", "members", "checksum"):
            content[several] = tuple(content.get(several, ()))
        found[name] = Dataset(**content)
    return found


DATASETS: Final = _datasets()  # the public data sets by the word on the command line


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A public data set in its folder, complete and checked."""

    dataset: str
    file: Path
    bytes: int
    rows: int
    seconds: float
    downloaded: bool  # False if the file was there already
    resumed: bool  # whether an unfinished download was continued
    checksum: str  # the published checksum that the file was compared with, or that none is known


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """The properties of a file that passed all checks."""

    bytes: int
    sha256: str
    rows: int
    checks: list[str]
    checksum: str


def fetch(dataset: str, folder: Path, *, progress: Progress = SILENCE) -> Fetched:
    """Download a public data set to a folder, from its publisher.

    Raises:
        DownloadFailed: no address has the published file; the sentence explains the way by hand.
        BadInput: the data set is unknown, or the folder not writable.
    """
    if dataset not in DATASETS:
        known = ", ".join(DATASETS)
        raise BadInput(f"no public data set is called {dataset!r}; castpoi can fetch {known}")
    data, started = DATASETS[dataset], time.perf_counter()
    file, published = folder / data.file, folder / data.published
    resumed = False
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with writing(file):
        is_new = not file.exists() and not published.exists()
        if is_new:
            checked, resumed = _download(data, published, progress)
        else:
            checked = _check_present(file if file.exists() else published, data, progress)
        if not file.exists():
            checked = _unpack(published, file, data, checked.checksum, progress)
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


def _check_present(file: Path, data: Dataset, progress: Progress) -> _Checked:
    """Check a file that is there already: against its record, otherwise against what is known."""
    record = read_or_nothing(record_of(file))
    names = [each.name for each in fields(_Checked)]
    with progress.task(f"checking {file.name}"):
        if all(name in record for name in names):
            if record["sha256"] == _digest_of(file, "sha256"):
                return _Checked(**{name: record[name] for name in names})
            raise DownloadFailed(
                f"{file} has changed since {record_of(file).name} was written; remove both to "
                "download it again, or only the latter to check the file as it is"
            )
        try:
            checked = _checked(file, data, is_published=file.name == data.published)
        except DownloadFailed as problem:
            raise DownloadFailed(
                f"{file} is not the published file: {problem}; remove it to download it again or, "
                "if you trust it, use it with 'castpoi data prepare' as it is"
            ) from problem
    _write_record(file, data, checked, None)
    return checked


def _write_record(file: Path, data: Dataset, checked: _Checked, url: str | None) -> None:
    write_json(
        record_of(file),
        {
            "dataset": data.name,
            "url": url,
            "origin": "downloaded" if url else "found in the folder",
            **asdict(checked),
            "fetched_at_utc": now_utc(),
            "page": data.page,
            "citation": data.citation,
        },
    )


def _checked(path: Path, data: Dataset, *, is_published: bool) -> _Checked:
    """Check a published zip or gzip by all that is known, an unpacked text by its rows; its
    checksum is noted if it is that of a known copy."""
    size, checks, checksum = path.stat().st_size, ["rows"], "checksum not known"
    if is_published and data.size:
        if size != data.size:
            raise DownloadFailed(f"it has {size:,} bytes, the published file has {data.size:,}")
        checks = ["size", *checks]
    if is_published and data.checksum:
        method, expected = data.checksum
        if (found := _digest_of(path, method)) != expected:
            raise DownloadFailed(f"its {method} is {found}, that of the published file {expected}")
        checks, checksum = [method, *checks], f"{method} of {data.published}"
    with _unpacked(path, data) if is_published else path.open("rb") as text:
        rows = _count_rows(text, data.min_rows)
    sha256 = _digest_of(path, "sha256")
    if not is_published and sha256 == data.text_sha256:
        checks, checksum = ["sha256", *checks], "sha256 of a known copy"
    return _Checked(bytes=size, sha256=sha256, rows=rows, checks=checks, checksum=checksum)


def _digest_of(path: Path, method: str) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(
            content, lambda: hashlib.new(method, usedforsecurity=False)
        ).hexdigest()


@contextmanager
def _unpacked(path: Path, data: Dataset) -> Iterator[IO[bytes]]:
    """The text in a zip or gzip; a reader at its end has checked its CRC."""
    try:
        if not data.members:
            with gzip.open(path) as text:
                yield text  # type: ignore[misc]  # GzipFile reads bytes like any binary file
            return
        with zipfile.ZipFile(path) as folder:
            names = [name for name in data.members if name in folder.namelist()]
            if not names:
                raise DownloadFailed(f"it has no {data.file}")
            with folder.open(names[0]) as text:
                yield text
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as problem:
        kind = "zip" if data.members else "gzip"
        raise DownloadFailed(f"it is not a complete {kind} file: {problem}") from problem
    except (NotImplementedError, RuntimeError) as problem:  # encryption or unknown compression
        raise DownloadFailed(f"it cannot be unpacked: {problem}") from problem


def _count_rows(text: IO[bytes], least: int) -> int:
    rows, length, last = 0, 0, b"\n"
    while chunk := text.read(_CHUNK):
        rows += chunk.count(b"\n")
        length += len(chunk)
        last = chunk[-1:]
        if length > _LONGEST_TEXT:
            raise DownloadFailed(f"it unpacks to more than {_LONGEST_TEXT:,} bytes")
    rows += last != b"\n"
    if rows < least:
        raise DownloadFailed(f"it has {rows:,} rows, at least {least:,} are published")
    return rows


def _unpack(
    published: Path, file: Path, data: Dataset, checksum: str, progress: Progress
) -> _Checked:
    staging = file.with_name(f".{file.name}.tmp")
    try:
        with progress.task(f"unpacking {file.name}"):
            with _unpacked(published, data) as text, staging.open("wb") as sink:
                shutil.copyfileobj(text, sink)
            checked = replace(_checked(staging, data, is_published=False), checksum=checksum)
            staging.replace(file)
    except DownloadFailed as problem:
        raise DownloadFailed(
            f"{published} cannot be unpacked to {file.name}: {problem}; remove it to download it "
            "again"
        ) from problem
    finally:
        staging.unlink(missing_ok=True)
    _write_record(file, data, checked, read_or_nothing(record_of(published)).get("url"))
    return checked


def _download(data: Dataset, target: Path, progress: Progress) -> tuple[_Checked, bool]:
    """Download and check a file from the first address that has it; and whether it was resumed."""
    part = target.with_name(target.name + ".part")
    reasons = []
    for url in data.urls:
        try:
            checked, resumed = _download_checked(data, url, part, progress)
        except DownloadFailed as problem:
            reasons.append(str(problem))
            continue
        part.replace(target)
        _write_record(target, data, checked, url)
        return checked, resumed
    raise DownloadFailed(
        f"{data.name} cannot be downloaded: {'; '.join(reasons)}. "
        f"Download {data.published} by hand from {data.urls[0]} (described at {data.page}) "
        f"or from a copy you trust, put it at {target.absolute()} and run 'castpoi data fetch "
        f"{data.name} --out {shlex.quote(str(target.parent))}' again to check it."
    )


def _download_checked(
    data: Dataset, url: str, part: Path, progress: Progress
) -> tuple[_Checked, bool]:
    """Download a file; once more if it was resumed, as its halves may be of different files."""
    for is_last in (False, True):
        resumed = _received(url, part, data.size, progress)
        try:
            with progress.task(f"checking {data.published}"):
                return _checked(part, data, is_published=True), resumed
        except DownloadFailed as problem:
            part.unlink()
            if is_last or not resumed:
                raise DownloadFailed(f"{url} has another file: {problem}") from problem
    raise AssertionError("unreachable")


def _received(url: str, part: Path, size: int, progress: Progress) -> bool:
    """Download to `part`, after the bytes that are there; whether there were any."""
    for wait_seconds in (*_WAITS_SECONDS, None):
        try:
            return _attempt(url, part, size, progress)
        except HTTPError as refusal:
            if refusal.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink(missing_ok=True)  # it is longer than the file
            # the standard phrase, because the server's own words may be anything
            known = refusal.code in set(HTTPStatus)
            reason = f"answered {refusal.code} {HTTPStatus(refusal.code).phrase if known else ''}"
            may_pass = refusal.code in _MAY_PASS
            refusal.close()
        except (OSError, HTTPException) as problem:
            cause = getattr(problem, "reason", problem)
            reason = f"cannot be read: {str(cause) or type(cause).__name__}"
            may_pass = not isinstance(cause, _WILL_NOT_PASS)
        if not may_pass or wait_seconds is None:
            raise DownloadFailed(f"{url} {reason.rstrip()}")
        time.sleep(wait_seconds)
    raise AssertionError("unreachable")


def _attempt(url: str, part: Path, size: int, progress: Progress) -> bool:
    have = part.stat().st_size if part.exists() else 0
    if have and have == size:
        return True
    headers = {"User-Agent": f"castpoi/{__version__}", "Accept-Encoding": "identity"}
    headers |= {"Range": f"bytes={have}-"} if have else {}
    with urlopen(Request(url, headers=headers), timeout=_SILENCE_SECONDS) as response:
        extent, length = (response.headers[name] for name in ("Content-Range", "Content-Length"))
        is_rest = response.status == HTTPStatus.PARTIAL_CONTENT
        if is_rest and not (extent or "").startswith(f"bytes {have}-"):
            part.unlink()
            raise OSError("it sends another part than requested")
        received = have if is_rest else 0
        total = received + int(length) if length else None
        most = size or MAX_BYTES
        with (
            part.open("ab" if is_rest else "wb") as sink,
            progress.task(f"{part.stem} (MB)", total and total / 1e6) as task,
        ):
            task.advance(received / 1e6)
            while received <= most and (total or 0) <= most and (chunk := response.read1(_CHUNK)):
                sink.write(chunk)
                received += len(chunk)
                task.advance(len(chunk) / 1e6)
    if max(received, total or 0) > most:
        raise DownloadFailed(f"{url} has more than the {most:,} bytes expected")
    if total is not None and received < total:
        raise OSError(f"it broke off, {total - received:,} bytes are missing")
    return is_rest
