"""Clients that post and erase while something fails, and a ledger of acknowledged writes."""

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
from tests.cli.test_serve_journey import client_of

WRITERS: Final = 4
PLACES: Final = ("cafe", "office", "park", "station", "theatre")
POSTS: Final = 6
"""Posts of each user; every third user is erased after them."""
PATIENCE_SECONDS: Final = 30.0
_BEGIN: Final = datetime(2024, 5, 6, tzinfo=UTC)

Visit = dict[str, Any]


@dataclass
class Ledger:
    """The acknowledged and the unanswered writes of a service."""

    name: str
    kept: dict[str, list[tuple[str, datetime]]] = field(default_factory=dict)
    """Acknowledged visits of each user."""
    unanswered: list[Visit] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)
    erasures_unanswered: set[str] = field(default_factory=set)
    surprises: list[str] = field(default_factory=list)
    """Answers that are neither 200 nor 503."""
    serial: Iterator[int] = field(default_factory=itertools.count)

    @property
    def acknowledged(self) -> int:
        """Visits and erasures that were answered with 200."""
        return sum(map(len, self.kept.values())) + len(self.erased)

    def write(self, client: httpx.Client, eraser: httpx.Client, until: threading.Event) -> None:
        """Post visits user by user, and erase every third user."""
        while not until.is_set():
            number = next(self.serial)
            user = f"{self.name}-user-{number:06}-{'x' * (number % 7)}"
            self.kept[user] = []
            for post in range(POSTS):
                self.post(client, [visit_of(user, 2 * post + each) for each in range(2)])
            if number % 3 == 0:
                self.erase(eraser, user)

    def post(self, client: httpx.Client, visits: Sequence[Visit]) -> None:
        """Post visits of one user, and record the answer."""
        status = self._status(client, "POST", "/v1/visits", json={"visits": visits})
        if status == 200:
            visited = ((each["place"], datetime.fromisoformat(each["at"])) for each in visits)
            self.kept[visits[0]["user"]] += visited
        else:
            self.unanswered += visits

    def erase(self, client: httpx.Client, user: str) -> None:
        """Erase a user, and record the answer; visits of the user are not sent again."""
        self.unanswered = [each for each in self.unanswered if each["user"] != user]
        self.kept.pop(user, None)
        is_done = self._status(client, "DELETE", f"/v1/users/{user}") == 200
        (self.erased if is_done else self.erasures_unanswered).add(user)

    def _status(self, client: httpx.Client, method: str, path: str, **more: Any) -> int | None:
        """The status of an answer; None if there was none."""
        try:
            answer = client.request(method, path, **more)
        except httpx.TransportError:
            return None
        if answer.status_code not in {200, 503}:
            self.surprises.append(f"{method} {path[:12]}: {answer.status_code} {answer.text[:120]}")
        if answer.status_code == 503:
            time.sleep(0.05)
        return answer.status_code

    def settle(self, client: httpx.Client) -> None:
        """Send unanswered writes again, with their keys, until all are answered."""
        end = time.monotonic() + PATIENCE_SECONDS
        while (self.unanswered or self.erasures_unanswered) and time.monotonic() < end:
            again, self.unanswered = self.unanswered, []
            for visit in again:
                self.post(client, [visit])
            users, self.erasures_unanswered = self.erasures_unanswered, set()
            for user in users:
                self.erase(client, user)

    def problems(self, client: httpx.Client) -> list[str]:
        """One sentence for each user with lost, duplicate or reappearing visits."""
        found = [*self.surprises]
        if self.unanswered or self.erasures_unanswered:
            found.append("the service did not come back within 30 s")
            return found
        for user, visits in list(self.kept.items()):
            stored = _stored(client, user)
            if sorted(stored) != sorted(visits):
                lost = len(set(visits) - set(stored))
                found.append(f"{user}: {lost} visits lost, {len(stored)} kept of {len(visits)}")
        back = [user for user in self.erased if _stored(client, user)]
        return found + [f"{user} was erased and is back" for user in back]


@contextmanager
def storm(
    ledger: Ledger, ready: Sequence[Any], writers: int = WRITERS
) -> Iterator[threading.Event]:
    """Post to the services while the block runs; afterwards wait for the clients."""
    until = threading.Event()
    clients = [client_of(ready[number % len(ready)]) for number in range(writers + 1)]
    threads = [
        threading.Thread(target=ledger.write, args=(client, eraser, until))
        for client, eraser in itertools.pairwise(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield until
    finally:
        until.set()
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()


def visit_of(user: str, number: int) -> Visit:
    """The numbered visit of a user."""
    at = _BEGIN + timedelta(minutes=number)
    place = PLACES[number % len(PLACES)]
    return {"user": user, "place": place, "at": at.isoformat(), "key": f"{number}"}


def _stored(client: httpx.Client, user: str) -> list[tuple[str, datetime]]:
    """The stored visits of a user; empty for an unknown user."""
    answer = client.get(f"/v1/users/{user}/visits", params={"limit": 1000})
    if answer.status_code in {404, 422}:
        return []
    answer.raise_for_status()
    visits = answer.json()["visits"]
    return [(each["place"], datetime.fromisoformat(each["at"])) for each in visits]
