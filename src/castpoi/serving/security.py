"""Who may ask: API keys, and pages of other sites that try to ask on a person's behalf."""

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
"""Paths that need a key; health, documentation and the map page tell nothing about anybody."""
_READING: Final = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing; what they tell, a foreign page may not read."""


def read_api_keys(file: Path | None, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The API keys of a file (one a line, # begins a remark) and of the environment (commas)."""
    keys = [key.strip() for key in environment.get(API_KEYS_VARIABLE, "").split(",")]
    if file is not None:
        found = _lines_of(file)
        if not found:
            raise BadInput(f"{file} holds no API key; write one a line into it")
        keys += found
    return [key for key in keys if key]


def _lines_of(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", "not UTF-8")
        raise BadInput(
            f"the API keys cannot be read from {file}: {why}; give a text file that this user may "
            "read, one key a line"
        ) from problem
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


class KeyRing:
    """The API keys that open the door; kept as digests, compared in constant time."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    def __len__(self) -> int:
        return len(self._digests)

    def admits(self, given: str) -> bool:
        """Whether this is one of the keys; takes as long for every wrong one."""
        asked = _digest(given)
        return sum(hmac.compare_digest(asked, known) for known in self._digests) > 0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class Doorkeeper:
    """Lets a request through that has a key or, where none is set, comes from this machine.

    Without keys the `Host` header must be a loopback name, or a foreign page could point its own
    name at 127.0.0.1 and read what is served there (DNS rebinding). And a page that asks for a
    change must be of this machine or of one of `origins`: a browser sends some requests of any
    page without asking first, and tells in `Origin` whose they are. With keys it need not be
    looked at: no page can send a key unasked.
    """

    def __init__(self, app: ASGIApp, keys: KeyRing, origins: Sequence[str] = ()) -> None:
        self.app = app
        self.keys = keys
        self.origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 or 403 to a stranger, or pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if self.keys:
            refusal = self._without_key(scope["path"], headers)
        else:
            refusal = self._from_elsewhere(scope["method"], headers)
        await (refusal or self.app)(scope, receive, send)

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
                403, "this service has no API key, so it answers only to the names of this machine"
            )
        origin = headers.get("origin")
        if method in _READING or origin is None or origin in self.origins:
            return None
        if is_loopback(_host_name(origin.partition("://")[2])):
            return None
        return error_answer(
            403,
            "this service has no API key, so pages of other sites may ask nothing of it; start "
            "the service with --cors-origin and the site's origin if its pages should",
        )

    def _has_key(self, headers: Headers) -> bool:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.keys.admits(key.strip())


def _host_name(host: str) -> str:
    """The name in a host and port, as a `Host` header has them, in small letters; else ''."""
    found = _HOST.fullmatch(host)
    return found["name"].lower() if found else ""
