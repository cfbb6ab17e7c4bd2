"""What every request passes on its way in and out: clocks, headers and the size of its body."""

from collections.abc import Callable
from time import perf_counter
from typing import Final

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from castpoi.serving.answers import error_answer
from castpoi.serving.logs import log_event, log_failure
from castpoi.serving.metrics import Metrics

_NO_ROUTE: Final = "(none)"


def _page_headers(tiles: str | None) -> dict[str, str]:
    """Pages load nothing from elsewhere but map tiles, if a person has set some."""
    tile_host = f" {'/'.join(tiles.split('/')[:3])}" if tiles else ""
    return {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Content-Security-Policy": (
            f"default-src 'self'; img-src 'self' data: blob:{tile_host}; "
            f"connect-src 'self'{tile_host}; worker-src 'self' blob:; "
            "style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
        ),
    }


class Watch:
    """Times every request, counts it under its route template and logs it so.

    A template, such as /v1/users/{user}/visits, tells nothing about anybody; a path does. An
    error nobody foresaw becomes a plain 500 here, so that no server prints what it quotes.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        tiles: str | None,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.is_stopping = is_stopping
        self.headers = _page_headers(tiles)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note how it ended."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = perf_counter()
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, scope["path"])
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as problem:
            log_failure("request failed", problem, route=_template(scope))
            if not status:
                sentence = "the service made a mistake; its log says where"
                await error_answer(500, sentence)(scope, receive, watched)
        finally:
            self._note(scope, status, perf_counter() - began)

    def _add_headers(self, message: Message, path: str) -> None:
        headers = MutableHeaders(scope=message)
        headers.update(self.headers)
        if path.startswith("/v1/"):
            headers["Cache-Control"] = "no-store"
        if self.is_stopping():  # or the client would send its next request into a closed socket
            headers["Connection"] = "close"

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method, route = _method(scope), _template(scope)
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.request_seconds.labels(method, route).observe(seconds)
        log_event(
            "request answered",
            method=method,
            route=route,
            status=status,
            ms=round(1000 * seconds, 1),
        )


class BodyLimit:
    """Refuses a body that is too large, whether it says so or not."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self.app = app
        self.most_bytes = most_bytes
        self.rule = f"the body is larger than {most_bytes} bytes, which is the limit"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on while its body stays within the limit."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdigit() and int(told) > self.most_bytes:
            await error_answer(413, self.rule)(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.most_bytes:
                raise HTTPException(413, self.rule)
            return message

        await self.app(scope, counted, send)


def _template(scope: Scope) -> str:
    return str(getattr(scope.get("route"), "path_format", _NO_ROUTE))


def _method(scope: Scope) -> str:
    """The method, if it is one of the usual ones: labels must not grow by what strangers send."""
    known = ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH")
    return scope["method"] if scope["method"] in known else "(other)"
