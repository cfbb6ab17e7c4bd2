"""Resolving a request: its visits, filters and time as place numbers and microseconds.

A resolved request can always be answered; every error of a request is raised here, before the
model is used.

Shapes: T visits, P places.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.reading.times import EARLIEST_US, LATEST_US
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput, CastPoiError, NoCandidateLeft, UnknownUser
from castpoi.core.quantities import counted
from castpoi.geo.zones import offsets_minutes, to_utc_us
from castpoi.recommend.area import Point, is_in_box, is_in_polygon
from castpoi.recommend.places import PlaceBook
from castpoi.recommend.request import (
    MAX_AHEAD_US,
    Request,
    Visits,
    check_in_range,
    local_datetime,
    name_of,
)

NEARBY: Final = 100  # for an empty history near a point, popularity ranks this many nearest places


@dataclass(frozen=True, kw_only=True)
class ResolvedRequest:
    """A request as the model needs it: one history and the allowed places."""

    history: Histories  # one
    at_us: int  # time of the request, from which "ago" is counted; UTC microseconds
    near: Point | None  # position of the person, if given
    origin: Point | None  # distances are measured from `near`, or from the last visit
    is_allowed: NDArray[np.bool_]  # which places may be recommended; at least one [P]
    is_rival: NDArray[np.bool_] | None  # the same without the candidates, if there are any [P]
    k: int
    max_per_category: int | None
    explain: bool
    remarks: tuple[str, ...]

    @property
    def has_visits(self) -> bool:
        """Whether the history has visits."""
        return len(self.history.place) > 0


class CityUsers:
    """The check-ins of the users of a run's city, loaded at the first request."""

    def __init__(self, load_city: Callable[[], City]) -> None:
        self._load_city = load_city

    def history_of(self, user_id: str) -> Histories:
        """All check-ins of a user, whatever their split."""
        number = self._number_of.get(user_id)
        if number is None:  # user ids are personal: the error does not repeat them
            raise UnknownUser(
                "this user has no check-ins in the run's city; give a history instead, or an id "
                "of the city's users.parquet"
            )
        histories = self._histories
        own = slice(histories.bounds[number], histories.bounds[number + 1])
        return Histories.of_one(
            place=histories.place[own],
            at_us=histories.at_us[own],
            offset_minutes=histories.offset_minutes[own],
        )

    @property
    def ids(self) -> pl.Series:
        """The ids of all users."""
        return self.city.users[record.USER_ID]

    @cached_property
    def _histories(self) -> Histories:
        """All check-ins of every user, as one history each."""
        table = self.city.checkins.select(pl.all().to_physical().cast(pl.Int64))
        numbers = np.arange(self.city.users.height + 1)
        return Histories(
            place=table[record.PLACE].to_numpy(),
            at_us=table[record.AT_UTC].to_numpy(),
            offset_minutes=table[record.OFFSET].to_numpy(),
            bounds=np.searchsorted(table[record.USER].to_numpy(), numbers),
        )

    @cached_property
    def city(self) -> City:
        """The city, loaded when it is first needed."""
        return self._load_city()

    @cached_property
    def _number_of(self) -> dict[str, int]:
        users = self.city.users
        return dict(zip(users[record.USER_ID], users[record.USER], strict=True))


def resolve_requests(
    requests: Sequence[Request],
    places: PlaceBook,
    users: CityUsers | None = None,
    *,
    now_us: int,
    needs_next_time: bool = False,
) -> list[ResolvedRequest | CastPoiError]:
    """Resolve each request, or return its BadInput, UnknownUser or NoCandidateLeft.

    Without `at_us`, the time of the request is that of the last visit; for a model with
    `needs_next_time` it is `now_us`, or the last visit if that is later. Visits more than a day
    after `now_us` are left out.
    """
    given = [request.history for request in requests if request.history is not None]
    read = iter(histories_of(given, places))
    found: list[ResolvedRequest | CastPoiError] = []
    for request in requests:
        try:
            history = _history_of_user(request, users) if request.history is None else next(read)
            if isinstance(history, BadInput):
                raise history
            found.append(_resolved(request, history, places, now_us, needs_next_time))
        except CastPoiError as problem:
            found.append(problem)
    return found


def _resolved(
    request: Request,
    history: Histories,
    places: PlaceBook,
    now_us: int,
    needs_next_time: bool,
) -> ResolvedRequest:
    remarks: list[str] = []
    given = len(history.place) if request.history is None else len(request.history.places)
    if skipped := given - len(history.place):
        remarks.append(f"{_were(skipped, 'visit')} skipped: not at a place of the run")
    history, at_us = _at_time(history, request.at_us, now_us, needs_next_time, remarks)
    _remark_on_candidates(request, places, history, remarks)
    origin = request.near
    if not len(history.place):
        is_nearby = origin is not None and request.within_km is None
        where = f" among the {max(NEARBY, request.k)} nearest" if is_nearby else ""
        remarks.append(f"the history is empty, so these are the most visited places{where}")
    elif origin is None:
        origin = places.point(int(history.place[-1]))
    rivals = None
    if request.candidates is not None:
        rivals = _allowed_places(replace(request, candidates=None), places, history, origin)
    return ResolvedRequest(
        history=history,
        at_us=at_us,
        near=request.near,
        origin=origin,
        is_allowed=_allowed_places(request, places, history, origin),
        is_rival=rivals,
        k=request.k,
        max_per_category=request.max_per_category,
        explain=request.explain,
        remarks=tuple(remarks),
    )


def history_of(
    visits: Visits, places: PlaceBook, *, name: Callable[[int], str] = name_of
) -> Histories:
    """The history of one person; raises its error. See `histories_of`."""
    (found,) = histories_of([visits], places, name=name)
    if isinstance(found, BadInput):
        raise found
    return found


def histories_of(
    visits: Sequence[Visits], places: PlaceBook, *, name: Callable[[int], str] = name_of
) -> list[Histories | BadInput]:
    """Visits of each person in order of time, then of place; those of unknown places are left out.

    `name` names a visit in an error.
    """
    if not visits:
        return []
    lengths = [len(each.places) for each in visits]
    number_of = places.number_of
    ids = (place for each in visits for place in each.places)
    numbers = np.fromiter((number_of.get(place, -1) for place in ids), np.int64, sum(lengths))
    known = np.flatnonzero(numbers >= 0)  # T from here on
    place, person = numbers[known], np.repeat(np.arange(len(visits)), lengths)[known]
    at_us = np.concatenate([each.clock_us for each in visits])[known]
    is_naive = np.concatenate([each.is_naive for each in visits])[known]
    wrong: dict[int, BadInput] = {}
    if is_naive.any():
        local_us = to_utc_us(at_us, places.zone_number[place], places.zones)
        is_outside = (local_us < EARLIEST_US) | (local_us >= LATEST_US)
        for visit in np.flatnonzero(is_naive & is_outside).tolist():
            local_time = local_datetime(int(at_us[visit]), 0).replace(tzinfo=None)
            what = name(int(known[visit]) - sum(lengths[: person[visit]]))
            try:
                check_in_range(int(local_us[visit]), local_time, what=what)
            except BadInput as problem:
                wrong.setdefault(int(person[visit]), problem)
        at_us = np.where(is_naive, local_us, at_us)
    order = np.lexsort((place, at_us, person))
    place, at_us = place[order], at_us[order]
    offsets = offsets_minutes(at_us, places.zone_number[place], places.zones).astype(np.int64)
    bounds = np.searchsorted(person[order], np.arange(len(visits) + 1)).tolist()
    return [
        wrong.get(number)
        or Histories.of_one(place=place[own], at_us=at_us[own], offset_minutes=offsets[own])
        for number, own in enumerate(map(slice, bounds, bounds[1:]))
    ]


def _history_of_user(request: Request, users: CityUsers | None) -> Histories:
    if users is None or request.user is None:
        raise UnknownUser("this recommender has no visits of users; give a history instead")
    return users.history_of(request.user)


def _at_time(
    history: Histories, at_us: int | None, now_us: int, needs_next_time: bool, remarks: list[str]
) -> tuple[Histories, int]:
    """The history up to the time of the request, and that time."""
    if at_us is not None:
        latest_us, why = at_us, "later than the time of the request"
    else:
        latest_us, why = now_us + MAX_AHEAD_US, "more than a day later than now"
    before = history.until(latest_us)
    if later := len(history.place) - len(before.place):
        remarks.append(f"{_were(later, 'visit')} left out: {why}")
    if at_us is None:
        at_us = int(before.at_us[-1]) if len(before.place) else 0
        at_us = max(at_us, now_us) if needs_next_time else at_us
    if needs_next_time:
        before = replace(before, next_at_us=np.array([at_us], dtype=np.int64))
    return before, at_us


def _remark_on_candidates(
    request: Request, places: PlaceBook, history: Histories, remarks: list[str]
) -> None:
    for ids, thing in ((request.candidates, "candidate"), (request.exclude, "excluded place")):
        if unknown := sum(each not in places.number_of for each in set(ids or ())):
            remarks.append(f"{_were(unknown, thing)} skipped: not among the places of the run")
    known = set(_numbers_of(request.candidates or (), places).tolist())
    private = sum(bool(places.is_private[place]) for place in known - set(history.place.tolist()))
    if closed := int(places.is_closed[list(known)].sum()):
        remarks.append(f"{_were(closed, 'candidate')} left out: closed")
    if private:
        remarks.append(f"{_were(private, 'candidate')} left out: private, and not in the history")


def _were(count: int, thing: str) -> str:
    return f"{counted(count, thing)} {'was' if count == 1 else 'were'}"


def _allowed_places(
    request: Request, places: PlaceBook, history: Histories, origin: Point | None
) -> NDArray[np.bool_]:
    """Which places the filters keep; raises NoCandidateLeft for the one that keeps none. [P]"""
    allowed = np.ones(len(places), dtype=np.bool_)
    for is_kept, rule, fix in _filters(request, places, history, origin):
        kept = allowed & is_kept
        if not kept.any():
            raise NoCandidateLeft(
                f"no place is left to recommend: none of {int(allowed.sum()):,} {rule}; {fix}"
            )
        allowed = kept
    if request.near is not None and request.within_km is None and not len(history.place):
        numbers = np.flatnonzero(allowed)
        order = np.argsort(places.km_from(request.near, numbers), kind="stable")
        allowed[numbers[order[max(NEARBY, request.k) :]]] = False
    return allowed


def _filters(
    request: Request, places: PlaceBook, history: Histories, origin: Point | None
) -> Iterator[tuple[NDArray[np.bool_], str, str]]:
    """Each filter of a request: the places it keeps [P], its rule, and how to widen it."""
    visited = _is_among(history.place, places)  # [P]
    if request.candidates is not None:
        is_candidate = _is_among(_numbers_of(request.candidates, places), places)
        yield is_candidate, "is among the given candidates", "give ids of places of the run"
    if request.categories is not None:
        is_wanted = places.is_of_category(request.categories)
        names = " or ".join(map(repr, request.categories))
        yield is_wanted, f"has the category {names}", "give other categories"
    yield from _area_filters(request, places, origin)
    if request.exclude is not None:
        is_excluded = _is_among(_numbers_of(request.exclude, places), places)
        yield ~is_excluded, "is left (exclude)", "exclude fewer places or widen the other filters"
    if request.exclude_visited:
        how = "widen the other filters or allow visited places"
        yield ~visited, "is unvisited (exclude_visited)", how
    if request.new_only:
        recent = _is_among(history.place[-REVISIT_WINDOW:], places)
        rule = f"is new, that is, not among the last {REVISIT_WINDOW} visits (new_only)"
        yield ~recent, rule, "widen the other filters or allow places visited before"
    yield ~places.is_closed, "is open (closed places)", "widen the other filters"
    rule = "is public or in the history (private places)"
    yield ~places.is_private | visited, rule, "choose other categories"


def _area_filters(
    request: Request, places: PlaceBook, origin: Point | None
) -> Iterator[tuple[NDArray[np.bool_], str, str]]:
    """The filters by position."""
    if request.within_km is not None:
        if origin is None:
            raise BadInput(
                f"within_km={request.within_km:g} has no point to measure from, as the history is "
                "empty; give near"
            )
        is_close = places.is_within(origin, request.within_km)
        point = "the last visit" if request.near is None else "near"
        rule = f"is within {request.within_km:g} km of {point} (within_km)"
        yield is_close, rule, "increase within_km"
    if request.box is not None:
        is_inside = is_in_box(request.box, places.lat, places.lon)
        yield is_inside, "is in the box (box)", "enlarge the box"
    if request.polygon is not None:
        is_inside = is_in_polygon(request.polygon, places.lat, places.lon)
        yield is_inside, "is in the polygon (polygon)", "enlarge the polygon"


def _numbers_of(ids: Iterable[str], places: PlaceBook) -> NDArray[np.int64]:
    """Numbers of the known places."""
    known = [places.number_of[each] for each in ids if each in places.number_of]
    return np.array(known, dtype=np.int64)


def _is_among(numbers: NDArray[np.int64], places: PlaceBook) -> NDArray[np.bool_]:
    among = np.zeros(len(places), dtype=np.bool_)  # [P]
    among[numbers] = True
    return among
