"""How fast `castpoi serve` answers, against a route that does nothing and the bare model call.

The service is timed with untrained models over made-up places. How short a shortlist may be depends
on what was learned: its size, what it loses and what it saves are measured on the run that
CASTPOI_RUN names (its city must be where it was trained), or else on a synthetic city of New York's
size learned for one epoch.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import polars as pl

from benchmarks.clients import Order, Told, ask
from benchmarks.learning import city_of_new_yorks_size
from castpoi.checkins import record
from castpoi.core.provenance import Stopwatch
from castpoi.methods.registry import METHODS
from castpoi.methods.run import KNOWN_CHECKINS, PLACE_SCHEMA, city_of, load_run, write_run
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Request
from castpoi.training.train import TrainingOptions, train

HISTORY: Final = 50
"""Visits of each history: as many as the reader reads."""
PEOPLE: Final = 64
"""Different histories that are asked in turn."""
TOP: Final = 10
"""Recommendations of an answer whose agreement counts."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How long and how much is measured."""

    runs: tuple[tuple[str, int], ...] = (
        ("castpoi", 5_000),
        ("castpoi-next", 5_000),
        ("castpoi-next", 100_000),
    )
    """Method and number of places."""
    seconds: float = 10
    """Of 1 and of 16 clients, and of each other measurement."""
    crowd_seconds: float = 60
    """Of 64 clients."""
    steady_requests: int = 2_000
    """Over which memory is watched."""
    people: int = 500
    """Of the run whose shortlist is compared with exact scores."""


def service_under_load(folder: Path, checkins: int) -> dict[str, Any]:
    """Milliseconds of /v1/recommend at 1, 16 and 64 clients, what it adds, and what it loses."""
    return measure_service(folder, Size())


def service_for_long(folder: Path, checkins: int) -> dict[str, Any]:
    """Memory over 50,000 requests; the other numbers only in passing."""
    runs = (("castpoi-next", 5_000),)
    return measure_service(
        folder, Size(runs=runs, seconds=2, crowd_seconds=2, steady_requests=50_000)
    )


def measure_service(folder: Path, size: Size) -> dict[str, Any]:
    """All numbers of the service: a group a run, and the shortlist of a trained one."""
    rows: dict[str, Any] = {}
    for method, places in size.runs:
        run = untrained_run(folder / f"untrained-{method}-{places}", method, places)
        for name, row in _of_run(run, places, size).items():
            rows[f"{method}_{places}_{name}"] = row
    return {**rows, "shortlist": shortlist_of(_trained_run(folder), size)}


def _of_run(run: Path, places: int, size: Size) -> dict[str, dict[str, float]]:
    """The numbers of one run: bare calls, then the service under growing load."""
    bodies = histories(places)
    exact = _milliseconds(load(run, shortlist="all"), bodies, size.seconds)
    with serving(run) as server:
        shortlist = _shortlist_of(server.port)
        as_served = load(run, shortlist=shortlist or "all")
        bare = _milliseconds(as_served, bodies, size.seconds)
        recommend = Order(port=server.port, path="/v1/recommend", clients=1, bodies=bodies)
        nothing = Order(port=server.port, path="/healthz", clients=1, seconds=size.seconds / 2)
        noop = ask(nothing)
        one = ask(replace(recommend, seconds=size.seconds))
        some = ask(replace(recommend, seconds=size.seconds, clients=16))
        crowd = ask(replace(recommend, seconds=size.crowd_seconds, clients=64))
        stored = ask(
            replace(recommend, seconds=size.seconds / 2, bodies=_stored(server.port, bodies))
        )
        memory = _memory(server, replace(recommend, clients=16), size.steady_requests)
    return {
        "bare": {
            "shortlist": shortlist or places,
            "as_served_ms": bare,
            "exact_ms": exact,
            "times_faster": exact / bare,
        },
        "noop": {"p50_ms": noop.p50_ms, "p99_ms": noop.p99_ms},
        "1_client": _row(one),
        "16_clients": _row(some),
        "64_clients": _row(crowd),
        "stored_user": _row(stored),
        "framework": {
            "overhead_ms": one.p50_ms - bare,
            "times_bare": one.p50_ms / bare,
            "times_noop": one.p50_ms / noop.p50_ms,
        },
        "memory": memory,
    }


def _row(told: Told) -> dict[str, float]:
    """What a crowd saw, as a row of numbers."""
    return {
        "p50_ms": told.p50_ms,
        "p99_ms": told.p99_ms,
        "a_second": told.a_second,
        "requests": told.requests,
        "errors": told.errors,
    }


def untrained_run(folder: Path, method: str, places: int) -> Path:
    """A run whose model knows nothing, over so many made-up places; made once."""
    if folder.exists():
        return folder
    rng = np.random.default_rng(7)
    lat, lon = rng.normal(40.7, 0.1, places), rng.normal(-74.0, 0.1, places)
    table = pl.DataFrame(
        {
            record.PLACE: np.arange(places),
            record.PLACE_ID: [f"place-{number}" for number in range(places)],
            record.LAT: lat,
            record.LON: lon,
            record.ZONE: ["America/New_York"] * places,
            record.CATEGORY: [f"category {number % 20}" for number in range(places)],
            record.NAME: [f"Place {number}" for number in range(places)],
            KNOWN_CHECKINS: rng.zipf(1.5, places) % 1000,
        },
        schema=PLACE_SCHEMA,
    )
    config = ModelConfig.preset(METHODS.named(method).default_preset or "fast")
    model = new_model(config=config, lat=lat, lon=lon, seed=7)
    ranker = CastPoiRanker(model, BatchBuilder(config=config, lat=lat, lon=lon))
    folder.mkdir(parents=True)
    write_run(
        folder,
        ranker,
        method=method,
        seed=7,
        part=record.TEST,
        knows=[record.TRAIN],
        city=folder / "no-city",
        fingerprint="0" * 64,
        places=table,
        work=Stopwatch(),
    )
    return folder


def histories(places: int) -> list[dict[str, Any]]:
    """Bodies of requests, each with the history of another person."""
    rng = np.random.default_rng(8)
    hours = [f"2024-01-{1 + hour // 24:02}T{hour % 24:02}:00:00-05:00" for hour in range(31 * 24)]
    bodies = []
    for _ in range(PEOPLE):
        haunts = rng.integers(places, size=HISTORY // 2)  # people come back
        visited = rng.choice(haunts, size=HISTORY)
        moments = np.sort(rng.choice(len(hours), size=HISTORY, replace=False))
        visits = [
            {"place": f"place-{place}", "at": hours[hour]}
            for place, hour in zip(visited.tolist(), moments.tolist(), strict=True)
        ]
        bodies.append({"history": visits, "k": TOP})
    return bodies


def _milliseconds(
    recommender: Recommender, bodies: Sequence[dict[str, Any]], seconds: float
) -> float:
    """Median of one call of `recommend` in this process."""
    recommender.recommend(**bodies[0])  # warm
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken) < 3:
        began = time.perf_counter()
        recommender.recommend(**bodies[len(taken) % len(bodies)])
        taken.append(time.perf_counter() - began)
    return 1000 * float(np.median(taken))


@dataclass(frozen=True)
class Server:
    """A service in a process of its own."""

    process: int
    port: int

    @property
    def memory_mb(self) -> float:
        """Resident memory at this moment."""
        pages = int(Path(f"/proc/{self.process}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def serving(run: Path) -> Iterator[Server]:
    """Let `castpoi serve` listen on a free port while the block runs, with an empty store."""
    command = [sys.executable, "-m", "castpoi.cli.main", "serve", str(run), "--port", "0", "--json"]
    mine = {"CASTPOI_API_KEYS", "CASTPOI_STORE"}  # a person's own settings are not measured
    environment = {name: value for name, value in os.environ.items() if name not in mine}
    with (
        run.with_name(f"{run.name}.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            [*command, "--no-import-city"], stdout=subprocess.PIPE, stderr=log, env=environment
        ) as process,
    ):
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            if not ready:
                raise SystemExit(f"the service did not start; {log.name} says why")
            yield Server(process.pid, int(json.loads(ready)["address"].rsplit(":", 1)[1]))
        finally:
            process.terminate()


def _shortlist_of(port: int) -> int | None:
    """The size of the service's shortlist; None: all places."""
    size: int | None = httpx.get(f"http://127.0.0.1:{port}/v1/model").json()["shortlist"]
    return size


def _stored(port: int, bodies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put every history into the store, and ask for its user instead."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for number, body in enumerate(bodies):
            visits = [{"user": f"person-{number}", **visit} for visit in body["history"]]
            client.post("/v1/visits", json={"visits": visits}).raise_for_status()
    return [{"user": f"person-{number}", "k": TOP} for number in range(len(bodies))]


def _memory(server: Server, order: Order, requests: int) -> dict[str, float]:
    """Resident memory after each fifth of many requests; the first fifth warms."""
    after, errors = [], 0
    for _ in range(5):
        errors += ask(replace(order, requests=requests // 5)).errors
        after.append(server.memory_mb)
    return {
        "requests": requests,
        "errors": errors,
        "after_a_fifth_mb": after[0],
        "at_the_end_mb": after[-1],
        "growth_mb": after[-1] - after[0],
    }


def _trained_run(folder: Path) -> Path:
    """The run that CASTPOI_RUN names, or one that has learned for an epoch; made once."""
    named = os.environ.get("CASTPOI_RUN")
    if named is not None:
        return Path(named)
    print("  CASTPOI_RUN names no run: the shortlist is that of one epoch on a synthetic city")
    learned = folder / "learned"
    if not learned.exists():
        city_of_new_yorks_size(folder)
        briefly = TrainingOptions(settings={"epochs": "1"})
        train(folder / "nyc-size", learned, method="castpoi", seed=7, options=briefly)
    return learned


def shortlist_of(run: Path, size: Size) -> dict[str, float]:
    """How much of the exact top ten the default shortlist finds for users of the city.

    Milliseconds are those of the bare call.
    """
    users = city_of(load_run(run)).users[record.USER_ID].to_list()
    asked = users[:: max(1, len(users) // size.people)][: size.people]
    bodies = [{"user": user, "k": TOP} for user in asked]
    exact = load(run, shortlist="all")
    short = load(run)
    found = {
        "anywhere": _compare(exact, short, lambda user: Request(user=user, k=TOP), asked),
        "new": _compare(exact, short, lambda user: Request(user=user, k=TOP, new_only=True), asked),
    }
    return {
        "places": len(exact.places),
        "size": short.shortlist or len(exact.places),
        "as_served_ms": _milliseconds(short, bodies, size.seconds),
        "exact_ms": _milliseconds(exact, bodies, size.seconds),
        "people": len(asked),
        **{f"{name}_{what}": share for name, row in found.items() for what, share in row.items()},
    }


def _compare(
    exact: Recommender,
    short: Recommender,
    request: Callable[[str], Request],
    users: Sequence[str],
) -> dict[str, float]:
    """Share of exact recommendations that are found, and of answers that are the same."""
    shared, same = [], []
    for user in users:
        wanted, got = (
            [each.place for each in one.recommend_many([request(user)])[0]]
            for one in (exact, short)
        )
        shared.append(len({*wanted} & {*got}) / len(wanted))
        same.append(wanted == got)
    return {"found": float(np.mean(shared)), "identical": float(np.mean(same))}
