"""One file over HTTP: politely retried, resumed where the server allows it, never too long.

The bytes go to `NAME.part`; `NAME.part.json` beside it remembers the address and the server's
mark of the version (ETag or Last-Modified), so that a file that has changed meanwhile is begun
anew and never glued to the old half.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, HTTPResponse, InvalidURL
from pathlib import Path
from typing import IO, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from castpoi import __version__
from castpoi.core.errors import BadInput, BrokenFolder, DownloadFailed
from castpoi.core.files import read_json, write_json
from castpoi.core.progress import Progress, Task

CHUNK: Final = 1 << 17
LARGEST: Final = 2 << 30
"""No data set we fetch comes near this; a longer answer is not the file."""

_MEGABYTE: Final = 1e6
_WORTH_ANOTHER_TRY: Final = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long and how often a server is asked."""

    attempts: int = 4
    """Times one address is tried before it is given up."""
    silence_seconds: float = 30.0
    """A connection that brings no byte for so long is given up."""
    pause_seconds: float = 1.0
    """Wait before the second attempt; each further wait is twice as long."""
    longest_pause_seconds: float = 60.0
    """No wait is longer, whatever the server asks for."""
    sleep: Callable[[float], None] = time.sleep
    """How to wait."""

    def pause_before(self, attempt: int, asked: float) -> float:
        """Seconds to wait before attempt 1, 2, ...; at least what the server asked for."""
        return min(
            max(self.pause_seconds * 2.0 ** (attempt - 1), asked), self.longest_pause_seconds
        )


@dataclass(frozen=True)
class Received:
    """A file that came whole."""

    bytes: int
    resumed: bool
    """A part from before was continued."""


class _TryAgain(DownloadFailed):
    """A failure that may pass."""

    def __init__(
        self, reason: str, *, asked_seconds: float = 0.0, part_is_useless: bool = False
    ) -> None:
        super().__init__(reason)
        self.asked_seconds = asked_seconds
        self.part_is_useless = part_is_useless


def check_address(url: str) -> None:
    """Refuse an address that is not plain HTTP or HTTPS."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as problem:
        raise BadInput(f"{url!r} is not an address: {problem}") from problem
    if parts.scheme not in ("http", "https") or not host:
        raise BadInput(f"{url!r} cannot be fetched; an address begins with http:// or https://")
    if parts.username is not None:
        # it would end up in the record beside the file
        raise BadInput("an address with a user name in it is refused; download the file by hand")


def download(
    url: str, part: Path, *, size: int | None, patience: Patience, progress: Progress
) -> Received:
    """Bring the file at `url` into `part`, continuing a part from before if it is the same file.

    Raises:
        DownloadFailed: the server does not give the file; the text begins with the address.
        BadInput: the part cannot be written.
    """
    problem: _TryAgain | None = None
    for attempt in range(patience.attempts):
        if problem is not None:
            patience.sleep(patience.pause_before(attempt, problem.asked_seconds))
            if problem.part_is_useless:
                discard(part)
        try:
            return _attempt(url, part, size=size, patience=patience, progress=progress)
        except _TryAgain as failed:
            problem = failed
        except DownloadFailed as failed:
            raise DownloadFailed(f"{url} {failed}") from failed
    raise DownloadFailed(f"{url} {problem} (tried {patience.attempts} times)") from problem


def discard(part: Path) -> None:
    """Forget a part and what is known of it."""
    with on_disk(part):
        part.unlink(missing_ok=True)
        _memory_of(part).unlink(missing_ok=True)


@contextmanager
def on_disk(path: Path) -> Iterator[None]:
    """Turn a refusal of the disk into a sentence."""
    try:
        yield
    except OSError as problem:
        raise BadInput(
            f"{path} cannot be read or written: {_words(problem)}; "
            "mend that or choose another --out"
        ) from problem


@dataclass(frozen=True)
class _Begun:
    """A part from before, and what the server said of the whole file."""

    bytes: int
    etag: str | None
    modified: str | None
    total: int | None

    @property
    def mark(self) -> str | None:
        """What to send as If-Range: only a strong ETag or a date promises the same bytes."""
        is_strong = self.etag is not None and not self.etag.startswith("W/")
        mark = self.etag if is_strong else self.modified
        return mark if mark is not None and mark.isprintable() else None

    def is_continued_by(self, response: HTTPResponse) -> bool:
        """Whether the answer is the rest of this very file."""
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            return False
        stretch = (response.headers["Content-Range"] or "").removeprefix("bytes ")
        first, _, total = stretch.partition("/")
        if first.partition("-")[0] != str(self.bytes):
            return False
        if self.total is not None and total != str(self.total):
            return False
        said = (response.headers["ETag"], response.headers["Last-Modified"])
        return all(
            new is None or new == old
            for new, old in zip(said, (self.etag, self.modified), strict=True)
        )


def _attempt(
    url: str, part: Path, *, size: int | None, patience: Patience, progress: Progress
) -> Received:
    begun = _begun(url, part)
    if begun is not None and begun.bytes == begun.total:
        return Received(begun.bytes, resumed=True)
    with _asked(url, begun, patience) as response:
        continued = begun is not None and begun.is_continued_by(response)
        _expect_file(response, continued)
        before = begun.bytes if begun is not None and continued else 0
        total = _announced(response, before)
        if size is not None and total not in (None, size):
            raise DownloadFailed(f"announces {total:,} bytes, the published file has {size:,}")
        if not continued:
            _remember(part, url, response, total)
        expected = size or total
        chunks = _chunks(response, None if total is None else total - before)
        with (
            on_disk(part),
            part.open("ab") as sink,
            progress.task(f"{part.stem} (MB)", expected and expected / _MEGABYTE) as task,
        ):
            task.advance(before / _MEGABYTE)
            length = _pour(chunks, sink, before=before, most=expected or LARGEST, task=task)
    return Received(length, resumed=continued)


def _expect_file(response: HTTPResponse, continued: bool) -> None:
    if response.status == HTTPStatus.OK or continued:
        return
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        raise _TryAgain("sent another part than asked for", part_is_useless=True)
    raise DownloadFailed(f"answered {response.status} instead of the file")


def _begun(url: str, part: Path) -> _Begun | None:
    try:
        have = part.stat().st_size
        memory = read_json(_memory_of(part))
    except (OSError, BrokenFolder):
        return None
    etag, modified, total = (memory.get(key) for key in ("etag", "last_modified", "total"))
    begun = _Begun(
        bytes=have,
        etag=etag if isinstance(etag, str) else None,
        modified=modified if isinstance(modified, str) else None,
        total=total if isinstance(total, int) else None,
    )
    is_usable = memory.get("url") == url and begun.mark is not None and have > 0
    return begun if is_usable and (begun.total is None or have <= begun.total) else None


def _remember(part: Path, url: str, response: HTTPResponse, total: int | None) -> None:
    with on_disk(part):
        # the bytes of another version go first: they must never stand beside the new mark
        part.unlink(missing_ok=True)
        write_json(
            _memory_of(part),
            {
                "url": url,
                "etag": response.headers["ETag"],
                "last_modified": response.headers["Last-Modified"],
                "total": total,
            },
        )


def _memory_of(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _announced(response: HTTPResponse, before: int) -> int | None:
    length = response.headers["Content-Length"] or ""
    if response.chunked or not (length.isascii() and length.isdigit()):
        return None
    total = before + int(length)
    if total > LARGEST:
        raise DownloadFailed(f"announces {total:,} bytes, no public data set is so long")
    return total


def _chunks(response: HTTPResponse, remaining: int | None) -> Iterator[bytes]:
    """What the server sends, up to `remaining` bytes or, where that is not known, to the end."""
    while remaining is None or remaining > 0:
        try:
            chunk = response.read1(CHUNK if remaining is None else min(CHUNK, remaining))
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


def _pour(chunks: Iterator[bytes], sink: IO[bytes], *, before: int, most: int, task: Task) -> int:
    """Write the chunks after the bytes that are there; the length of it all."""
    length = before
    for chunk in chunks:
        if length + len(chunk) > most:
            raise DownloadFailed(f"sends more than the {most:,} bytes expected")
        sink.write(chunk)
        length += len(chunk)
        task.advance(len(chunk) / _MEGABYTE)
    return length


_ASTRAY: Final = "redirects in circles or to an address that is not http:// or https://"


class _HttpOnly(HTTPRedirectHandler):
    """Follows a few redirections, and only to HTTP or HTTPS."""

    max_redirections = 5

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The next request; urllib alone would also go to FTP."""
        if urlsplit(newurl).scheme not in ("http", "https"):
            fp.close()
            raise DownloadFailed(_ASTRAY)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextmanager
def _asked(url: str, begun: _Begun | None, patience: Patience) -> Iterator[HTTPResponse]:
    """Ask for the file, or for its rest; a refusal becomes a sentence."""
    headers = {"User-Agent": f"castpoi/{__version__}", "Accept-Encoding": "identity"}
    if begun is not None and begun.mark is not None:
        headers |= {"Range": f"bytes={begun.bytes}-", "If-Range": begun.mark}
    try:
        opened = build_opener(_HttpOnly).open(
            Request(url, headers=headers), timeout=patience.silence_seconds
        )
    except HTTPError as refusal:
        with refusal:
            raise _refused(refusal) from refusal
    except InvalidURL as problem:
        raise DownloadFailed(f"is not an address: {problem}") from problem
    except (OSError, HTTPException) as problem:
        raise _unreached(problem) from problem
    with opened as response:
        yield response


def _refused(refusal: HTTPError) -> DownloadFailed:
    if refusal.code in range(300, 400):
        return DownloadFailed(_ASTRAY)
    # the phrase of the standard, for the server's own words may hold anything
    phrase = HTTPStatus(refusal.code).phrase if refusal.code in set(HTTPStatus) else ""
    reason = f"answered {refusal.code} {phrase}".rstrip()
    if refusal.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return _TryAgain(reason, part_is_useless=True)
    if refusal.code not in _WORTH_ANOTHER_TRY:
        return DownloadFailed(reason)
    asked = refusal.headers["Retry-After"] or ""
    return _TryAgain(reason, asked_seconds=float(asked) if asked.isdecimal() else 0.0)


def _unreached(problem: OSError | HTTPException) -> DownloadFailed:
    cause = problem.reason if isinstance(problem, URLError) else problem
    if isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN:
        return DownloadFailed("has an unknown host name")
    if isinstance(cause, ssl.SSLCertVerificationError):
        return DownloadFailed(f"shows a certificate that cannot be trusted: {cause.verify_message}")
    if isinstance(cause, TimeoutError):
        return _TryAgain("stalled: no answer came")
    return _TryAgain(f"cannot be reached: {_words(cause)}")


def _words(problem: object) -> str:
    return (isinstance(problem, OSError) and problem.strerror) or type(problem).__name__
