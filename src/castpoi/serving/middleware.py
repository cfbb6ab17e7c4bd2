"""Middleware of every request: timing, log, counters, headers and the size of the body."""

from collections.abc import Callable
from time import perf_counter
from typing import Final

from fastapi import HTTPException
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from castpoi.serving.answers import error_answer
from castpoi.serving.logs import log_event, log_failure

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
_METHODS: Final = ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH")
_NO_ROUTE: Final = "(none)"


class Metrics:
    """Counters and times of one service for Prometheus; by route, never by user or place."""

    def __init__(self, waiting: Callable[[], float]) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "castpoi_requests",
            "Answered requests by route template.",
            ["method", "route", "status"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "castpoi_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.model_seconds = Histogram(
            "castpoi_model_seconds",
            "Time of the model for one batch.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.batch_size = Histogram(
            "castpoi_batch_size", "Requests of one batch.", buckets=_SIZES, registry=registry
        )
        self.visits = Counter("castpoi_visits_stored", "Visits stored.", registry=registry)
        self.reloads = Counter(
            "castpoi_model_loads", "Runs loaded, or not.", ["outcome"], registry=registry
        )
        queue = Gauge(
            "castpoi_requests_waiting", "Requests waiting for the model.", registry=registry
        )
        queue.set_function(waiting)

    def page(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class RequestLog:
    """Times, counts and logs each request under its route template, and adds headers.

    A template, such as /v1/users/{user}/visits, has no personal data; a path has. An unexpected
    error becomes a plain 500, so that no server prints its text, which may quote a request.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, tiles: str | None, is_stopping: Callable[[], bool]
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.is_stopping = is_stopping
        self.headers = _page_headers(tiles)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and record its outcome."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = perf_counter()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, scope["path"])
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as problem:
            log_failure("request failed", problem, route=_template(scope))
            if not status:
                sentence = "the service failed unexpectedly; its log has the lines of the error"
                await error_answer(500, sentence)(scope, receive, send_with_headers)
        finally:
            self._record(scope, status, perf_counter() - began)

    def _add_headers(self, message: Message, path: str) -> None:
        headers = MutableHeaders(scope=message)
        headers.update(self.headers)
        if path.startswith("/v1/"):
            headers["Cache-Control"] = "no-store"
        if self.is_stopping():  # or the client would send its next request into a closed socket
            headers["Connection"] = "close"

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        # other methods share one label: labels must not grow with what strangers send
        method = scope["method"] if scope["method"] in _METHODS else "(other)"
        route = _template(scope)
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.request_seconds.labels(method, route).observe(seconds)
        milliseconds = round(1000 * seconds, 1)
        log_event("request answered", method=method, route=route, status=status, ms=milliseconds)


class BodyLimit:
    """Rejects a body that is too large, with or without a Content-Length."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self.app = app
        self.most_bytes = most_bytes
        self.rule = f"the body is larger than {most_bytes} bytes, which is the limit"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on while its body is within the limit."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdigit() and int(length) > self.most_bytes:
            await error_answer(413, self.rule)(scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.most_bytes:
                raise HTTPException(413, self.rule)
            return message

        await self.app(scope, receive_counted, send)


def _page_headers(tiles: str | None) -> dict[str, str]:
    """Security headers: pages load nothing of other sites but the configured map tiles."""
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


def _template(scope: Scope) -> str:
    return str(getattr(scope.get("route"), "path_format", _NO_ROUTE))
