"""Access: API keys, and protection from pages of other sites."""

import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from castpoi.core.errors import BadInput
from castpoi.serving.answers import error_answer
from castpoi.serving.settings import is_loopback

API_KEYS_VARIABLE: Final = "CASTPOI_API_KEYS"

_HOST: Final = re.compile(r"(?P<name>\[[^\[\]]*\]|[^:\[\]]*)(:.*)?")
"""A name or, in brackets, an IPv6 address; perhaps with a port."""
_GUARDED: Final = ("/v1/", "/metrics")
"""Paths that need a key; health, documentation and the map page have no personal data."""
_READING: Final = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing; a browser hides their answers from foreign pages."""


def read_api_keys(file: Path | None, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The API keys of a file (one per line, # for comments) and of the environment (commas)."""
    keys = [key.strip() for key in environment.get(API_KEYS_VARIABLE, "").split(",")]
    if file is not None:
        found = _lines_of(file)
        if not found:
            raise BadInput(f"{file} has no API key; write one per line")
        keys += found
    return [key for key in keys if key]


def _lines_of(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", "not UTF-8")
        raise BadInput(
            f"the API keys cannot be read from {file}: {why}; give a text file that this user may "
            "read, with one key per line"
        ) from problem
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


class KeyRing:
    """The valid API keys, as digests that are compared in constant time."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    def __len__(self) -> int:
        return len(self._digests)

    def admits(self, given: str) -> bool:
        """Whether this is one of the keys; takes the same time for every wrong one."""
        asked = _digest(given)
        return sum(hmac.compare_digest(asked, known) for known in self._digests) > 0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class AuthMiddleware:
    """Accepts requests with a key or, if no key is set, from this machine.

    Without keys the `Host` header must be a loopback name; otherwise a foreign page could point
    its own name at 127.0.0.1 and read the answers (DNS rebinding). Requests that change something
    must come from a page of this machine or of `origins`: a browser sends some requests of any
    page without asking first, and names the page in `Origin`. With keys this is not needed: a
    page cannot send a key that it does not have.
    """

    def __init__(self, app: ASGIApp, keys: KeyRing, origins: Sequence[str] = ()) -> None:
        self.app = app
        self.keys = keys
        self.origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 or 403, or pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if self.keys:
            rejection = self._without_key(scope["path"], headers)
        else:
            rejection = self._from_elsewhere(scope["method"], headers)
        await (rejection or self.app)(scope, receive, send)

    def _without_key(self, path: str, headers: Headers) -> JSONResponse | None:
        if not path.startswith(_GUARDED) or self._has_key(headers):
            return None
        return error_answer(
            401,
            "an API key is needed: send the header 'Authorization: Bearer KEY'",
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

    def _has_key(self, headers: Headers) -> bool:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.keys.admits(key.strip())


def _host_name(host: str) -> str:
    """The lower-case name of a `Host` header without its port; '' if it is malformed."""
    found = _HOST.fullmatch(host)
    return found["name"].lower() if found else ""
