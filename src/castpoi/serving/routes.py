"""The routes of the API, version 1 (docs/api.md)."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer

from castpoi.core.errors import BadInput
from castpoi.recommend.places import Box
from castpoi.recommend.recommendation import Recommendations
from castpoi.serving import answers
from castpoi.serving.schema import (
    Id,
    PostedVisit,
    PostedVisits,
    QueryTime,
    RecommendBody,
    Text,
    VisitsBody,
)
from castpoi.serving.service import Service
from castpoi.serving.settings import MOST_HISTORY, MOST_PLACES, MOST_USERS
from castpoi.serving.visits import answered_place, answered_visits, instant_of, stored_visit

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": answers.Error, "description": meaning}
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
    body: Annotated[VisitsBody, Body(description="One visit, or many under `visits`.")],
    service: Served,
) -> answers.VisitsReceipt:
    """Store one visit or many, all or none; the next recommendation uses them.

    A visit that was sent before, by its key or else by its place and time, is stored once. Visits
    more than a day ahead of the clock of this machine are rejected.
    """
    posted = body.visits if isinstance(body, PostedVisits) else [body]
    return await service.store_threads.write(lambda: _add(posted, service))


def _add(posted: Sequence[PostedVisit], service: Service) -> answers.VisitsReceipt:
    places, now_us = service.recommender.places, service.clock()
    receipt = service.store.add(
        [
            stored_visit(visit, places, what=f"visits[{number}].at", now_us=now_us)
            for number, visit in enumerate(posted)
        ]
    )
    service.metrics.visits.inc(receipt.stored)
    unknown = {visit.place for visit in posted} - places.number_of.keys()
    return answers.VisitsReceipt(
        stored=receipt.stored, repeated=receipt.repeated, unknown_places=sorted(unknown)
    )


@router.delete("/visits")
async def delete_visit(
    user: Annotated[Id, Query(description="Id of the user.")],
    place: Annotated[Id, Query(description="Id of the place.")],
    at: Annotated[QueryTime, Query(description="Time of the visit, as posted or as listed.")],
    service: Served,
) -> answers.Deleted:
    """Delete one visit of a user, by its place and time; deleting it again changes nothing."""
    at_us = instant_of(place, at, service.recommender.places, what="at")
    work = partial(service.store.delete_visit, user, place, at_us)
    return answers.Deleted(deleted=await service.store_threads.write(work))


@router.get("/users")
async def list_users(
    service: Served,
    q: Annotated[Text, Query(description="First characters of the id.")] = "",
    after: Annotated[Text, Query(description="Only ids after this one.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_USERS)] = 100,
) -> answers.Users:
    """Users with visits, by id, and their number of visits."""
    _ = service.recommender  # a new store has no city before the run is loaded
    work = partial(service.store.users, begin=q, after=after, most=limit)
    found = await service.store_threads.read(work)
    return answers.Users(users=[answers.UserCount(user=user, visits=n) for user, n in found])


# An id may contain a slash: `:path` makes every posted user readable and erasable.
@router.get("/users/{user:path}/visits")
async def user_visits(
    user: User,
    service: Served,
    limit: Annotated[int, Query(ge=1, le=MOST_HISTORY, description="Number of visits.")] = 100,
) -> answers.UserVisits:
    """The most recent visits of a user, in time order; an empty list for an unknown user."""

    def visits() -> list[answers.UserVisit]:
        history = service.store.histories([user], most=limit)[user]
        return answered_visits(history, service.recommender.places)

    return answers.UserVisits(visits=await service.store_threads.read(visits))


@router.delete("/users/{user:path}")
async def erase_user(user: User, service: Served) -> answers.Erased:
    """Erase a user and all their visits permanently."""
    _ = service.recommender  # an erasure before the import of the city would prevent it
    work = partial(service.store.erase, user)
    return answers.Erased(erased=await service.store_threads.write(work))


@router.get("/places", response_model=answers.Places)
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
    box = None if bbox is None else _box(bbox)
    found = places.find(text=q.strip(), box=box, limit=limit)
    return JSONResponse({"places": [vars(answered_place(number, places)) for number in found]})


@router.get("/model")
def card(service: Served) -> answers.ModelCard:
    """The model, where it comes from, and its metrics."""
    return service.card


@router.post("/model/reload")
async def reload(service: Served) -> answers.ModelCard:
    """Read the run folder again while requests continue; if that fails, nothing changes."""
    await service.reload()
    return service.card


def _box(text: str) -> Box:
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
