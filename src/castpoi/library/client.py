"""A client of `castpoi serve`, on this or another machine (docs/api.md)."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from http.client import IncompleteRead
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from castpoi.core.errors import ServiceFailed
from castpoi.recommend.recommendation import Recommendations

_AWAY: Final = (502, 503, 504)
"""Statuses of a service that is busy or loading, and of a proxy whose service has gone."""
_NAMES: Final = {"near": ("lat", "lon"), "box": ("south", "west", "north", "east")}


class Client:
    """Sends requests to a service; retries while it is busy, is loading or cannot be reached.

    Retrying is safe: a visit that is sent twice is stored once.
    """

    def __init__(
        self, url: str, key: str | None = None, *, retries: int = 3, timeout: float = 30.0
    ) -> None:
        self.url = url.rstrip("/")
        self.retries = retries
        self.timeout = timeout  # seconds
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

    def recommend(
        self,
        user: str | int | None = None,
        *,
        history: Iterable[tuple[str | int, datetime | str | float]] | None = None,
        **options: Any,
    ) -> Recommendations:
        """The next places of a user or after a history; `options` are fields of the API."""
        return Recommendations.of(self._post("recommend", _body(user, history, options)))

    def recommend_batch(self, users: Iterable[str | int], **options: Any) -> list[Recommendations]:
        """The next places of many users (up to 1,000), in their order."""
        requests = [_body(user, None, options) for user in users]
        lines = self._call("POST", "recommend/batch", {"requests": requests}).splitlines()
        answers = [json.loads(line) for line in lines]
        for answer in answers:
            if "error" in answer:
                raise ServiceFailed(answer["error"])
        return [Recommendations.of(answer) for answer in answers]

    def add_visit(
        self, user: str | int, place: str | int, at: datetime | str | float, key: str | None = None
    ) -> None:
        """Store a visit; the next recommendation uses it."""
        self._post("visits", {"user": user, "place": place, "at": _plain(at), "key": key})

    def visits(self, user: str | int) -> list[dict[str, Any]]:
        """All visits of a user, oldest first."""
        pages = list(self._pages(f"users/{quote(str(user))}/visits", "visits"))
        return [visit for page in reversed(pages) for visit in page]

    def erase(self, user: str | int) -> int:
        """Erase a user; returns the number of their visits."""
        return int(json.loads(self._call("DELETE", f"users/{quote(str(user))}"))["erased"])

    def places(self, **query: Any) -> Iterator[dict[str, Any]]:
        """Places, those with most check-ins first; `q` is part of a name, `bbox` an area."""
        for page in self._pages("places", "places", **query):
            yield from page

    def model(self) -> dict[str, Any]:
        """The model card."""
        card: dict[str, Any] = json.loads(self._call("GET", "model"))
        return card

    def _pages(self, path: str, rows: str, **query: Any) -> Iterator[list[dict[str, Any]]]:
        while True:
            page = json.loads(self._call("GET", f"{path}?{urlencode(query)}"))
            yield page[rows]
            if page["next"] is None:
                return
            query["after"] = page["next"]

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return json.loads(self._call("POST", path, body))

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> str:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}/v1/{path}", data, self._headers, method=method)
        for wait_seconds in [0.2 * 2**n for n in range(self.retries)] + [None]:
            try:
                with urlopen(request, timeout=self.timeout) as answer:
                    text: str = answer.read().decode()
                    return text
            except HTTPError as problem:
                if problem.code not in _AWAY or wait_seconds is None:
                    raise ServiceFailed(_sentence(problem)) from problem
                wait_seconds = float(problem.headers.get("Retry-After", wait_seconds))
            except (URLError, TimeoutError, ConnectionError, IncompleteRead) as problem:
                if wait_seconds is None:
                    raise ServiceFailed(
                        f"the service at {self.url} does not answer ({problem}); start it, or "
                        "correct the address"
                    ) from problem
            time.sleep(wait_seconds)
        raise AssertionError("unreachable")


def _body(
    user: str | int | None,
    history: Iterable[tuple[str | int, datetime | str | float]] | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    body = {name: _plain(value) for name, value in options.items() if value is not None}
    for name in _NAMES.keys() & body.keys():
        body[name] = dict(zip(_NAMES[name], body[name], strict=True))
    if user is not None:
        body["user"] = user
    if history is not None:
        body["history"] = [{"place": place, "at": _plain(at)} for place, at in history]
    return body


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _sentence(problem: HTTPError) -> str:
    try:
        return str(json.loads(problem.read())["error"])
    except (ValueError, KeyError):
        return f"the service answered with status {problem.code}"
