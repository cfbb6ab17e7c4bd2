"""Parts of all routes: the service, the check of the query, the errors, and answers as GeoJSON."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.convertors import PathConvertor, register_url_convertor

from castpoi.core.errors import did_you_mean
from castpoi.recommend.recommendation import MEDIA_TYPE, feature_collection
from castpoi.serving import schema
from castpoi.serving.service import Service

Responses = dict[int | str, dict[str, Any]]

_MEANINGS: Final = {
    400: "The body is not valid JSON.",
    401: "An API key is needed, or the given one is not known.",
    403: "No API key is set, and the request has a foreign Host or Origin.",
    404: "There is no such place.",
    409: "The request contradicts stored data.",
    413: "The body is too large.",
    422: "A field or parameter is wrong; the answer names it.",
    503: "Too many requests wait, or the run is being loaded; see Retry-After.",
}

GEOJSON: Final[Responses] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "object", "title": "FeatureCollection"}}}}
}
"""The second form of an answer with places, for `Accept: application/geo+json`."""

# Only describes the key in OpenAPI: the middleware has checked it before any route.
_key = HTTPBearer(auto_error=False, description="An API key of the service, if it has any.")


class IdConvertor(PathConvertor):
    """An id in a path: any text, so that one with a line end reaches the check of ids."""

    regex = "(?s:.*)"


register_url_convertor("id", IdConvertor())


def errors(*statuses: int) -> Responses:
    """The errors that a route can give, for OpenAPI."""
    return {
        status: {"model": schema.Error, "description": _MEANINGS[status]} for status in statuses
    }


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a query parameter that the route does not have: it may be a misspelt one."""
    known = [each.alias for each in request.scope["route"].dependant.query_params]
    wrong = [
        {
            "type": "value_error",
            "loc": ("query", name),
            "msg": f"unknown parameter; {did_you_mean(name, known)}"
            + (f"the parameters are {', '.join(known)}" if known else "there are none"),
        }
        for name in request.query_params
        if name not in known
    ]
    if wrong:
        raise RequestValidationError(wrong)


def api_router() -> APIRouter:
    """A router of the API, version 1."""
    return APIRouter(
        prefix="/v1",
        responses=errors(401, 403, 422, 503),
        dependencies=[Depends(_key), Depends(refuse_unknown_parameters)],
    )


async def service_of(request: Request) -> Service:  # a plain function would change threads
    """The service of this request."""
    service: Service = request.app.state.service
    return service


async def _responder(request: Request) -> "Callable[[dict[str, Any], str], JSONResponse]":
    return partial(_respond, MEDIA_TYPE in request.headers.get("accept", ""))


def _respond(is_geojson: bool, answer: dict[str, Any], rows: str) -> JSONResponse:
    if is_geojson:
        return JSONResponse(feature_collection(answer, rows), media_type=MEDIA_TYPE)
    return JSONResponse(answer)


Served = Annotated[Service, Depends(service_of)]
Respond = Annotated[Callable[[dict[str, Any], str], JSONResponse], Depends(_responder)]
"""Makes the response of an answer, whose list of places has the given name."""
