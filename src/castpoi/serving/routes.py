"""The routes about people: recommendations, visits, users; and the model (docs/api.md)."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Body, Path, Query
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse

from castpoi.core.errors import BadInput, CastPoiError
from castpoi.geo.zones import offsets_minutes
from castpoi.recommend.places import PlaceBook
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.request import MAX_AHEAD_US, Moment, Visits, local_datetime
from castpoi.recommend.resolve import history_of
from castpoi.serving import bodies, schema
from castpoi.serving.bodies import (
    BatchBody,
    Id,
    PostedVisit,
    PostedVisits,
    QueryTime,
    RecommendBody,
    Text,
)
from castpoi.serving.dependencies import (
    GEOJSON,
    Respond,
    Responses,
    Served,
    api_router,
    errors,
)
from castpoi.serving.service import Service
from castpoi.serving.settings import MAX_HISTORY, MAX_USERS
from castpoi.serving.store_visits import StoredVisit

_NDJSON: Final = "application/x-ndjson"
_LINES: Final[Responses] = {
    200: {
        "description": "One line for each request.",
        "content": {_NDJSON: {"schema": {"type": "string"}}},
    }
}
_BODY: Final = errors(400, 413)

router = api_router()

User = Annotated[Id, Path(description="Id of the user.")]


@router.post(
    "/recommend", tags=["recommend"], response_model=Recommendations, responses=_BODY | GEOJSON
)
async def recommend(body: RecommendBody, service: Served, respond: Respond) -> JSONResponse:
    """The most probable next places of a user or after a history; with `explain`, the reasons."""
    answer = await service.recommend(body.request, body.run)
    return respond(answer.to_dict(), "recommendations")


@router.post(
    "/explain", tags=["recommend"], response_model=Recommendations, responses=_BODY | GEOJSON
)
async def explain(body: RecommendBody, service: Served, respond: Respond) -> JSONResponse:
    """The next places with explanations: terms, contributing visits, counterfactuals.

    With `candidates`, only these places are ranked and explained.
    """
    answer = await service.recommend(replace(body.request, explain=True), body.run)
    return respond(answer.to_dict(), "recommendations")


@router.post(
    "/recommend/batch",
    tags=["recommend"],
    response_class=StreamingResponse,
    responses=_BODY | _LINES,
)
async def recommend_batch(body: BatchBody, service: Served) -> StreamingResponse:
    """The answers to many requests, one per line, in their order (NDJSON).

    A line has the answer of `/v1/recommend`, or `error` if a request cannot be answered; the
    others are not affected.
    """
    _ = service.recommender  # before the first line, when the status can still be 503
    return StreamingResponse(_lines(service, body.requests), media_type=_NDJSON)


async def _lines(service: Service, requests: Sequence[RecommendBody]) -> AsyncIterator[bytes]:
    """Answer a few requests at a time, so that other clients do not wait for the whole batch."""
    together = service.settings.limits.together
    for start in range(0, len(requests), together):
        work = [
            service.recommend(each.request, each.run) for each in requests[start : start + together]
        ]
        for answer in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(answer, CastPoiError):
                line: dict[str, Any] = {"error": str(answer)}
            elif isinstance(answer, BaseException):
                raise answer
            else:
                line = answer.to_dict()
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


@router.post("/visits", tags=["visits"], responses=errors(400, 409, 413))
async def post_visits(
    body: Annotated[bodies.VisitsBody, Body(description="One visit, or many under `visits`.")],
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
    stored = service.store.add(
        [_stored_visit(visit, n, places, now_us) for n, visit in enumerate(posted)]
    )
    service.metrics.visits.inc(stored)
    unknown = {visit.place for visit in posted} - places.number_of.keys()
    return schema.VisitsReceipt(
        stored=stored, repeated=len(posted) - stored, unknown_places=sorted(unknown)
    )


def _stored_visit(posted: PostedVisit, number: int, places: PlaceBook, now_us: int) -> StoredVisit:
    """A posted visit as a row of the store; its number is in errors."""
    what = f"visits[{number}].at"
    at_us = _instant_us(posted.place, posted.at, places, what=what)
    if at_us > now_us + MAX_AHEAD_US:
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
    visit = history_of(Visits.of([(place, at)]), places, name=lambda _: what)
    return int(visit.at_us[0])


@router.delete("/visits", tags=["visits"])
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


@router.get("/users", tags=["visits"])
async def list_users(
    service: Served,
    q: Annotated[Text, Query(description="First characters of the id.")] = "",
    after: Annotated[Text, Query(description="The `next` of the previous page.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_USERS, description="Number of users.")] = 100,
) -> schema.Users:
    """Users with visits, by id, and their number of visits."""
    _ = service.recommender  # a new store has no city before the run is loaded
    work = partial(service.store.users, begin=q, after=after, most=limit + 1)
    found = await service.read_store(work)
    return schema.Users(
        users=[schema.UserCount(user=user, visits=n) for user, n in found[:limit]],
        next=found[limit - 1][0] if len(found) > limit else None,
    )


# An id may contain a slash: `:path` makes every posted user readable and erasable.
@router.get("/users/{user:id}/visits", tags=["visits"])
async def user_visits(
    user: User,
    service: Served,
    after: Annotated[Text, Query(description="The `next` of the previous page.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_HISTORY, description="Number of visits.")] = 100,
) -> schema.UserVisits:
    """The most recent visits of a user, oldest first; `next` leads to the ones before.

    An empty list for an unknown user.
    """

    def visits() -> schema.UserVisits:
        page, following = service.store.page_of_visits(user, after=after, most=limit)
        local = _local_visits(page, service.recommender.places)
        return schema.UserVisits(visits=local, next=following)

    return await service.read_store(visits)


@router.delete("/users/{user:id}", tags=["visits"])
async def erase_user(user: User, service: Served) -> schema.Erased:
    """Erase a user and all their visits permanently."""
    _ = service.recommender  # an erasure before the import of the city would prevent it
    work = partial(service.store.erase, user)
    return schema.Erased(erased=await service.write_store(work))


@router.get("/model", tags=["model"])
def model_card(
    service: Served,
    run: Annotated[Text | None, Query(description="Name of a run, if there are several.")] = None,
) -> schema.ModelCard:
    """The model, where it comes from, and its metrics."""
    return service.card(run)


@router.get("/city", tags=["model"], response_class=HTMLResponse, responses=errors(409))
def city_page(service: Served) -> HTMLResponse:
    """The city in numbers, charts and a map, without users, as a page."""
    return HTMLResponse(service.city_page())


@router.post("/model/reload", tags=["model"], responses=errors(409))
async def reload_model(service: Served) -> schema.ModelCard:
    """Read the run folder again while requests continue; if that fails, nothing changes."""
    return await service.reload()


def _local_visits(visits: Visits, places: PlaceBook) -> list[schema.UserVisit]:
    """Stored visits in local times, with the known details of their places."""
    numbers = [places.number_of.get(place, -1) for place in visits.places]
    offsets = offsets_minutes(visits.clock_us, places.zone_number[numbers], places.zones).tolist()
    found = []
    for row, (place, number) in enumerate(zip(visits.places, numbers, strict=True)):
        details: dict[str, Any] = dict.fromkeys(("name", "category", "lat", "lon"))
        if number >= 0:
            details = places.details(number)
        # UTC where the place is not known
        at = local_datetime(int(visits.clock_us[row]), offsets[row] if number >= 0 else 0)
        found.append(schema.UserVisit(**{**details, "place": place, "at": at.isoformat()}))
    return found
