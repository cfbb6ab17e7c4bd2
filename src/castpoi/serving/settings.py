"""Settings, API keys and limits of the service, checked before anything is opened."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from castpoi.core.errors import BadInput

_TILES: Final = re.compile(r"https?://[\w.:-]+/[^\s\"'<>;,]*\{z\}[^\s\"'<>;,]*")

API_KEYS_VARIABLE: Final = "CASTPOI_API_KEYS"
MIN_KEY_LENGTH: Final = 16
"""Minimum length of an API key in characters; shorter keys can be guessed."""

MAX_HISTORY: Final = 1000  # visits of a history, posted or read from the store (the latest)
MAX_RECOMMENDATIONS: Final = 100  # the largest k
MAX_REQUESTS: Final = 1000  # requests of one batch
MAX_VISITS: Final = 1000  # visits posted at once
MAX_CANDIDATES: Final = 1000  # candidates or excluded places named in a request
MAX_CATEGORIES: Final = 50  # categories named in a request
MAX_CORNERS: Final = 100  # corners of a polygon
MAX_PLACES: Final = 20_000  # places listed at once
MAX_USERS: Final = 1000  # users listed at once


def default_store(run: Path) -> str:
    """The visit store of a run, unless another is given."""
    return f"sqlite:///{run.absolute()}.visits.sqlite"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on the size and the number of requests."""

    body_bytes: int = 1 << 20
    """Largest body of a request, in bytes."""
    waiting: int = 256
    """Maximum number of requests that wait for the model; more are rejected with 503."""
    together: int = 32
    """Maximum number of requests in one batch of the model."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise BadInput(f"the limit {name} is {value}; it must be at least 1")


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """Address, access and limits of the service."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 8080
    """Port to listen on; 0 takes a free one."""
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    """A request needs one of these keys; without keys, all programs of this machine have access."""
    origins: tuple[str, ...] = ()
    """Another site whose pages have access (CORS), such as https://app.example.org."""
    tiles: str | None = None
    """Raster tiles below the map, such as https://tiles.example.org/{z}/{x}/{y}.png."""
    grace_seconds: int = 30
    """How long a service that stops waits for running requests."""
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not self.api_keys and not is_loopback(self.host):
            raise BadInput(
                f"the host {self.host} is reachable from other machines, but no API key is set; "
                "give --api-key-file FILE (or the environment variable CASTPOI_API_KEYS), or "
                "serve on 127.0.0.1"
            )
        if any(len(key) < MIN_KEY_LENGTH or not key.isascii() for key in self.api_keys):
            raise BadInput(
                f"an API key is shorter than {MIN_KEY_LENGTH} characters or not plain ASCII; "
                "make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        for origin in self.origins:
            is_site = origin.startswith(("http://", "https://")) and origin.count("/") == 2
            if not is_site or "*" in origin:
                raise BadInput(
                    f"the origin '{origin}' is not of the form https://app.example.org; give the "
                    "full origin of each site, without a path and without '*'"
                )
        if self.tiles is not None and not _TILES.fullmatch(self.tiles):
            raise BadInput(
                f"the tiles '{self.tiles}' are not of the form "
                "https://tiles.example.org/{z}/{x}/{y}.png"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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
