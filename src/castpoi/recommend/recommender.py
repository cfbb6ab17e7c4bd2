"""The recommender: a run that predicts the next places of a person and explains them.

    recommender = castpoi.load("run")
    recommender.recommend(history=[("cafe", "2012-04-03T18:00:09-04:00")], k=10, explain=True)

Requests are first resolved, each on its own, and then answered together: one encoding and one
scoring for all of them. Every error of a request is found while resolving, so a bad request does
not affect the others of its batch.

Learned methods are never trained on an empty history. There, the scores of every method are the
log of the known check-ins.

Shapes: B histories, P places.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from castpoi.checkins.city import City
from castpoi.checkins.record import PRIVATE_CATEGORIES
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput, CastPoiError
from castpoi.core.notebook import html_table
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import Stopwatch
from castpoi.methods.ranker import Explains, FindsBest, Found, abilities_of
from castpoi.methods.registry import METHODS
from castpoi.methods.run import Run, city_of, load_run
from castpoi.recommend.batch import MAX_SCORES, recommend_people
from castpoi.recommend.changed_places import (
    ClosedPlaces,
    TableOfPlaces,
    closed_ids,
    with_cold_places,
)
from castpoi.recommend.explain import Explanation, explain
from castpoi.recommend.people import people_of
from castpoi.recommend.places import PlaceBook
from castpoi.recommend.recommendation import (
    Recommendations,
    WeighedBy,
    recommendations_of,
)
from castpoi.recommend.request import (
    DEFAULT_K,
    AnyHistory,
    AnyTime,
    Clock,
    Request,
    machine_clock,
)
from castpoi.recommend.resolve import CityUsers, ResolvedRequest, resolve_requests
from castpoi.recommend.scores import (
    Shortlist,
    best_places,
    check_finite,
    shortlist_scores,
    shortlist_size,
    with_few_of_a_group,
    with_ranks,
)
from castpoi.recommend.similar import SimilarPlaces, similar_places


class Recommender:
    """Answers requests with the ranker of one run; has no state of any user."""

    def __init__(
        self,
        run: Run,
        places: PlaceBook,
        *,
        users: CityUsers | None = None,
        shortlist: int | None = None,
        private_categories: Iterable[str] = PRIVATE_CATEGORIES,
        clock: Clock = machine_clock,
    ) -> None:
        self.run = run
        self.ranker = run.ranker
        self.places = replace(places, private_categories=tuple(private_categories))
        self.users = users
        self.clock = clock
        abilities = abilities_of(self.ranker)
        self.needs_next_time = abilities.needs_next_time
        self.shortlist = shortlist if abilities.has_reader else None
        self.finder: FindsBest[Any] | None = None
        if abilities.has_index and isinstance(self.ranker, FindsBest):
            self.finder = self.ranker
            self.finder.build_index()
        self.weighed_by: WeighedBy = "attention" if abilities.has_reader else "counterfactual"
        self.model = f"{run.method} {run.model_sha256[:12]}"

    def recommend(
        self,
        history: AnyHistory | None = None,
        *,
        user: str | int | None = None,
        k: int = DEFAULT_K,
        at: AnyTime | None = None,
        near: Iterable[float] | None = None,
        within_km: float | None = None,
        box: Iterable[float] | None = None,
        polygon: Iterable[Iterable[float]] | None = None,
        categories: Iterable[str] | str | None = None,
        max_per_category: int | None = None,
        exclude: Iterable[str | int] | str | None = None,
        exclude_visited: bool = False,
        new_only: bool = False,
        candidates: Iterable[str | int] | str | None = None,
        explain: bool = False,
    ) -> Recommendations:
        """The k most probable next places after a history, or after the visits of a user.

        A history is a list of visits (pairs of place and time) or a table with these columns.
        Filters apply before the k best are taken: `box` is south, west, north, east, `polygon` a
        list of corners (latitude, longitude), `exclude` and `candidates` are ids of places. `at` is
        the time of the request: later visits are left out (without `at`, visits more than a day
        later than now), and "ago" is counted from it. Only a model trained with `--known-time`
        predicts for this time, by default now.
        """
        request = Request.of(
            history=history,
            user=user,
            k=k,
            at=at,
            near=near,
            within_km=within_km,
            box=box,
            polygon=polygon,
            categories=categories,
            max_per_category=max_per_category,
            exclude=exclude,
            exclude_visited=exclude_visited,
            new_only=new_only,
            candidates=candidates,
            explain=explain,
        )
        return self.recommend_many([request])[0]

    def recommend_all(
        self,
        users: Iterable[str | int] | None = None,
        *,
        histories: Any = None,
        progress: Progress = SILENCE,
        **options: Any,
    ) -> pl.DataFrame:
        """Recommendations for many people: one row each, by person and rank.

        For all users of the city, for some `users` (ids, or a table with filters of their own), or
        for everybody in `histories`, a table with the columns user, place and time. `options` are
        those of `recommend`. Users without an answer are missing; a warning names them.
        """
        people = people_of(self, users, histories, **options)
        table, rejected = recommend_people(self, people, progress=progress)
        if rejected.height:
            first = ", ".join(rejected["user"][:3]) + ", …" * (rejected.height > 3)
            warnings.warn(
                f"no recommendations for {rejected.height:,} of {len(people):,} users ({first}); "
                f"the first because {rejected['error'][0]}",
                stacklevel=2,
            )
        return table

    def similar(
        self,
        place: str | int,
        *,
        k: int = DEFAULT_K,
        within_km: float | None = None,
        categories: Iterable[str] | str | None = None,
    ) -> SimilarPlaces:
        """The k places most similar to a place, private and closed places left out.

        Places are compared by the vectors of the model. A model without vectors gives places of the
        same category, nearest first.
        """
        request = Request.of(history=(), k=k, within_km=within_km, categories=categories)
        return similar_places(
            self.ranker,
            self.places,
            str(place),
            model=self.model,
            k=request.k,
            within_km=request.within_km,
            categories=request.categories,
        )

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the run to a folder, for `castpoi.load` and the command line."""
        self.run.save(Path(folder), overwrite=overwrite)

    @property
    def city(self) -> City:
        """The city of the run, loaded when it is first needed."""
        if self.users is None:
            raise BadInput("this recommender has no city; give it to castpoi.load(run, city=...)")
        return self.users.city

    def __repr__(self) -> str:
        return f"Recommender of {self.model}, {len(self.places):,} places"

    def _repr_html_(self) -> str:
        manifest = self.run.manifest
        settings = ", ".join(f"{name}={value}" for name, value in self.run.row["settings"].items())
        rows = [
            ("preset", self.run.row["preset"] or "–"),
            ("settings", settings or "–"),
            ("seed", self.run.seed),
            ("split", self.run.fingerprint[:12]),
            ("trained", f"{manifest['ended_utc']} in {manifest['wall_seconds']:.0f} s"),
        ]
        return html_table(["model", self.model], rows, caption=repr(self))

    def recommend_many(self, requests: Sequence[Request]) -> list[Recommendations]:
        """Answer requests in one batch; raises the error of the first bad request.

        Scores equal those of each request alone up to float32 rounding (about 1e-6), which may
        swap places of nearly equal scores.
        """
        work = Stopwatch()
        resolved = []
        for found in self.resolve(requests):
            if isinstance(found, CastPoiError):
                raise found
            resolved.append(found)
        return self.answer(resolved, work=work)

    def resolve(self, requests: Sequence[Request]) -> list[ResolvedRequest | CastPoiError]:
        """Each request resolved, or its error; without the model."""
        return resolve_requests(
            requests,
            self.places,
            self.users,
            now_us=self.clock(),
            needs_next_time=self.needs_next_time,
        )

    def answer(
        self, requests: Sequence[ResolvedRequest], *, work: Stopwatch | None = None
    ) -> list[Recommendations]:
        """Answer any number of resolved requests within bounded memory, in their order.

        `work` has run since they came in.
        """
        work = work or Stopwatch()
        groups: dict[tuple[int | None, bool], list[int]] = defaultdict(list)
        for number, request in enumerate(requests):
            groups[self.places_to_score(request), request.explain].append(number)
        together = max(1, MAX_SCORES // len(self.places))
        found: dict[int, Recommendations] = {}
        for (size, _), numbers in groups.items():
            for start in range(0, len(numbers), together):
                some = numbers[start : start + together]
                answers = self._recommend([requests[number] for number in some], size, work)
                found |= zip(some, answers, strict=True)
        return [found[number] for number in range(len(requests))]

    def places_to_score(self, request: ResolvedRequest) -> int | None:
        """How many places to score exactly; None for an empty history.

        Only requests with the same number are scored together: the k of one request must not
        change the scores of others.
        """
        if not request.has_visits:
            return None
        if request.max_per_category is not None:
            return len(self.places)  # a shortlist may have too few categories
        if self.finder is not None:
            return request.k
        if self.shortlist is None:
            return len(self.places)
        return min(max(self.shortlist, request.k), len(self.places))

    def _recommend(
        self, requests: Sequence[ResolvedRequest], size: int | None, work: Stopwatch
    ) -> Iterator[Recommendations]:
        """Answer requests that agree in `size` and in `explain`, in one batch."""
        state, found = self.score(requests, size)
        is_explained = requests[0].explain
        explanations: Sequence[Sequence[Explanation | None]]
        explanations = [[None] * len(each.place) for each in found]
        if is_explained:
            explanations = explain(
                self.ranker,
                state,
                [request.history for request in requests],
                [each.place for each in found],
                [each.score for each in found],
                self.places.log_popularity,
            )
        for request, best, whys in zip(requests, found, explanations, strict=True):
            yield Recommendations(
                recommendations=tuple(recommendations_of(request, best, whys, self.places)),
                model=self.model,
                seconds=work.seconds,
                remarks=(*request.remarks, *self._remarks(request)),
                visits_by=self.weighed_by if is_explained else None,
            )

    def score(
        self, requests: Sequence[ResolvedRequest], size: int | None
    ) -> tuple[Any, list[Found]]:
        """The encoding of requests, and the best places of each, `size` of them scored exactly.

        If `size` is None, the histories are empty: no encoding, and popularity as score.
        """
        is_allowed, state = np.stack([request.is_allowed for request in requests]), None  # [B, P]
        if size is None:
            scores = np.tile(self.places.log_popularity, (len(requests), 1))  # [B, P]
        else:
            state = self.ranker.encode(Histories.concat([each.history for each in requests]))
            if size < len(self.places) and self.finder is not None:
                found = self.finder.best(state, is_allowed, size)
                check_finite(np.array([each.log_total for each in found]))
                return state, found
            if size < len(self.places):
                scores, is_allowed = shortlist_scores(self.ranker, state, is_allowed, size)
            else:
                scores = self.ranker.score(state)
        limits = [request.max_per_category for request in requests]
        counts = [
            each.k if most is None else len(self.places)
            for each, most in zip(requests, limits, strict=True)
        ]
        best = [
            found
            if most is None
            else with_few_of_a_group(found, each.k, group=self.places.category_number, most=most)
            for each, most, found in zip(
                requests, limits, best_places(scores, is_allowed, counts), strict=True
            )
        ]
        if size is None or size == len(self.places):  # all scores are exact
            rows = zip(best, scores, requests, strict=True)
            best = [with_ranks(found, own, each.is_rival) for found, own, each in rows]
        return state, best

    def _remarks(self, request: ResolvedRequest) -> Iterator[str]:
        """Sentences about limits of the method for this request."""
        method = METHODS.named(self.run.method)
        if request.has_visits and request.explain and not isinstance(self.ranker, Explains):
            yield f"the scores of {method.name} have no terms, so only visits are shown"
        if request.has_visits and not method.needs_training:
            yield (
                f"{method.name} is a counting baseline: its probabilities rank places, but they "
                "are not calibrated"
            )


def load(
    run: str | PathLike[str] | Run,
    *,
    city: str | PathLike[str] | City | None = None,
    shortlist: Shortlist | None = None,
    private_categories: Iterable[str] | None = None,
    places: TableOfPlaces | None = None,
    closed: ClosedPlaces | None = None,
) -> Recommender:
    """A recommender from the folder of a run, or from a run in memory.

    `city` is the folder of the run's city if it has moved, or the city; only `user=...` needs it.
    `shortlist` is the number of places that the reader of `castpoi` scores exactly, or "all"; by
    default 384 for more than 2,000 places and all below. Places of `private_categories` (by
    default homes in the published category trees) are recommended only to people who have visited
    them; an empty list recommends them to everybody. `places` is a table, or its file, of places to
    add to the run's: place, lat, lon and optionally name and category; only a model with shared
    vectors can rank them. `closed` places are never recommended: ids, or a table or its file
    (`closed_ids`).
    """
    loaded = run if isinstance(run, Run) else load_run(Path(run))
    folder = None if city is None or isinstance(city, City) else Path(city)
    table = loaded.places
    if places is not None:
        loaded, table = with_cold_places(loaded, table, places)
    book = PlaceBook.of(table, closed=closed_ids(closed, places))
    return Recommender(
        loaded,
        book,
        users=CityUsers(lambda: city if isinstance(city, City) else city_of(loaded, folder)),
        shortlist=shortlist_size(shortlist, places=len(book)),
        private_categories=PRIVATE_CATEGORIES if private_categories is None else private_categories,
    )
