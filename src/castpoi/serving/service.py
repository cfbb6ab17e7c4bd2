"""The service behind its routes: a run that answers, a store that remembers, a batch in between."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from castpoi.core.errors import CastPoiError
from castpoi.recommend.moments import Clock, machine_clock
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.request import Request, Visit
from castpoi.serving.batcher import Batcher
from castpoi.serving.city_import import CityImport
from castpoi.serving.logs import log_event, log_failure
from castpoi.serving.measured_shortlist import with_measured_shortlist
from castpoi.serving.metrics import Metrics
from castpoi.serving.served_run import ServedRun
from castpoi.serving.settings import MOST_HISTORY, ServiceSettings
from castpoi.serving.store import VisitStore
from castpoi.serving.store_threads import StoreThreads
from castpoi.serving.visit_desk import history_visits


@dataclass(kw_only=True)
class Service:
    """Everything a route needs; begins and ends with the event loop it lives in."""

    settings: ServiceSettings
    run: ServedRun
    store: VisitStore
    city: CityImport | None = None
    """What fills an empty store before the first answer."""
    clock: Clock = machine_clock
    """Tells which posted visits are of the future."""
    batcher: Batcher[Request, Recommendations] = field(init=False)
    """The model's thread."""
    histories: Batcher[str, tuple[Visit, ...]] = field(init=False)
    """Reads users' visits in a thread of its own: the model never waits for the store."""
    store_threads: StoreThreads = field(init=False, default_factory=StoreThreads)
    metrics: Metrics = field(init=False)
    _loading: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _next_reload: asyncio.Task[None] | None = field(init=False, default=None)
    """One that waits until the load under way is done."""

    def __post_init__(self) -> None:
        limits = self.settings.limits
        bounds = {"most_together": limits.together, "most_waiting": limits.waiting}
        self.batcher = Batcher(self._answer_all, thread="model", **bounds)
        self.histories = Batcher(self._read_histories, thread="histories", **bounds)
        self.metrics = Metrics(waiting=lambda: self.batcher.waiting + self.histories.waiting)

    async def recommend(self, request: Request) -> Recommendations:
        """The answer to a request; with a user, after the visits the store has now."""
        _ = self.run.current  # not ready is told at once
        if request.user is not None:
            history = await self.histories.ask(request.user)
            request = replace(request, user=None, history=history)
        return await self.batcher.ask(request)

    async def begin(self) -> None:
        """Fill the store if it is new, load the run and be ready."""
        async with self._loading:
            await self._load(self._first_made_ready)

    async def reload(self) -> None:
        """Load the run anew beside the work that goes on; raises what is wrong with it.

        All who ask while a load is under way share the next one: the former may have read the
        folder before they changed it.
        """
        if self._next_reload is None:
            self._next_reload = asyncio.create_task(self._reload_in_turn())
        await asyncio.shield(self._next_reload)  # whoever goes away does not end it for others

    async def _reload_in_turn(self) -> None:
        async with self._loading:
            self._next_reload = None
            await self._load(self._made_ready)

    async def _load(self, finish: Callable[[Recommender], Recommender]) -> None:
        began = perf_counter()
        try:
            recommender = await asyncio.to_thread(self.run.load, finish)
        except Exception as problem:
            self.metrics.reloads.labels("failed").inc()
            # what we say of a run names folders, never people
            reason = f"'{problem}'" if isinstance(problem, CastPoiError) else "unforeseen"
            log_failure("run not loaded", problem, reason=reason)
            raise
        self.metrics.reloads.labels("loaded").inc()
        seconds = round(perf_counter() - began, 3)
        log_event("run loaded", model=recommender.model.replace(" ", ":"), seconds=seconds)

    def _first_made_ready(self, recommender: Recommender) -> Recommender:
        if self.city is not None:
            self.city.fill(self.store, recommender.run)
        return self._made_ready(recommender)

    def _made_ready(self, recommender: Recommender) -> Recommender:
        return with_measured_shortlist(recommender, self.store)

    async def close(self) -> None:
        """Finish what was begun and let go of the store."""
        await self.histories.close()
        await self.batcher.close()
        await asyncio.to_thread(self.store_threads.close)
        async with self._loading:  # a load reads the store
            await asyncio.to_thread(self.store.close)

    def _answer_all(self, requests: Sequence[Request]) -> list[Recommendations | Exception]:
        """An answer, or what is wrong, for every request; works in the model's thread."""
        began = perf_counter()
        recommender = self.run.current
        questions = []
        fates: list[Exception | None] = []
        for request in requests:
            try:
                questions.append(recommender.ask(request))
                fates.append(None)
            except CastPoiError as problem:
                fates.append(problem)
        answers = iter(recommender.answer(questions) if questions else ())
        self.metrics.batch_size.observe(len(requests))
        self.metrics.model_seconds.observe(perf_counter() - began)
        return [next(answers) if fate is None else fate for fate in fates]

    def _read_histories(self, users: Sequence[str]) -> list[tuple[Visit, ...]]:
        """The latest visits of every user; works in the thread of histories."""
        found = self.store.histories(users, most=MOST_HISTORY)
        return [history_visits(found[user]) for user in users]
