"""Histories on which a shortlist is tried: of the store, else of the run's city, else made up."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from castpoi.checkins.record import HOUR_US
from castpoi.core.errors import BrokenFolder, BrokenStore
from castpoi.geo.zones import offsets_minutes
from castpoi.recommend.history import History, history_of
from castpoi.recommend.place_book import PlaceBook
from castpoi.recommend.user_visits import UserVisits
from castpoi.serving.settings import MOST_HISTORY
from castpoi.serving.store import VisitStore
from castpoi.serving.visit_desk import history_visits

_VISITS: Final = 50  # of a made-up history
_HAUNTS: Final = 25
_AROUND: Final = 200
_FIRST_US: Final = 1_704_067_200_000_000  # 2024-01-01


def histories_to_try(
    store: VisitStore, users: UserVisits | None, places: PlaceBook, *, most: int
) -> tuple[str, Sequence[History]]:
    """Whose histories they are, and histories none of which is empty, asked as they end."""
    for of, found in (
        ("stored", _stored(store, places, most)),
        ("city", _of_city(users, most)),
    ):
        histories = [_asked_as_it_ends(history) for history in found if len(history)]
        if histories:
            return of, histories
    strangers = made_up(places, most, np.random.default_rng(0))
    return "made-up", [_asked_as_it_ends(history) for history in strangers]


def _asked_as_it_ends(history: History) -> History:
    """The history with a moment to come, which a model of known time needs: its last one."""
    return replace(history, next_at_us=int(history.at_us[-1]))


def _stored(store: VisitStore, places: PlaceBook, most: int) -> Iterator[History]:
    try:
        visits = store.histories(store.some_users(most), most=MOST_HISTORY)
    except BrokenStore:  # what is wrong with it is told to those who need it
        return
    for own in visits.values():
        yield history_of(history_visits(own), places)[0]


def _of_city(users: UserVisits | None, most: int) -> Iterator[History]:
    try:
        yield from users.some(most) if users else ()
    except BrokenFolder:  # the city is no longer there
        return


def made_up(places: PlaceBook, count: int, rng: np.random.Generator) -> Iterator[History]:
    """People who go to and fro between places of one neighbourhood, popular ones more often."""
    weight = places.checkins + 1.0  # [P]
    for _ in range(count):
        home = int(rng.choice(len(places), p=weight / weight.sum()))
        near = np.argsort(places.km_from(places.point(home), slice(None)), kind="stable")[:_AROUND]
        share = weight[near] / weight[near].sum()
        haunts = rng.choice(near, size=_HAUNTS, p=share)
        place = rng.choice(haunts, size=_VISITS)  # [T]
        at_us = _FIRST_US + np.cumsum(rng.integers(1, 24, size=_VISITS)) * HOUR_US  # [T]
        offsets = offsets_minutes(at_us, places.zone_number[place], places.zones)
        yield History(place=place, at_us=at_us, offset_minutes=offsets.astype(np.int64))
