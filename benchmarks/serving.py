"""Latency of `castpoi serve`, next to a route that does nothing and a plain call of the model.

The service is measured with untrained models over random places. The quality of a shortlist depends
on the trained weights: it is measured on the run in the folder CASTPOI_RUN (its city must still be
in the folder where it was trained), or on a run trained for one epoch on a synthetic city.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import polars as pl

from benchmarks.clients import Load, send
from benchmarks.learning import city_of_new_yorks_size
from castpoi.checkins import record
from castpoi.core.provenance import Stopwatch
from castpoi.methods.registry import METHODS
from castpoi.methods.run import KNOWN_CHECKINS, PLACE_SCHEMA, city_of, load_run, new_run
from castpoi.model.castpoi import new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.windows import BatchBuilder
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Request
from castpoi.training.job import TrainingOptions
from castpoi.training.train import train

HISTORY: Final = 50
"""Visits per history: the length of the reader's window."""
PEOPLE: Final = 64
"""Number of different histories; requests use them in turn."""
TOP: Final = 10
"""Number of recommendations per answer, here and in the comparison with exact scores."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """Duration and size of the measurements."""

    runs: tuple[tuple[str, int], ...] = (
        ("castpoi", 5_000),
        ("castpoi-next", 5_000),
        ("castpoi-next", 100_000),
    )
    """Method and number of places."""
    seconds: float = 10
    """With 1 and 16 clients, and in all other measurements."""
    crowd_seconds: float = 60
    """With 64 clients."""
    steady_requests: int = 2_000
    """Requests while memory is measured."""
    people: int = 500
    """Users for whom the shortlist is compared with exact scores."""


def service_under_load(folder: Path, checkins: int) -> dict[str, Any]:
    """Latency of /v1/recommend with 1, 16 and 64 clients, its overhead, and the shortlist."""
    return measure_service(folder, Size())


def service_for_long(folder: Path, checkins: int) -> dict[str, Any]:
    """Memory over 50,000 requests; the other numbers are measured briefly."""
    runs = (("castpoi-next", 5_000),)
    return measure_service(
        folder, Size(runs=runs, seconds=2, crowd_seconds=2, steady_requests=50_000)
    )


def measure_service(folder: Path, size: Size) -> dict[str, Any]:
    """All numbers of the service: one group per run, and the shortlist of a trained run."""
    rows: dict[str, Any] = {}
    for method, places in size.runs:
        run = untrained_run(folder / f"untrained-{method}-{places}", method, places)
        for name, row in _of_run(run, places, size).items():
            rows[f"{method}_{places}_{name}"] = row
    return {**rows, "shortlist": shortlist_of(_trained_run(folder), size)}


def _of_run(run: Path, places: int, size: Size) -> dict[str, dict[str, float]]:
    """The numbers of one run: plain calls, then the service under increasing load."""
    bodies = histories(places)
    exact = _milliseconds(load(run, shortlist="all"), bodies, size.seconds)
    with serving(run) as server:
        shortlist = _shortlist_of(server.port)
        as_served = load(run, shortlist=shortlist or "all")
        bare = _milliseconds(as_served, bodies, size.seconds)
        recommend = Load(port=server.port, path="/v1/recommend", clients=1, bodies=bodies)
        nothing = Load(port=server.port, path="/healthz", clients=1, seconds=size.seconds / 2)
        noop = send(nothing)
        one = send(replace(recommend, seconds=size.seconds))
        some = send(replace(recommend, seconds=size.seconds, clients=16))
        crowd = send(replace(recommend, seconds=size.crowd_seconds, clients=64))
        stored = send(
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
        "1_client": asdict(one),
        "16_clients": asdict(some),
        "64_clients": asdict(crowd),
        "stored_user": asdict(stored),
        "framework": {
            "overhead_ms": one.p50_ms - bare,
            "times_bare": one.p50_ms / bare,
            "times_noop": one.p50_ms / noop.p50_ms,
        },
        "memory": memory,
    }


def untrained_run(folder: Path, method: str, places: int) -> Path:
    """A run with an untrained model over random places; created once."""
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
    new_run(
        ranker,
        method=method,
        seed=7,
        part=record.TEST,
        knows=[record.TRAIN],
        city=folder / "no-city",
        fingerprint="0" * 64,
        places=table,
        work=Stopwatch(),
    ).save(folder)
    return folder


def histories(places: int) -> list[dict[str, Any]]:
    """Request bodies, each with a different random history."""
    rng = np.random.default_rng(8)
    hours = [f"2024-01-{1 + hour // 24:02}T{hour % 24:02}:00:00-05:00" for hour in range(31 * 24)]
    bodies = []
    for _ in range(PEOPLE):
        visitable = rng.integers(
            places, size=HISTORY // 2
        )  # half as many places as visits: people revisit
        visited = rng.choice(visitable, size=HISTORY)
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
    """Median time of one call of `recommend` in this process."""
    recommender.recommend(**bodies[0])  # warm up
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken) < 3:
        began = time.perf_counter()
        recommender.recommend(**bodies[len(taken) % len(bodies)])
        taken.append(time.perf_counter() - began)
    return 1000 * float(np.median(taken))


@dataclass(frozen=True)
class Server:
    """A service in another process."""

    process: int
    port: int

    @property
    def memory_mb(self) -> float:
        """Current resident memory."""
        pages = int(Path(f"/proc/{self.process}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def serving(run: Path, *words: str) -> Iterator[Server]:
    """Run `castpoi serve` on a free port, with an empty store, while the block runs."""
    command = [sys.executable, "-m", "castpoi.cli.main", "serve", str(run), "--port", "0", "--json"]
    ignored = {"CASTPOI_API_KEYS", "CASTPOI_STORE"}  # settings of the developer
    environment = {name: value for name, value in os.environ.items() if name not in ignored}
    with (
        run.with_name(f"{run.name}.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            [*command, "--no-import-city", *words],
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            if not ready:
                raise SystemExit(f"the service did not start; see {log.name}")
            yield Server(process.pid, int(json.loads(ready)["address"].rsplit(":", 1)[1]))
        finally:
            process.terminate()


def _shortlist_of(port: int) -> int | None:
    """The size of the service's shortlist; None: all places."""
    size: int | None = httpx.get(f"http://127.0.0.1:{port}/v1/model").json()["shortlist"]
    return size


def _stored(port: int, bodies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Post every history to the store; returns request bodies that name its user instead."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for number, body in enumerate(bodies):
            visits = [{"user": f"person-{number}", **visit} for visit in body["history"]]
            client.post("/v1/visits", json={"visits": visits}).raise_for_status()
    return [{"user": f"person-{number}", "k": TOP} for number in range(len(bodies))]


def _memory(server: Server, load: Load, requests: int) -> dict[str, float]:
    """Growth of resident memory over many requests, after a first fifth as warm-up."""
    after, errors = [], 0
    for _ in range(5):
        errors += send(replace(load, requests=requests // 5)).errors
        after.append(server.memory_mb)
    return {
        "requests": requests,
        "errors": errors,
        "after_a_fifth_mb": after[0],
        "at_the_end_mb": after[-1],
        "growth_mb": after[-1] - after[0],
    }


def _trained_run(folder: Path) -> Path:
    """The run in CASTPOI_RUN, or one trained for one epoch; created once."""
    named = os.environ.get("CASTPOI_RUN")
    if named is not None:
        return Path(named)
    print("  CASTPOI_RUN is not set: the shortlist is measured after one epoch on a synthetic city")
    learned = folder / "learned"
    if not learned.exists():
        city_of_new_yorks_size(folder)
        briefly = TrainingOptions(settings={"epochs": "1"})
        train(folder / "nyc-size", learned, method="castpoi", seed=7, options=briefly)
    return learned


def shortlist_of(run: Path, size: Size) -> dict[str, float]:
    """Share of the exact top ten that the default shortlist finds for users of the city.

    Milliseconds are those of plain calls.
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
    """Share of exact recommendations that are found, and share of identical answers."""
    shared, same = [], []
    for user in users:
        wanted, got = (
            [each.place for each in one.recommend_many([request(user)])[0]]
            for one in (exact, short)
        )
        shared.append(len({*wanted} & {*got}) / len(wanted))
        same.append(wanted == got)
    return {"found": float(np.mean(shared)), "identical": float(np.mean(same))}
