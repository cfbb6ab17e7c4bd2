"""The recommender: a run that answers where to go next, and why.

    recommender = castpoi.load("run")
    recommender.recommend(history=[("cafe", "2012-04-03T18:00:09-04:00")], k=10, explain=True)

A request becomes a *question* (checked, visits and filters resolved to place numbers); many
questions are answered together, by one encoding and one scoring. A question that stands can be
answered: whatever is wrong with a request is told by `ask`, so that one bad request never spoils
the others of a batch.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from castpoi.checkins.record import PRIVATE_CATEGORIES
from castpoi.core.provenance import Stopwatch
from castpoi.methods.ranker import abilities_of
from castpoi.methods.registry import METHODS, Method
from castpoi.methods.run import Run, load_run, read_places
from castpoi.recommend.answering import Answerer
from castpoi.recommend.cold_places import TableOfPlaces, with_cold_places
from castpoi.recommend.moments import Clock, machine_clock
from castpoi.recommend.place_book import PlaceBook
from castpoi.recommend.question import Question, put
from castpoi.recommend.recommendation import Recommendations, VisitsBy
from castpoi.recommend.request import DEFAULT_K, Request, Visit
from castpoi.recommend.scores import PlaceScorer
from castpoi.recommend.shortlist_choice import EXACT, Setting, Shortlist, decided
from castpoi.recommend.user_visits import UserVisits

if TYPE_CHECKING:  # it needs torch, which counted methods do without
    from castpoi.recommend.reasons import Reasoner

EXACT_UP_TO: Final = 20_000
"""Vocabularies of at most so many places are scored exactly, all others by a shortlist."""
SHORTLIST: Final = 256
"""Places of that shortlist."""


class Recommender:
    """Answers requests with the ranker of one run; holds no state of anybody."""

    def __init__(
        self,
        run: Run,
        places: PlaceBook,
        *,
        users: UserVisits | None = None,
        shortlist: Shortlist = EXACT,
        private_categories: Iterable[str] = PRIVATE_CATEGORIES,
        clock: Clock = machine_clock,
    ) -> None:
        self.clock = clock
        self.run = run
        self.places = places
        self.users = users
        self.private_categories = tuple(private_categories)
        self.is_private = places.is_of_any(self.private_categories)  # [P]
        method = METHODS.named(run.method)
        self.shortlist = shortlist if _has_reader(run, method) else EXACT
        scorer, reasoner = _scorer_and_reasoner(run, method, places, self.shortlist)
        self._answerer = Answerer(scorer, reasoner, places, model=self.model, method=method)

    @property
    def model(self) -> str:
        """Which model answers: its method and the beginning of its SHA-256."""
        return f"{self.run.method} {self.run.model_sha256[:12]}"

    @property
    def known_time(self) -> bool:
        """Whether the moment of asking is taken for that of the next visit, and changes scores."""
        return abilities_of(self.run.ranker).needs_next_time

    @property
    def visits_by(self) -> VisitsBy | None:
        """What the weights of visits in reasons mean; None if the method cannot tell visits."""
        return self._answerer.visits_by

    def with_shortlist(self, shortlist: Shortlist) -> "Recommender":
        """The same run, which reads for a shortlist of another size."""
        return Recommender(
            self.run,
            self.places,
            users=self.users,
            shortlist=shortlist,
            private_categories=self.private_categories,
            clock=self.clock,
        )

    def recommend(
        self,
        history: Iterable[Visit | Mapping[str, Any] | tuple[str, datetime | str]] | None = None,
        *,
        user: str | None = None,
        k: int = DEFAULT_K,
        at: datetime | str | None = None,
        near: Iterable[float] | None = None,
        within_km: float | None = None,
        categories: Iterable[str] | None = None,
        exclude_visited: bool = False,
        new_only: bool = False,
        candidates: Iterable[str] | None = None,
        explain: bool = False,
    ) -> Recommendations:
        """The k likeliest next places after a history, or after the known visits of a user.

        The filters apply before the k best are taken. `at` is the moment of asking: visits after
        it (without it, visits more than a day later than now) are left out and "ago" is counted
        from it. Only a model that was trained with known time
        takes it for the moment of the visit to come, and then it is now unless told.
        """
        request = Request.of(
            history=history,
            user=user,
            k=k,
            at=at,
            near=near,
            within_km=within_km,
            categories=categories,
            exclude_visited=exclude_visited,
            new_only=new_only,
            candidates=candidates,
            explain=explain,
        )
        return self.recommend_many([request])[0]

    def recommend_many(self, requests: Sequence[Request]) -> list[Recommendations]:
        """An answer for every request, all scored in one batch.

        Scores equal those of each request alone up to float32 rounding (some 1e-6), which may
        swap places of nearly equal scores.
        """
        work = Stopwatch()
        return self.answer([self.ask(request) for request in requests], work=work)

    def ask(self, request: Request) -> Question:
        """The question a request puts, or an error that tells what is wrong with it.

        Cheap, without the model. Raises BadInput, UnknownUser or NoCandidateLeft.
        """
        return put(
            request,
            self.places,
            self.users,
            self.is_private,
            now_us=self.clock(),
            known_time=self.known_time,
        )

    def answer(
        self, questions: Sequence[Question], *, work: Stopwatch | None = None
    ) -> list[Recommendations]:
        """The answers to questions, one encoding and one scoring for all of them."""
        return self._answerer.answer(questions, work or Stopwatch())


def load(
    run: str | Path,
    *,
    city: str | Path | None = None,
    exact_up_to: int = EXACT_UP_TO,
    shortlist: Setting = SHORTLIST,
    private_categories: Iterable[str] | None = None,
    places: TableOfPlaces | None = None,
) -> Recommender:
    """A recommender from the folder of a run.

    `city` is the folder of the run's city if it has moved; only `user=...` reads it. In
    vocabularies of more than `exact_up_to` places CaST-POI reads only for a `shortlist` of so many;
    "all" reads for all, and "auto" does so until a service has measured which size will do. Places
    of `private_categories`
    ("Home (private)") are recommended only to those who have been there; if empty, to everybody.
    `places` is a table, or its file, of cold places to rank as well: place, lat, lon, and perhaps
    name and category; only a model with shared vectors can.
    """
    loaded = load_run(Path(run))
    now = None if city is None else Path(city)
    table = read_places(loaded)
    if places is not None:
        loaded, table = with_cold_places(loaded, table, places)
    book = PlaceBook.of(table)
    return Recommender(
        loaded,
        book,
        users=UserVisits(loaded, now),
        shortlist=decided(shortlist, places=len(book), exact_up_to=exact_up_to),
        private_categories=PRIVATE_CATEGORIES if private_categories is None else private_categories,
    )


def _has_reader(run: Run, method: Method) -> bool:
    """Whether scores have a dear term that a shortlist could save."""
    if not method.needs_training:
        return False
    from castpoi.model.ranker import CastPoiRanker

    return isinstance(run.ranker, CastPoiRanker) and run.ranker.scorer.reader is not None


def _scorer_and_reasoner(
    run: Run, method: Method, places: PlaceBook, shortlist: Shortlist
) -> "tuple[PlaceScorer, Reasoner | None]":
    """Who scores and who explains; only the scores of CaST-POI have terms and a shortlist."""
    if method.needs_training:
        from castpoi.model.ranker import CastPoiRanker
        from castpoi.recommend.reasons import Reasoner
        from castpoi.recommend.shortlist import ShortlistScorer

        if isinstance(run.ranker, CastPoiRanker):
            reasoner = Reasoner(run.ranker, places)
            if shortlist.is_exact:
                return PlaceScorer(run.ranker, places), reasoner
            sizes = (size or len(places) for size in (shortlist.size, shortlist.size_new))
            return ShortlistScorer(run.ranker, places, *sizes), reasoner
    return PlaceScorer(run.ranker, places), None
