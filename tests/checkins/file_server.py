"""A real HTTP server on this machine that can be slow, silent, forgetful or wrong on purpose."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from time import sleep


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How the server answers one request."""

    status: int = 200
    knows_ranges: bool = True
    cut_after: int | None = None
    """Close the connection after this many bytes."""
    silent_after: int | None = None
    """Keep the connection open but send nothing after this many bytes."""
    announces: int | None = None
    """A Content-Length other than the true one."""
    is_chunked: bool = False
    """Send no Content-Length."""
    extent: str | None = None
    """A Content-Range other than the true one."""
    headers: tuple[tuple[str, str], ...] = ()
    chunk: int = 1 << 16
    pause_seconds: float = 0.0


@dataclass
class FileServer:
    """What is served, how the next requests are answered, and what was asked."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    """Used up one a request; afterwards `always`."""
    always: Answer = field(default_factory=Answer)
    asked: list[tuple[str, Message]] = field(default_factory=list)
    closing: Event = field(default_factory=Event)

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"

    @property
    def ranges(self) -> list[str | None]:
        return [headers["Range"] for _, headers in self.asked]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: FileServer

    def do_GET(self) -> None:
        served = self.served
        served.asked.append((self.path, self.headers))
        answer = served.answers.pop(0) if served.answers else served.always
        content = served.files.get(self.path.lstrip("/"))
        if content is None or answer.status != 200:
            self._end_headers(404 if content is None else answer.status, answer, length=0)
            return
        begin = self._begin(answer, len(content))
        if begin >= len(content):
            self._end_headers(416, answer, length=0)
            return
        if begin:
            extent = answer.extent or f"bytes {begin}-{len(content) - 1}/{len(content)}"
            self._end_headers(206, answer, length=len(content) - begin, extent=extent)
        else:
            self._end_headers(200, answer, length=len(content))
        self._send(content[begin:], answer)

    def _begin(self, answer: Answer, length: int) -> int:
        wanted = self.headers["Range"]
        if wanted is None or not answer.knows_ranges:
            return 0
        return int(wanted.removeprefix("bytes=").removesuffix("-"))

    def _end_headers(
        self, status: int, answer: Answer, *, length: int, extent: str | None = None
    ) -> None:
        self.send_response(status)
        if answer.is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(answer.announces or length))
        if extent is not None:
            self.send_header("Content-Range", extent)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()

    def _send(self, content: bytes, answer: Answer) -> None:
        stop = answer.cut_after if answer.cut_after is not None else answer.silent_after
        sent = content if stop is None else content[:stop]
        for start in range(0, len(sent), answer.chunk):
            piece = sent[start : start + answer.chunk]
            if answer.is_chunked:
                piece = b"%x\r\n%s\r\n" % (len(piece), piece)
            self.wfile.write(piece)
            sleep(answer.pause_seconds)
        if answer.silent_after is not None:
            self.served.closing.wait(10)
        if answer.cut_after is None and answer.is_chunked:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of these tests."""


@contextmanager
def serving() -> Iterator[FileServer]:
    """A server for the length of a test."""

    class Handler(_Handler):
        """Each server has its own files."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        served = Handler.served = FileServer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        try:
            yield served
        finally:
            served.closing.set()
            server.shutdown()
            thread.join()
