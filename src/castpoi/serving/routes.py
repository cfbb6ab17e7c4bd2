"""The routes of the API, version 1; their words are a contract (docs/api.md)."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer

from castpoi.core.errors import BadInput
from castpoi.serving import answer_schema as told
from castpoi.serving.schema import (
    Id,
    PostedVisit,
    PostedVisits,
    RecommendBody,
    Text,
    Time,
    VisitsBody,
)
from castpoi.serving.service import Service
from castpoi.serving.settings import MOST_HISTORY, MOST_PLACES, MOST_USERS
from castpoi.serving.visit_desk import stored_visit, told_place, told_visits, visit_instant_us

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": told.ErrorAnswer, "description": meaning}
    for status, meaning in {
        400: "The request cannot be read.",
        401: "An API key is needed.",
        403: "No API key is set, and it is asked by another name or a page of another site.",
        409: "It contradicts what is there.",
        413: "The body is too large.",
        422: "A field is wrong; the answer names it.",
        503: "Too many wait, or the run is being loaded; see Retry-After.",
    }.items()
}

# Only tells the OpenAPI page of the key: the doorkeeper has looked at it before any route.
_key = HTTPBearer(auto_error=False, description="An API key of the service, if it has some.")

router = APIRouter(prefix="/v1", responses=_ERRORS, dependencies=[Depends(_key)])


async def service_of(request: Request) -> Service:  # a plain function would cross threads
    """The service this request came to."""
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(service_of)]
User = Annotated[Id, Path(description="The user's id.")]


@router.post("/recommend", response_model=told.RecommendAnswer)
async def recommend(body: RecommendBody, service: Served) -> JSONResponse:
    """The likeliest next places of a user, or after a history; reasons if asked for."""
    answer = await service.recommend(body.request(explain=body.explain))
    return JSONResponse(answer.to_dict())


@router.post("/explain", response_model=told.RecommendAnswer)
async def explain(body: RecommendBody, service: Served) -> JSONResponse:
    """The same with reasons: terms, the visits that speak for each place, counterfactuals.

    With `candidates`, the reasons for those very places.
    """
    answer = await service.recommend(body.request(explain=True))
    return JSONResponse(answer.to_dict())


@router.post("/visits", response_model=told.VisitsReceipt)
async def post_visits(
    body: Annotated[VisitsBody, Body(description="One visit, or many under `visits`.")],
    service: Served,
) -> JSONResponse:
    """Keep one visit or many, all or none; the next recommendation knows them.

    A visit that was sent before, by its key or else by its place and time, is not stored twice.
    One that is more than a day ahead of this machine's clock is refused.
    """
    posted = body.visits if isinstance(body, PostedVisits) else [body]
    return JSONResponse(await service.store_threads.write(lambda: _keep(posted, service)))


def _keep(posted: Sequence[PostedVisit], service: Service) -> dict[str, Any]:
    places, now_us = service.run.current.places, service.clock()
    receipt = service.store.add(
        [
            stored_visit(visit, places, what=f"visits[{number}].at", now_us=now_us)
            for number, visit in enumerate(posted)
        ]
    )
    service.metrics.visits.inc(receipt.stored)
    unknown = {visit.place for visit in posted} - places.number_of.keys()
    return {
        "stored": receipt.stored,
        "repeated": receipt.repeated,
        "unknown_places": sorted(unknown),
    }


@router.delete("/visits", response_model=told.DeletedVisit)
async def delete_visit(
    user: Annotated[Id, Query(description="Whose visit it is.")],
    place: Annotated[Id, Query(description="Where it was.")],
    at: Annotated[Time, Query(description="When it was, as posted or as listed.")],
    service: Served,
) -> JSONResponse:
    """Delete one visit of a user, by its place and time; deleting it again changes nothing."""
    at_us = visit_instant_us(place, at, service.run.current.places, what="at")
    work = partial(service.store.delete_visit, user, place, at_us)
    return JSONResponse({"deleted": await service.store_threads.write(work)})


@router.get("/users", response_model=told.UsersAnswer)
async def list_users(
    service: Served,
    q: Annotated[Text, Query(description="How the id begins.")] = "",
    after: Annotated[Text, Query(description="Only ids behind this one.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_USERS)] = 100,
) -> JSONResponse:
    """Users that have visits, by id, with how many."""
    _ = service.run.current  # before it is there, a new store still lacks its city
    work = partial(service.store.users, begin=q, after=after, most=limit)
    found = await service.store_threads.read(work)
    return JSONResponse({"users": [{"user": user, "visits": count} for user, count in found]})


# An id may hold a slash: `:path` lets every user that was posted also be read and erased.
@router.get("/users/{user:path}/visits", response_model=told.UserVisitsAnswer)
async def user_visits(
    user: User,
    service: Served,
    limit: Annotated[int, Query(ge=1, le=MOST_HISTORY, description="The latest so many.")] = 100,
) -> JSONResponse:
    """The latest visits of a user, oldest first; none for somebody who was never heard of."""

    def visits() -> list[dict[str, Any]]:
        found = service.store.histories([user], most=limit)[user]
        return told_visits(found, service.run.current.places)

    return JSONResponse({"visits": await service.store_threads.read(visits)})


@router.delete("/users/{user:path}", response_model=told.Erased)
async def erase_user(user: User, service: Served) -> JSONResponse:
    """Erase a user and all their visits for good."""
    _ = service.run.current  # a store in which somebody was erased takes no city
    work = partial(service.store.erase, user)
    return JSONResponse({"erased": await service.store_threads.write(work)})


@router.get("/places", response_model=told.PlacesAnswer)
def find_places(
    service: Served,
    bbox: Annotated[
        str | None, Query(max_length=100, description="south,west,north,east in degrees")
    ] = None,
    q: Annotated[str, Query(max_length=100, description="Part of a name, category or id.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_PLACES)] = 100,
) -> JSONResponse:
    """Places of a box, of a name, or all; those with most check-ins first."""
    places = service.run.current.places
    box = None if bbox is None else _box(bbox)
    found = places.find(text=q.strip(), box=box, limit=limit)
    return JSONResponse(
        {"places": [{"place": places.ids[n], **told_place(n, places)} for n in found]}
    )


@router.get("/model", response_model=told.ModelCard)
def card(service: Served) -> JSONResponse:
    """Which model answers, where it comes from and how well it does."""
    return JSONResponse(service.run.card)


@router.post("/model/reload", response_model=told.ModelCard)
async def reload(service: Served) -> JSONResponse:
    """Read the run folder anew, without dropping a request; the former run stays if that fails."""
    await service.reload()
    return JSONResponse(service.run.card)


def _box(text: str) -> tuple[float, float, float, float]:
    try:
        south, west, north, east = (float(part) for part in text.split(","))
    except ValueError as problem:
        raise BadInput("bbox: write four numbers as south,west,north,east") from problem
    if not (-90 <= south <= north <= 90 and -180 <= west <= 180 and -180 <= east <= 180):
        raise BadInput(
            "bbox: south,west,north,east must be latitudes from -90 to 90, south below north, and "
            "longitudes from -180 to 180"
        )
    return south, west, north, east
