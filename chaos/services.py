"""A service under posts: killed on SQLite and on PostgreSQL, and with a full disk."""

import random
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.cli.test_serve_journey import client_of, serving
from tests.serving.postgres import postgres_server

from chaos.attack import Arena
from chaos.disk import small_disk
from chaos.outcome import Outcome, skipped
from chaos.storm import Ledger, storm, visit_of

SQLITE_KILLS: Final = 5
POSTGRES_KILLS: Final = 3
BACK_SECONDS: Final = 15.0
"""The time in which a service must recover after its disk has room."""
_FULL_MB: Final = 2
_ROOMY_MB: Final = 64


def attack(arena: Arena) -> Iterator[Outcome]:
    """Kill services, and fill the disk of one of them."""
    file = arena.folder / "visits.sqlite"
    yield kill_service(arena, f"sqlite:///{file}", "SQLite", SQLITE_KILLS, file)
    try:
        with postgres_server() as url:
            yield kill_service(arena, url, "PostgreSQL", POSTGRES_KILLS)
    except pytest.skip.Exception as reason:
        yield skipped("service on PostgreSQL, `kill -9`", reason)
    yield fill_disk(arena)


def kill_service(
    arena: Arena, url: str, name: str, kills: int, file: Path | None = None
) -> Outcome:
    """Kill a service under posts several times; acknowledged writes must be there each time."""
    ledger, rng = Ledger(name.lower()), random.Random(f"{arena.seed} {name}")
    attack = f"service on {name}, `kill -9` {kills} times under posts: acknowledged writes"
    problems: list[str] = []
    for number in range(kills + 1):
        log = arena.folder / f"{name}-{number}.log"
        with serving(arena.inputs.run, log, *_words(url)) as (process, ready):
            with client_of(ready) as client:
                ledger.settle(client)
                problems += ledger.problems(client)
            if file is not None:
                problems += names_left_in(file, ledger.erased)
            if number < kills:
                with storm(ledger, [ready]):
                    time.sleep(rng.uniform(0.4, 1.2))
                    process.kill()
    return judged(arena, attack, ledger, problems)


def judged(arena: Arena, attack: str, ledger: Ledger, problems: list[str]) -> Outcome:
    """The outcome of a storm; with too few writes it counts as lost."""
    outcome = Outcome(attack=attack)
    if ledger.acknowledged < 50:
        problems = [*problems, f"only {ledger.acknowledged} writes were acknowledged"]
    outcome.trials(max(ledger.acknowledged, len(problems)), problems)
    arena.report(f"{attack}: {outcome.tried} tried, {outcome.lost} lost")
    return outcome


def names_left_in(file: Path, users: set[str]) -> list[str]:
    """Erased user ids that are still in the bytes of a SQLite store."""
    files = [each for each in file.parent.glob(f"{file.name}*") if each.is_file()]
    content = b"".join(each.read_bytes() for each in files)
    return [f"{user} was erased and is in the file" for user in users if user.encode() in content]


def fill_disk(arena: Arena) -> Outcome:
    """Fill the disk of a SQLite store under posts, and then make room."""
    attack = f"service on SQLite, its disk of {_FULL_MB} MB full: acknowledged writes, /readyz"
    disk = small_disk(arena.folder / "disk", megabytes=_FULL_MB)
    if isinstance(disk, str):
        return skipped(attack, disk)
    ledger, problems = Ledger("full"), list[str]()
    with disk as room:
        url = f"sqlite:///{room.folder}/visits.sqlite"
        log = arena.folder / "full.log"
        with serving(arena.inputs.run, log, *_words(url)) as (_, ready), client_of(ready) as client:
            (room.folder / "ballast").write_bytes(bytes(_FULL_MB * 600_000))
            with storm(ledger, [ready]):
                is_full = within(BACK_SECONDS, lambda: bool(ledger.unanswered))
            problems += [] if is_full else ["the disk did not fill up within 15 s"]
            problems += _while_full(client)
            room.grow(_ROOMY_MB)
            ledger.settle(client)
            problems += ledger.problems(client)
            if not within(BACK_SECONDS, lambda: client.get("/readyz").status_code == 200):
                problems.append("/readyz is not 200 again within 15 s after room was made")
    return judged(arena, attack, ledger, problems)


def _while_full(client: httpx.Client) -> list[str]:
    """Check a service whose disk is full: /readyz answers 503, recommendations work."""
    problems = []
    numbers = count()

    def is_refused() -> bool:  # the last erasures of the storm may have made room again
        visits = [visit_of("full", next(numbers)) for _ in range(100)]
        return client.post("/v1/visits", json={"visits": visits}).status_code == 503

    if not within(BACK_SECONDS, is_refused):
        problems.append("visits are stored although the disk is full")
    if (status := client.get("/readyz").status_code) != 503:
        problems.append(f"/readyz answers {status} while the disk is full")
    answer = client.post("/v1/recommend", json={"history": []})
    if answer.status_code != 200:
        problems.append(f"a posted history is answered with {answer.status_code}: disk is full")
    return problems


def within(seconds: float, happened: Any) -> bool:
    """Whether a condition becomes true within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.05)
    return False


def _words(url: str) -> tuple[str, ...]:
    return "--store", url, "--no-import-city"
