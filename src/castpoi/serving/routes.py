"""The routes of the API, version 1 (docs/api.md)."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

import numpy as np
from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer

from castpoi.core.errors import BadInput
from castpoi.geo.zones import offsets_minutes
from castpoi.recommend.area import parse_box
from castpoi.recommend.places import PlaceBook
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.request import MOST_AHEAD_US, Moment, Visits, local_datetime
from castpoi.recommend.resolve import history_of
from castpoi.serving import schema
from castpoi.serving.schema import Id, PostedVisit, PostedVisits, QueryTime, RecommendBody, Text
from castpoi.serving.service import Service
from castpoi.serving.settings import MOST_HISTORY, MOST_PLACES, MOST_USERS
from castpoi.serving.store import StoredHistory, StoredVisit

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": schema.Error, "description": meaning}
    for status, meaning in {
        400: "The request cannot be read.",
        401: "An API key is required.",
        403: "No API key is set, and the request has a foreign Host or Origin.",
        409: "The request contradicts stored data.",
        413: "The body is too large.",
        422: "A field is wrong; the answer names it.",
        503: "Too many requests wait, or the run is being loaded; see Retry-After.",
    }.items()
}

# Only describes the key in OpenAPI: the middleware has checked it before any route.
_key = HTTPBearer(auto_error=False, description="An API key of the service, if it has any.")

router = APIRouter(prefix="/v1", responses=_ERRORS, dependencies=[Depends(_key)])


async def service_of(request: Request) -> Service:  # a plain function would change threads
    """The service of this request."""
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(service_of)]
User = Annotated[Id, Path(description="Id of the user.")]


@router.post("/recommend", response_model=Recommendations)
async def recommend(body: RecommendBody, service: Served) -> JSONResponse:
    """The most probable next places of a user or after a history, with `explain` also why."""
    answer = await service.recommend(body.request(explain=body.explain))
    return JSONResponse(answer.to_dict())


@router.post("/explain", response_model=Recommendations)
async def explain(body: RecommendBody, service: Served) -> JSONResponse:
    """The same with explanations: terms, contributing visits, counterfactuals.

    With `candidates`, the explanations of these places.
    """
    answer = await service.recommend(body.request(explain=True))
    return JSONResponse(answer.to_dict())


@router.post("/visits")
async def post_visits(
    body: Annotated[schema.VisitsBody, Body(description="One visit, or many under `visits`.")],
    service: Served,
) -> schema.VisitsReceipt:
    """Store one visit or many, all or none; the next recommendation uses them.

    A visit that was sent before, by its key or else by its place and time, is stored once. Visits
    more than a day ahead of the clock of this machine are rejected.
    """
    posted = body.visits if isinstance(body, PostedVisits) else [body]
    return await service.write_store(lambda: _add(posted, service))


def _add(posted: Sequence[PostedVisit], service: Service) -> schema.VisitsReceipt:
    places, now_us = service.recommender.places, service.clock()
    receipt = service.store.add(
        [_stored_visit(visit, n, places, now_us) for n, visit in enumerate(posted)]
    )
    service.metrics.visits.inc(receipt.stored)
    unknown = {visit.place for visit in posted} - places.number_of.keys()
    return schema.VisitsReceipt(
        stored=receipt.stored, repeated=receipt.repeated, unknown_places=sorted(unknown)
    )


def _stored_visit(posted: PostedVisit, number: int, places: PlaceBook, now_us: int) -> StoredVisit:
    """A posted visit as a row of the store; its number is in errors."""
    what = f"visits[{number}].at"
    at_us = _instant_us(posted.place, posted.at, places, what=what)
    if at_us > now_us + MOST_AHEAD_US:
        at, now = (f"{local_datetime(us, 0):%Y-%m-%dT%H:%M:%SZ}" for us in (at_us, now_us))
        raise BadInput(
            f"{what}: {at} is more than a day after {now}, the current time of this machine; "
            "correct the time of the visit (or that clock)"
        )
    return StoredVisit(user=posted.user, place=posted.place, at_us=at_us, key=posted.key)


def _instant_us(place: str, at: Moment, places: PlaceBook, *, what: str) -> int:
    """The instant of a visit; a time without an offset is the local time of the place."""
    if not at.is_naive:
        return at.clock_us
    if place not in places.number_of:
        raise BadInput(
            f"{what}: the time has no offset from UTC, and the place is not in the model, so "
            "its time zone is not known; write the time as 2012-04-03T18:00:09-04:00"
        )
    visit = history_of(Visits.at_moments([place], [at]), places, name=lambda _: what)
    return int(visit.at_us[0])


@router.delete("/visits")
async def delete_visit(
    user: Annotated[Id, Query(description="Id of the user.")],
    place: Annotated[Id, Query(description="Id of the place.")],
    at: Annotated[QueryTime, Query(description="Time of the visit, as posted or as listed.")],
    service: Served,
) -> schema.Deleted:
    """Delete one visit of a user, by its place and time; deleting it again changes nothing."""
    at_us = _instant_us(place, at, service.recommender.places, what="at")
    work = partial(service.store.delete_visit, user, place, at_us)
    return schema.Deleted(deleted=await service.write_store(work))


@router.get("/users")
async def list_users(
    service: Served,
    q: Annotated[Text, Query(description="First characters of the id.")] = "",
    after: Annotated[Text, Query(description="Only ids after this one.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_USERS)] = 100,
) -> schema.Users:
    """Users with visits, by id, and their number of visits."""
    _ = service.recommender  # a new store has no city before the run is loaded
    work = partial(service.store.users, begin=q, after=after, most=limit)
    found = await service.read_store(work)
    return schema.Users(users=[schema.UserCount(user=user, visits=n) for user, n in found])


# An id may contain a slash: `:path` makes every posted user readable and erasable.
@router.get("/users/{user:path}/visits")
async def user_visits(
    user: User,
    service: Served,
    limit: Annotated[int, Query(ge=1, le=MOST_HISTORY, description="Number of visits.")] = 100,
) -> schema.UserVisits:
    """The most recent visits of a user, in time order; an empty list for an unknown user."""

    def visits() -> list[schema.UserVisit]:
        history = service.store.histories([user], most=limit)[user]
        return _local_visits(history, service.recommender.places)

    return schema.UserVisits(visits=await service.read_store(visits))


@router.delete("/users/{user:path}")
async def erase_user(user: User, service: Served) -> schema.Erased:
    """Erase a user and all their visits permanently."""
    _ = service.recommender  # an erasure before the import of the city would prevent it
    work = partial(service.store.erase, user)
    return schema.Erased(erased=await service.write_store(work))


@router.get("/places", response_model=schema.Places)
def find_places(
    service: Served,
    bbox: Annotated[
        str | None, Query(max_length=100, description="south,west,north,east in degrees")
    ] = None,
    q: Annotated[str, Query(max_length=100, description="Part of a name, category or id.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_PLACES)] = 100,
) -> JSONResponse:
    """Places in a box, with a text in their name, or all; those with most check-ins first."""
    places = service.recommender.places
    box = None if bbox is None else parse_box(bbox, what="bbox")
    found = places.find(text=q.strip(), box=box, limit=limit)
    return JSONResponse({"places": [places.details(number) for number in found]})


@router.get("/model")
def card(service: Served) -> schema.ModelCard:
    """The model, where it comes from, and its metrics."""
    return service.card


@router.post("/model/reload")
async def reload(service: Served) -> schema.ModelCard:
    """Read the run folder again while requests continue; if that fails, nothing changes."""
    await service.reload()
    return service.card


def _local_visits(history: StoredHistory, places: PlaceBook) -> list[schema.UserVisit]:
    """Stored visits in local times, with the known details of their places."""
    numbers = [places.number_of.get(place) for place in history.place_ids]
    known = np.array([number is not None for number in numbers], dtype=np.bool_)
    zones = places.zone_number[[number for number in numbers if number is not None]]
    offsets = np.zeros(len(numbers), dtype=np.int64)  # UTC where the place is not known
    offsets[known] = offsets_minutes(history.at_us[known], zones, places.zones)
    found = []
    columns = (history.place_ids, numbers, history.at_us.tolist(), offsets.tolist())
    for place, number, at_us, offset in zip(*columns, strict=True):
        details: dict[str, Any] = dict.fromkeys(("name", "category", "lat", "lon"))
        if number is not None:
            details = places.details(number)
        at = local_datetime(at_us, offset).isoformat()
        found.append(schema.UserVisit(**{**details, "place": place, "at": at}))
    return found
