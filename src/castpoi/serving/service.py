"""The service behind the routes: the current recommender, the visit store and the batches."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from castpoi.checkins import record
from castpoi.checkins.city import City, name_of
from castpoi.core.errors import BadInput, BadScores, BrokenFolder, CastPoiError, ModelNotReady
from castpoi.core.files import is_folder_of, read_json, read_manifest
from castpoi.methods.ranker import Explains
from castpoi.methods.run import Run, city_of
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.request import Clock, Request, Visits, machine_clock
from castpoi.serving.answer_log import AnswerLog
from castpoi.serving.batcher import Batcher
from castpoi.serving.bodies import Id
from castpoi.serving.logs import log_event, log_failure
from castpoi.serving.middleware import Metrics
from castpoi.serving.reloads import SharedReload
from castpoi.serving.schema import ModelCard
from castpoi.serving.settings import MAX_HISTORY, ServiceSettings
from castpoi.serving.store import VisitStore
from castpoi.serving.store_visits import StoredVisit

# threads of the store; with that of histories at most the connections of the pool
_READERS: Final = 8
_WRITERS: Final = 16
_PROBE_US: Final = 1_704_067_200_000_000  # 2024-01-01
_METRICS: Final = "*/metrics.json"
_CHUNK: Final = 20_000  # check-ins of a city that are inserted together
_ID: Final[TypeAdapter[str]] = TypeAdapter(Id)

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True)
class CityImport:
    """Fills a new store with the check-ins of the run's city, once."""

    folder: Path | None  # None: where the run was trained, if it still exists
    report: Callable[[str], None]  # receives a sentence about each outcome

    def fill(self, store: VisitStore, run: Run) -> None:
        """Import the city unless the store has been used or has a city."""
        if not store.is_new():
            return
        try:
            city = city_of(run, self.folder)
        except BrokenFolder:
            if self.folder is not None:
                raise
            self.report(f"The store is empty: the run's city is no longer at {run.city}.")
            return
        imported = store.import_city(visits_of_city(city), fingerprint=city.fingerprint)
        self.report(f"Imported {imported:,} check-ins of the run's city into the new store.")
        if left_out := sum(not _is_valid_id(user) for user in city.users[record.USER_ID]):
            self.report(
                f"Left out the visits of {left_out:,} users whose ids no request can contain, so "
                "they could never be erased (over 256 characters, control characters, '.' or '..')."
            )


def visits_of_city(city: City) -> Iterator[list[StoredVisit]]:
    """The check-ins of a city in all splits, of users with valid ids, in chunks."""
    user_ids = city.users[record.USER_ID].to_list()
    is_kept = [_is_valid_id(user) for user in user_ids]
    place_ids = city.places[record.PLACE_ID].to_list()
    for rows in city.checkins.iter_slices(_CHUNK):
        columns = (rows[name].to_physical() for name in (record.USER, record.PLACE, record.AT_UTC))
        yield [
            StoredVisit(user=user_ids[user], place=place_ids[place], at_us=at_us)
            for user, place, at_us in zip(*columns, strict=True)
            if is_kept[user]
        ]


def _is_valid_id(user: str) -> bool:
    try:
        _ID.validate_python(user)
    except ValidationError:
        return False
    return True


class Service:
    """Everything that a route needs; starts and closes with its event loop."""

    def __init__(
        self,
        *,
        settings: ServiceSettings,
        load: Callable[[], Recommender],
        store: VisitStore,
        city: CityImport | None = None,
        page_of: Callable[[Run], str] | None = None,
        clock: Clock = machine_clock,
        name: str = "",
        others: Mapping[str, Callable[[], Recommender]] | None = None,
        shares: Mapping[str, float] | None = None,
        answer_log: AnswerLog | None = None,
        reload: Callable[[], Awaitable[ModelCard]] | None = None,
    ) -> None:
        self.settings = settings
        self.load = load  # reads the run
        self.name = name  # of the run, if there are others
        self.others = others or {}  # read further runs, by name
        self.shares = shares or {name: 1.0}  # of users, by the name of the run that answers
        self.answer_log = answer_log
        self.store = store
        self.city = city  # fills an empty store before the first answer
        self.page_of = page_of  # makes the page about the city of a run
        self._page: tuple[str, str] | None = None  # the fingerprint of a city and its page
        self.clock = clock  # decides which posted visits are in the future
        # one thread for the model and one for histories: the model never waits for the store
        limits = settings.limits
        bounds = {"max_batch": limits.together, "max_waiting": limits.waiting}
        self.batcher: Batcher[tuple[str, Request], Recommendations]
        self.batcher = Batcher(self._answer_all, thread="model", **bounds)
        self.histories = Batcher(self._read_histories, thread="histories", **bounds)
        # other calls to the store: a call that writes may wait long, and blocks none that reads
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="store-read")
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="store-write")
        self.metrics = Metrics(waiting=lambda: self.batcher.waiting + self.histories.waiting)
        self._current: dict[str, tuple[Recommender, ModelCard]] = {}
        self.reload = SharedReload(reload or self._reload)
        """Reads the run again while requests continue; the current one stays if that fails."""

    @property
    def recommender(self) -> Recommender:
        """The current recommender; raises ModelNotReady before the first load."""
        return self._ready()[0]

    @property
    def recommenders(self) -> dict[str, Recommender]:
        """The current recommenders of all runs, by name."""
        return {name: recommender for name, (recommender, _) in self._current.items()}

    def card(self, name: str | None = None) -> ModelCard:
        """The model and where it comes from; raises ModelNotReady before the first load."""
        return self._ready(name)[1]

    def city_page(self) -> str:
        """The page about the city of the run; made at the first call."""
        run = self.recommender.run
        if self.page_of is None:
            raise BrokenFolder(
                "the page of the city needs jinja2 and matplotlib; pip install 'castpoi[report]'"
            )
        if self._page is None or self._page[0] != run.fingerprint:
            self._page = run.fingerprint, self.page_of(run)
        return self._page[1]

    def _ready(self, name: str | None = None) -> tuple[Recommender, ModelCard]:
        if not self._current:
            raise ModelNotReady("the service is still loading its run; try again in a moment")
        name = self.name if name is None else name
        if name not in self._current:
            runs = ", ".join(filter(None, self._current)) or "no names, as there is only one"
            raise BadInput(f"run: there is no run '{name}'; the runs of this service have {runs}")
        return self._current[name]

    def run_of(self, user: str) -> str:
        """The name of the run that answers a user: by a hash, so always the same."""
        digest = hashlib.sha256(user.encode()).digest()
        point = int.from_bytes(digest[:8]) / 2**64 * sum(self.shares.values())
        for name, share in self.shares.items():
            point -= share
            if point < 0:
                return name
        return self.name

    async def recommend(self, request: Request, run: str | None = None) -> Recommendations:
        """The answer to a request; for a user, from the visits that the store has now.

        `run` names the run that answers; by default that of the user's share.
        """
        self._ready(run)
        user = request.user
        if user is None:
            return await self.batcher.submit((self.name if run is None else run, request))
        name = self.run_of(user) if run is None else run
        history = await self.histories.submit(user)
        request = replace(request, user=None, history=history)
        answer = await self.batcher.submit((name, request))
        if self.answer_log is not None and not request.explain and request.candidates is None:
            self.answer_log.add(user, name, answer, self.clock())
        return replace(answer, user_known=len(history.places) > 0)

    async def read_store(self, work: Callable[[], _Value]) -> _Value:
        """The value of a call that only reads the store."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def write_store(self, work: Callable[[], _Value]) -> _Value:
        """The value of a call that may change the store."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    async def start(self) -> None:
        """Load the run, and fill the store if it is new."""
        async with self.reload.turn:
            await asyncio.to_thread(self.load_and_log, self.city)

    async def _reload(self) -> ModelCard:
        await asyncio.to_thread(self.load_and_log)
        return self.card()

    def load_and_log(self, city: CityImport | None = None) -> None:
        """Load the run as `load_run`, and log and count the outcome."""
        began = perf_counter()
        try:
            recommender = self.load_run(city)
        except Exception as problem:
            self.metrics.reloads.labels("failed").inc()
            # our messages about a run have folders, never people
            reason = f"'{problem}'" if isinstance(problem, CastPoiError) else "unexpected"
            log_failure("run not loaded", problem, reason=reason)
            raise
        self.metrics.reloads.labels("loaded").inc()
        seconds = round(perf_counter() - began, 3)
        log_event("run loaded", model=recommender.model.replace(" ", ":"), seconds=seconds)

    def load_run(self, city: CityImport | None = None) -> Recommender:
        """Read the run, check its scores and answer with it from now on."""
        recommender = self.load()
        found = {self.name: recommender} | {name: load() for name, load in self.others.items()}
        for each in found.values():
            check_scores(each)
            _ = each.places.number_of  # computed here, not within the first request
        if city is not None:
            city.fill(self.store, recommender.run)
        shares = self.shares if self.others else {}
        self._current = {name: (each, model_card(each, shares)) for name, each in found.items()}
        return recommender

    async def close(self) -> None:
        """Finish what has begun and close the store."""
        await self.histories.close()
        await self.batcher.close()
        for threads in (self._readers, self._writers):
            await asyncio.to_thread(threads.shutdown)
        async with self.reload.turn:  # a load uses the store
            await asyncio.to_thread(self.store.close)
        if self.answer_log is not None:
            self.answer_log.close()

    def _answer_all(
        self, items: Sequence[tuple[str, Request]]
    ) -> list[Recommendations | Exception]:
        """The answer or the error of each request; runs in the thread of the model."""
        began = perf_counter()
        found: dict[int, Recommendations | Exception] = {}
        for name in dict.fromkeys(name for name, _ in items):
            numbers = [number for number, (own, _) in enumerate(items) if own == name]
            recommender = self._ready(name)[0]
            resolved = recommender.resolve([items[number][1] for number in numbers])
            valid = [each for each in resolved if not isinstance(each, CastPoiError)]
            answers = iter(recommender.answer(valid))
            for number, each in zip(numbers, resolved, strict=True):
                found[number] = each if isinstance(each, CastPoiError) else next(answers)
        self.metrics.batch_size.observe(len(items))
        self.metrics.model_seconds.observe(perf_counter() - began)
        return [found[number] for number in range(len(items))]

    def _read_histories(self, users: Sequence[str]) -> list[Visits]:
        """The latest visits of each user; runs in the thread of histories."""
        found = self.store.histories(users, most=MAX_HISTORY)
        return [found[user] for user in users]


def check_scores(recommender: Recommender) -> None:
    """Score every place after a visit to each of the first; raise BrokenFolder for NaN."""
    ids = recommender.places.ids[:50]
    at_us = _PROBE_US + np.arange(len(ids), dtype=np.int64) * record.HOUR_US
    request = Request(history=Visits.at_instants(ids, at_us), at_us=int(at_us[-1]))
    (resolved,) = recommender.resolve([request])
    try:
        if isinstance(resolved, CastPoiError):
            raise resolved
        recommender.score([resolved], len(recommender.places))
    except BadScores as problem:
        raise BrokenFolder(f"{recommender.run.name} cannot be served: {problem}") from problem


def model_card(recommender: Recommender, shares: Mapping[str, float] | None = None) -> ModelCard:
    """The model, where it comes from, and its metrics if they are known."""
    run, manifest = recommender.run, recommender.run.manifest
    ranker: Any = run.ranker
    return ModelCard(
        model=recommender.model,
        method=run.method,
        seed=run.seed,
        fingerprint=run.fingerprint,
        model_sha256=run.model_sha256,
        city=None if run.city is None else name_of(run.city),
        zone=recommender.places.main_zone,
        places=len(recommender.places),
        private_categories=list(recommender.places.private_categories),
        private_places=int(recommender.places.is_private.sum()),
        shortlist=recommender.shortlist,
        terms=dict(ranker.terms) if isinstance(ranker, Explains) else {},
        visits_by=recommender.weighed_by,
        known_time=recommender.needs_next_time,
        settings=ranker.config,
        trained_utc=manifest.get("ended_utc"),
        versions=manifest.get("versions", {}),
        commit=manifest.get("commit"),
        metrics=_metrics_of(run),
        runs=dict(shares or {}),
    )


def _metrics_of(run: Run) -> dict[str, float | None] | None:
    """The metrics of a test result of this run, if one is in a folder next to it."""
    assert run.folder is not None  # a run that is served was loaded
    home = run.folder.resolve()
    results = home.parent / "results"
    for metrics_file in sorted([*home.parent.glob(_METRICS), *results.glob(_METRICS)]):
        try:
            manifest = read_manifest(metrics_file.parent, kind="result")
            metrics: dict[str, float | None] = read_json(metrics_file)["metrics"]
        except (BrokenFolder, KeyError):
            continue
        # a demo keeps its run and the results of all methods in one folder
        is_demo = is_folder_of(home.parent, "demo") and metrics_file.is_relative_to(results)
        same = all(manifest.get(word) == run.manifest[word] for word in ("method", "fingerprint"))
        # the folder may have had another run when the result was made
        began = (manifest.get("trained") or {}).get("started_utc")
        is_of_run = manifest.get("run") == str(home) and began == run.manifest.get("started_utc")
        if same and (is_of_run or is_demo) and manifest.get("part") == "test":
            return metrics
    return None
