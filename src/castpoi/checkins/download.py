"""Downloading one file over HTTP, with retries and resume.

The bytes go to `NAME.part`, and the next attempt requests the rest. The caller checks the whole
file, and so that its parts fit.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from castpoi import __version__
from castpoi.core.errors import DownloadFailed
from castpoi.core.progress import Progress

MAX_BYTES: Final = 2 << 30  # limit for a download in bytes; no data set here is near it
_CHUNK: Final = 1 << 17
_MEGABYTE: Final = 1e6
_MAY_PASS: Final = {408, 416, 425, 429, 500, 502, 503, 504}
"""HTTP errors after which another attempt makes sense."""
_REDIRECTED: Final = "redirects in circles or to an address that cannot be used"


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait for a server, and how often to try."""

    attempts: int = 4
    silence_seconds: float = 30.0  # a connection that sends no byte for this long is closed
    sleep: Callable[[float], None] = time.sleep


class _TryAgain(DownloadFailed):
    """A failure that may pass."""


def download(
    url: str, part: Path, *, size: int | None, patience: Patience, progress: Progress
) -> bool:
    """Download a file to `part`, after the bytes that are there; whether there were any."""
    for attempt in range(1, patience.attempts + 1):
        try:
            return _attempt(url, part, size, patience.silence_seconds, progress)
        except _TryAgain as failed:
            problem = failed
        except DownloadFailed as failed:
            raise DownloadFailed(f"{url} {failed}") from failed
        if attempt < patience.attempts:
            patience.sleep(2.0 ** (attempt - 1))
    raise DownloadFailed(f"{url} {problem} (tried {patience.attempts} times)") from problem


def _attempt(
    url: str, part: Path, size: int | None, silence_seconds: float, progress: Progress
) -> bool:
    have = part.stat().st_size if part.exists() else 0
    if have and have == size:
        return True
    with _response(url, part, have, silence_seconds) as response:
        first = (response.headers["Content-Range"] or "").removeprefix("bytes ").partition("-")[0]
        is_rest = response.status == HTTPStatus.PARTIAL_CONTENT and first == str(have)
        if not is_rest and response.status != HTTPStatus.OK:
            part.unlink(missing_ok=True)
            is_other_part = response.status == HTTPStatus.PARTIAL_CONTENT
            failure = _TryAgain if is_other_part else DownloadFailed
            raise failure(f"answered {response.status} instead of the file")
        before = have if is_rest else 0
        total = _announced(response, before)
        if size is not None and total not in (None, size):
            raise DownloadFailed(f"announces {total:,} bytes, the published file has {size:,}")
        expected = size or total
        most, name = expected or MAX_BYTES, f"{part.stem} (MB)"
        megabytes = expected and expected / _MEGABYTE
        with part.open("ab" if is_rest else "wb") as sink, progress.task(name, megabytes) as task:
            task.advance(before / _MEGABYTE)
            received = before
            for chunk in _chunks(response, None if total is None else total - before):
                received += len(chunk)
                if received > most:
                    raise DownloadFailed(f"sends more than the {most:,} bytes expected")
                sink.write(chunk)
                task.advance(len(chunk) / _MEGABYTE)
    return is_rest


def _announced(response: HTTPResponse, before: int) -> int | None:
    """Length of the whole file in bytes, None if the server does not send it."""
    length = response.headers["Content-Length"] or ""
    if response.chunked or not (length.isascii() and length.isdigit()):
        return None
    total = before + int(length)
    if total > MAX_BYTES:
        raise DownloadFailed(f"announces {total:,} bytes, more than any public data set has")
    return total


def _chunks(response: HTTPResponse, remaining: int | None) -> Iterator[bytes]:
    """The bytes that the server sends: `remaining` of them, or all if that is None."""
    while remaining is None or remaining > 0:
        try:
            chunk = response.read1(_CHUNK if remaining is None else min(_CHUNK, remaining))
        except TimeoutError as problem:
            raise _TryAgain("stalled: no more bytes came") from problem
        except (OSError, HTTPException) as problem:
            raise _TryAgain(f"broke off: {_words(problem)}") from problem
        if not chunk and remaining is None:
            return
        if not chunk:
            raise _TryAgain(f"broke off, {remaining:,} bytes are missing")
        remaining = None if remaining is None else remaining - len(chunk)
        yield chunk


def _response(url: str, part: Path, have: int, silence_seconds: float) -> HTTPResponse:
    """Request the file, or the rest of it; errors become sentences."""
    headers = {"User-Agent": f"castpoi/{__version__}", "Accept-Encoding": "identity"}
    headers |= {"Range": f"bytes={have}-"} if have else {}
    try:
        opened: HTTPResponse = urlopen(Request(url, headers=headers), timeout=silence_seconds)
    except HTTPError as refusal:
        with refusal:
            if refusal.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink(missing_ok=True)  # it is longer than the file
            raise _refused(refusal) from refusal
    except (OSError, HTTPException) as problem:
        raise _not_reached(problem) from problem
    return opened


def _refused(refusal: HTTPError) -> DownloadFailed:
    if refusal.code in range(300, 400):
        return DownloadFailed(_REDIRECTED)
    # the standard phrase, because the server's own words may be anything
    phrase = HTTPStatus(refusal.code).phrase if refusal.code in set(HTTPStatus) else ""
    reason = f"answered {refusal.code} {phrase}".rstrip()
    return (_TryAgain if refusal.code in _MAY_PASS else DownloadFailed)(reason)


def _not_reached(problem: OSError | HTTPException) -> DownloadFailed:
    cause = problem.reason if isinstance(problem, URLError) else problem
    if isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN:
        return DownloadFailed("has an unknown host name")
    if isinstance(cause, ssl.SSLCertVerificationError):
        return DownloadFailed(f"has a certificate that is not trusted: {cause.verify_message}")
    if isinstance(cause, TimeoutError):
        return _TryAgain("stalled: no answer came")
    return _TryAgain(f"cannot be reached: {_words(cause)}")


def _words(problem: object) -> str:
    return (isinstance(problem, OSError) and problem.strerror) or type(problem).__name__
