"""Middleware of every request: access, size of the body, timing, log, counters and headers."""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Final

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from castpoi.serving.logs import log_event, log_failure
from castpoi.serving.schema import error_answer
from castpoi.serving.settings import is_loopback

METRICS_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Variable with the folder in which several workers store their metrics (prometheus_client)."""
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
_METHODS: Final = ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH")
_NO_ROUTE: Final = "(none)"
_REQUEST_ID: Final = "X-Request-Id"
_LOGGABLE_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# a name or, in brackets, an IPv6 address; perhaps with a port
_HOST: Final = re.compile(r"(?P<name>\[[^\[\]]*\]|[^:\[\]]*)(:.*)?")
# paths that need a key; health, documentation and the map page have no personal data
_GUARDED: Final = ("/v1/", "/metrics")
# methods that change nothing; a browser hides their answers from foreign pages
_READING: Final = ("GET", "HEAD", "OPTIONS")


class Metrics:
    """Counters and times of one service for Prometheus; by route, never by user or place."""

    def __init__(self, waiting: Callable[[], float]) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        template = ["method", "route"]
        about = "Answered requests by route template."
        self.requests = counter("castpoi_requests", about, [*template, "status"])
        about = "From the first byte of a request to the last of its answer."
        self.request_seconds = histogram(
            "castpoi_request_seconds", about, template, buckets=_SECONDS
        )
        about = "Time of the model for one batch."
        self.model_seconds = histogram("castpoi_model_seconds", about, buckets=_SECONDS)
        self.batch_size = histogram("castpoi_batch_size", "Requests of one batch.", buckets=_SIZES)
        self.visits = counter("castpoi_visits_stored", "Visits stored.")
        self.reloads = counter("castpoi_model_loads", "Runs loaded, or not.", ["outcome"])
        about = "Requests waiting for the model."
        self._waiting = Gauge(
            "castpoi_requests_waiting", about, registry=self.registry, multiprocess_mode="livesum"
        )
        self._count_waiting = waiting

    def count_waiting(self) -> None:
        """Store the number of waiting requests, for the pages of all workers."""
        self._waiting.set(self._count_waiting())

    def page(self) -> bytes:
        """All metrics in Prometheus' text format; with several workers, their sums."""
        self.count_waiting()
        if METRICS_FOLDER not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)


class _Middleware:
    """Wraps an application for HTTP requests; other scopes, such as the lifespan, pass."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request, or pass other scopes on."""
        handle = self.handle if scope["type"] == "http" else self.app
        await handle(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request."""
        raise NotImplementedError


class RequestLog(_Middleware):
    """Times, counts and logs each request under its route template, and adds headers.

    A template, such as /v1/users/{user}/visits, has no personal data; a path has. An unexpected
    error becomes a plain 500, so that no server prints its text, which may quote a request.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, tiles: str | None, is_stopping: Callable[[], bool]
    ) -> None:
        super().__init__(app)
        self.metrics = metrics
        self.is_stopping = is_stopping
        self.headers = _page_headers(tiles)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and record its outcome."""
        began = perf_counter()
        status = 0
        request_id = _request_id(Headers(scope=scope).get(_REQUEST_ID, ""))

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, scope["path"])
                MutableHeaders(scope=message)[_REQUEST_ID] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as problem:
            log_failure("request failed", problem, route=_template(scope), request=request_id)
            if not status:
                sentence = "the service failed unexpectedly; its log has the lines of the error"
                await error_answer(500, sentence)(scope, receive, send_with_headers)
        finally:
            self._record(scope, status, perf_counter() - began, request_id)

    def _add_headers(self, message: Message, path: str) -> None:
        headers = MutableHeaders(scope=message)
        headers.update(self.headers)
        if path.startswith("/v1/"):
            headers["Cache-Control"] = "no-store"
        if self.is_stopping():  # or the client would send its next request into a closed socket
            headers["Connection"] = "close"

    def _record(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        # other methods share one label: labels must not grow with what strangers send
        method = scope["method"] if scope["method"] in _METHODS else "(other)"
        route = _template(scope)
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.request_seconds.labels(method, route).observe(seconds)
        self.metrics.count_waiting()
        milliseconds = round(1000 * seconds, 1)
        answered = partial(log_event, "request answered", method=method, route=route)
        answered(status=status, ms=milliseconds, request=request_id)


class KeyRing:
    """The valid API keys, as digests that are compared in constant time."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = [self._digest(key) for key in keys]

    def __len__(self) -> int:
        return len(self._digests)

    def admits(self, given: str) -> bool:
        """Whether this is one of the keys; takes the same time for every wrong one."""
        digest = self._digest(given)
        return sum(hmac.compare_digest(digest, known) for known in self._digests) > 0

    @staticmethod
    def _digest(key: str) -> bytes:
        return hashlib.sha256(key.encode()).digest()


class AuthMiddleware(_Middleware):
    """Accepts requests with a key or, if no key is set, from this machine.

    Without keys the `Host` header must be a loopback name; otherwise a foreign page could point
    its own name at 127.0.0.1 and read the answers (DNS rebinding). Requests that change something
    must come from a page of this machine or of `origins`: a browser sends some requests of any
    page without asking first, and names the page in `Origin`. With keys this is not needed: a
    page cannot send a key that it does not have.
    """

    def __init__(self, app: ASGIApp, keys: KeyRing, origins: Sequence[str] = ()) -> None:
        super().__init__(app)
        self.keys = keys
        self.origins = origins

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 or 403, or pass the request on."""
        headers = Headers(scope=scope)
        if self.keys:
            rejection = self._without_key(scope["path"], headers)
        else:
            rejection = self._from_elsewhere(scope["method"], headers)
        await (rejection or self.app)(scope, receive, send)

    def _without_key(self, path: str, headers: Headers) -> JSONResponse | None:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        has_key = scheme.lower() == "bearer" and self.keys.admits(key.strip())
        if has_key or not path.startswith(_GUARDED):
            return None
        problem = "this API key is not known" if key else "an API key is needed"
        return error_answer(
            401,
            f"{problem}: send the header 'Authorization: Bearer KEY'",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _from_elsewhere(self, method: str, headers: Headers) -> JSONResponse | None:
        if not is_loopback(_host_name(headers.get("host", ""))):
            return error_answer(
                403,
                "no API key is configured, so only requests to localhost are accepted; use "
                "--api-key-file for other hosts",
            )
        origin = headers.get("origin")
        if method in _READING or origin is None or origin in self.origins:
            return None
        if is_loopback(_host_name(origin.partition("://")[2])):
            return None
        return error_answer(
            403,
            "no API key is configured, so requests of other sites are rejected; to allow a site, "
            "start the service with --cors-origin and its origin",
        )


def _host_name(host: str) -> str:
    """The lower-case name of a `Host` header without its port; '' if it is malformed."""
    found = _HOST.fullmatch(host)
    return found["name"].lower() if found else ""


class BodyLimit(_Middleware):
    """Rejects a body that is too large, with or without a Content-Length."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        super().__init__(app)
        self.max_bytes = max_bytes
        self.rule = f"the body is larger than {max_bytes} bytes, which is the limit"

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on while its body is within the limit."""
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdigit() and int(length) > self.max_bytes:
            await error_answer(413, self.rule)(scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.max_bytes:
                raise HTTPException(413, self.rule)
            return message

        await self.app(scope, receive_counted, send)


def _page_headers(tiles: str | None) -> dict[str, str]:
    """Security headers: pages load nothing of other sites but the configured map tiles."""
    tile_host = f" {'/'.join(tiles.split('/')[:3])}" if tiles else ""
    return {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        # a tile server may refuse a page without an origin, as that of OpenStreetMap does
        "Referrer-Policy": "strict-origin" if tiles else "no-referrer",
        "Content-Security-Policy": (
            f"default-src 'self'; img-src 'self' data: blob:{tile_host}; "
            f"connect-src 'self'{tile_host}; worker-src 'self' blob:; "
            "style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
        ),
    }


def _request_id(given: str) -> str:
    """The id that the client gave to its request, if it can be logged, or a new one."""
    return given if _LOGGABLE_ID.fullmatch(given) else secrets.token_hex(8)


def _template(scope: Scope) -> str:
    return str(getattr(scope.get("route"), "path_format", _NO_ROUTE))
