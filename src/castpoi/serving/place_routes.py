"""The routes about places: lists, one place, similar ones, categories, the most popular."""

from collections import Counter
from typing import Annotated, Any

import numpy as np
from fastapi import Path, Query
from fastapi.responses import JSONResponse

from castpoi.core.errors import UnknownPlace
from castpoi.geo.land import land_in, window_around
from castpoi.recommend.area import parse_box
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.request import DEFAULT_K, Request
from castpoi.recommend.similar import SimilarPlaces
from castpoi.serving import schema
from castpoi.serving.bodies import Id, Text
from castpoi.serving.dependencies import GEOJSON, Respond, Served, api_router, errors
from castpoi.serving.settings import MAX_PLACES, MAX_RECOMMENDATIONS

router = api_router()

PlaceId = Annotated[Id, Path(description="Id of the place.")]
Box = Annotated[
    str | None, Query(max_length=100, description="Only in south,west,north,east, in degrees.")
]
Number = Annotated[int, Query(ge=1, le=MAX_RECOMMENDATIONS, description="Number of places.")]
Categories = Annotated[
    list[Id] | None, Query(description="Only places of this category; may be repeated.")
]
Within = Annotated[float | None, Query(gt=0, description="Only places within this distance.")]


@router.get(
    "/places", tags=["places"], response_model=schema.Places, responses=errors(404) | GEOJSON
)
def find_places(
    service: Served,
    respond: Respond,
    bbox: Box = None,
    q: Annotated[str, Query(max_length=100, description="Part of a name, category or id.")] = "",
    after: Annotated[Text, Query(description="The `next` of the previous page.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_PLACES, description="Number of places.")] = 100,
) -> JSONResponse:
    """Places, those with most check-ins first; only in a box, or with a text in their name.

    Private places are not listed.
    """
    places = service.recommender.places
    found = places.find(
        text=q.strip(),
        box=None if bbox is None else parse_box(bbox, what="bbox"),
        after=places.number(after) if after else None,
        limit=limit + 1,
    )
    page = [places.details(number) for number in found[:limit]]
    following = page[-1]["place"] if len(found) > limit else None
    return respond({"places": page, "next": following}, "places")


@router.get(
    "/places/{place:id}/similar",
    tags=["places"],
    response_model=SimilarPlaces,
    responses=errors(404) | GEOJSON,
)
def similar_places(
    place: PlaceId,
    service: Served,
    respond: Respond,
    k: Number = DEFAULT_K,
    within_km: Within = None,
    category: Categories = None,
) -> JSONResponse:
    """The places most similar to a place, by the vectors of the model if it has them."""
    recommender = service.recommender
    _number_of(place, recommender)
    answer = recommender.similar(place, k=k, within_km=within_km, categories=category)
    return respond(answer.to_dict(), "places")


@router.get("/places/{place:id}", tags=["places"], responses=errors(404))
def get_place(place: PlaceId, service: Served) -> schema.Place:
    """One place; a private place is not found."""
    recommender = service.recommender
    return schema.Place(**recommender.places.details(_number_of(place, recommender)))


@router.get("/categories", tags=["places"])
def list_categories(service: Served) -> schema.Categories:
    """Categories with their number of places, largest first; private places do not count."""
    places = service.recommender.places
    shown = np.flatnonzero(~places.is_private).tolist()
    count = Counter(filter(None, (places.categories[number] for number in shown)))
    return schema.Categories(
        categories=[schema.Category(category=name, places=n) for name, n in count.most_common()]
    )


@router.get("/popular", tags=["places"], response_model=Recommendations, responses=GEOJSON)
async def popular_places(
    service: Served,
    respond: Respond,
    k: Number = DEFAULT_K,
    bbox: Box = None,
    category: Categories = None,
) -> JSONResponse:
    """The places with most check-ins, as recommended to somebody without visits."""
    request = Request.of(
        history=(),
        k=k,
        box=None if bbox is None else parse_box(bbox, what="bbox"),
        categories=category,
    )
    answer = await service.recommend(request)
    return respond(answer.to_dict(), "recommendations")


def _number_of(place: str, recommender: Recommender) -> int:
    """The number of a public place."""
    number = recommender.places.number(place)
    if recommender.places.is_private[number]:
        raise UnknownPlace("the place is private; it is shown only to people who have been there")
    return number


@router.get("/land")
def land(service: Served) -> dict[str, Any]:
    """The coarse outline of land and sea around the places, as GeoJSON polygons.

    Each has the property `kind`: `sea` for the box of the outline, then `land` above it.
    """
    places = service.recommender.places
    window = window_around(places.lat, places.lon)
    south, west, north, east = window
    sea = [(west, south), (east, south), (east, north), (west, north)]
    rings = [("sea", np.array(sea)), *(("land", ring) for ring in land_in(window))]
    shapes = [
        {
            "type": "Feature",
            "properties": {"kind": kind},
            "geometry": {
                "type": "Polygon",
                "coordinates": [np.round([*ring, ring[0]], 4).tolist()],
            },
        }
        for kind, ring in rings
    ]
    return {"type": "FeatureCollection", "features": shapes}
