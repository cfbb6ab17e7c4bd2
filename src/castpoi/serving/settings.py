"""What a person decides about the service, checked before anything is opened."""

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final

from castpoi.core.errors import BadInput

_TILES: Final = re.compile(r"https?://[\w.:-]+/[^\s\"'<>;,]*\{z\}[^\s\"'<>;,]*")

LEAST_KEY_LENGTH: Final = 16
"""Characters of an API key; fewer can be guessed."""


MOST_HISTORY: Final = 1000
"""Visits of a history, posted or read from the store (the latest ones)."""
MOST_RECOMMENDATIONS: Final = 100
"""The largest k."""
MOST_VISITS: Final = 1000
"""Visits posted at once."""
MOST_CANDIDATES: Final = 1000
"""Candidates named in a request."""
MOST_CATEGORIES: Final = 50
"""Categories named in a request."""
MOST_PLACES: Final = 20_000
"""Places listed at once."""
MOST_USERS: Final = 1000
"""Users listed at once."""

SERVED_EXACTLY_UP_TO: Final = 2_000
"""So few places are scored exactly in no time; above, a service looks for a shortlist."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How large a request may be, and how many may wait."""

    body_bytes: int = 1 << 20
    """Largest body of a request."""
    waiting: int = 256
    """Most requests that wait for the model; one more is turned away with 503."""
    together: int = 32
    """Most requests the model answers in one go."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise BadInput(f"the limit {name} is {value}; it must be at least 1")


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """How the service listens, and whom it lets in."""

    host: str = "127.0.0.1"
    port: int = 8080
    """0 lets the machine choose a free one."""
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    """Who has one of these is let in; none: everybody on this machine is."""
    origins: tuple[str, ...] = ()
    """Other sites whose pages may ask (CORS), such as https://app.example.org."""
    tiles: str | None = None
    """Raster tiles below the map, such as https://tiles.example.org/{z}/{x}/{y}.png."""
    grace_seconds: int = 30
    """How long a stopping service waits for what it began."""
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not self.api_keys and not is_loopback(self.host):
            raise BadInput(
                f"the host {self.host} can be reached from other machines, but no API key is set; "
                "give --api-key-file FILE (or the environment variable CASTPOI_API_KEYS), or "
                "serve on 127.0.0.1"
            )
        if any(len(key) < LEAST_KEY_LENGTH or not key.isascii() for key in self.api_keys):
            raise BadInput(
                f"an API key is shorter than {LEAST_KEY_LENGTH} characters or not plain ASCII; "
                "make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        for origin in self.origins:
            is_site = origin.startswith(("http://", "https://")) and origin.count("/") == 2
            if not is_site or "*" in origin:
                raise BadInput(
                    f"the origin '{origin}' is not of the form https://app.example.org; every "
                    "site that may ask is named in full, without a path and without '*'"
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
