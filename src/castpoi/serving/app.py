"""The web application of a service: routes, pages, middleware and errors."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from castpoi import __version__
from castpoi.core.errors import (
    BadInput,
    BrokenFolder,
    BrokenStore,
    CastPoiError,
    ModelNotReady,
    Overloaded,
    RepeatedKey,
    UnknownMethod,
    UnknownPlace,
    did_you_mean,
)
from castpoi.serving import place_routes, routes
from castpoi.serving.batcher import RETRY_SECONDS
from castpoi.serving.bodies import MANY, ONE, field_names
from castpoi.serving.dependencies import Served, errors
from castpoi.serving.logs import log_failure
from castpoi.serving.middleware import (
    METRICS_TYPE,
    AuthMiddleware,
    BodyLimit,
    KeyRing,
    RequestLog,
)
from castpoi.serving.schema import Health, WrongField, error_answer
from castpoi.serving.service import Service

_ABOUT: Final = (
    "Predicts the next place of a person from the places they have visited. Coordinates are in "
    "degrees, latitude first. Times are ISO 8601 or epochs; a time without an offset is the local "
    "time of the place. With `Accept: application/geo+json`, places come as GeoJSON."
)
_DOCS: Final = Path(__file__).with_name("api_page")  # shows /openapi.json
_MAP: Final = Path(__file__).with_name("map")  # index.html is /, its other files are /map/...
_NO_TILES: Final = '<meta name="castpoi-tiles" content="" />'
# modules that import one another are found one after the other; named in the page, all at once
_PRELOADS: Final = "".join(
    f'<link rel="modulepreload" href="map/{module.relative_to(_MAP).as_posix()}" />'
    for module in sorted([*_MAP.glob("*.js"), _MAP / "vendor" / "maplibre-gl.mjs"])
)

_STATUS: Final[dict[type[CastPoiError], int]] = {
    UnknownPlace: 404,
    BadInput: 422,
    RepeatedKey: 409,
    BrokenFolder: 409,
    UnknownMethod: 409,
    ModelNotReady: 503,
    Overloaded: 503,
    BrokenStore: 503,
}
# parts of a field's location that are not part of its name
_SOURCES: Final = frozenset({"body", "query", "path", ONE, MANY})

_pages = APIRouter()


@_pages.get("/healthz", tags=["health"])
async def alive() -> Health:
    """Whether the service is alive."""
    return Health(status="alive")


@_pages.get("/readyz", tags=["health"], responses=errors(503))
async def ready(service: Served) -> Health:
    """Whether the service can answer: its run is loaded and its store works."""
    _ = service.recommender
    await service.read_store(service.store.check)
    return Health(status="ready")


@_pages.get("/metrics", include_in_schema=False)
async def metrics(service: Served) -> Response:
    """Counters of the service for Prometheus."""
    return Response(service.metrics.page(), media_type=METRICS_TYPE)


@_pages.get("/", include_in_schema=False)
def first_page(service: Served) -> Response:
    """The map."""
    text = (_MAP / "index.html").read_text(encoding="utf-8")
    text = text.replace("</head>", f"{_PRELOADS}</head>")
    if service.settings.tiles is not None:
        text = text.replace(_NO_TILES, _NO_TILES.replace('""', f'"{service.settings.tiles}"'))
    return HTMLResponse(text)


def create_app(
    service: Service,
    *,
    on_ready: Callable[[], None] = lambda: None,
    on_failure: Callable[[Exception], None] = lambda _: None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """The application of a service, which loads its run once it has started.

    Calls `on_ready` after that, or `on_failure` if the run cannot be loaded. While `is_stopping`,
    responses close their connections.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        first = asyncio.create_task(_start(service, on_ready, on_failure))
        with _reload_on_hangup(service):
            yield
        await first
        await service.close()

    app = FastAPI(
        title="castpoi",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts of other sites; ours does not
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.include_router(routes.router)
    app.include_router(place_routes.router)
    app.include_router(_pages)
    app.mount("/docs", StaticFiles(directory=_DOCS, html=True), name="docs")
    app.mount("/map", StaticFiles(directory=_MAP), name="map")
    app.add_exception_handler(CastPoiError, _castpoi_error)
    app.add_exception_handler(RequestValidationError, _wrong_fields)
    app.add_exception_handler(HTTPException, _http_error)
    _add_middleware(app, service, is_stopping)
    return app


def _add_middleware(app: FastAPI, service: Service, is_stopping: Callable[[], bool]) -> None:
    """Add the middleware; the last one added handles a request first."""
    settings = service.settings
    app.add_middleware(BodyLimit, max_bytes=settings.limits.body_bytes)
    app.add_middleware(AuthMiddleware, keys=KeyRing(settings.api_keys), origins=settings.origins)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_middleware(
        RequestLog, metrics=service.metrics, tiles=settings.tiles, is_stopping=is_stopping
    )


async def _start(
    service: Service, on_ready: Callable[[], None], on_failure: Callable[[Exception], None]
) -> None:
    try:
        await service.start()
    except Exception as problem:
        on_failure(problem)
    else:
        on_ready()


@contextmanager
def _reload_on_hangup(service: Service) -> Iterator[None]:
    """Within the block, SIGHUP reloads the run; if that fails, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    tasks: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        with suppress(CastPoiError):  # already logged
            await service.reload()

    def start() -> None:
        task = asyncio.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, start)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def _castpoi_error(_: Request, problem: Exception) -> JSONResponse:
    status = next((_STATUS[kind] for kind in type(problem).__mro__ if kind in _STATUS), 500)
    if status == 500:  # the store logs its own failures, once for all requests that share one
        log_failure("request failed", problem)
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else None
    return error_answer(status, str(problem), headers=headers)


def _wrong_fields(_: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    errors = problem.errors()
    if errors[0]["type"] == "json_invalid":
        return error_answer(400, _malformed_json(errors[0], str(problem.body)))
    fields = [WrongField(field=_name(each["loc"]), problem=_problem(each)) for each in errors]
    more = f" (and {len(fields) - 1} more)" if len(fields) > 1 else ""
    return error_answer(422, f"{fields[0].field}: {fields[0].problem}{more}", fields=fields)


def _http_error(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, HTTPException)
    sentence = str(problem.detail)
    if problem.status_code == 404:
        sentence = "there is no such page or route; /docs/ lists all routes"
    elif problem.status_code == 405:
        methods = (problem.headers or {}).get("Allow", "another method")
        sentence = f"this route does not take {request.method}; use {methods}"
    return error_answer(problem.status_code, sentence, headers=problem.headers)


def _malformed_json(wrong: dict[str, Any], body: str) -> str:
    """A sentence with the line and column of the first error."""
    position = wrong["loc"][-1]
    line = body.count("\n", 0, position) + 1
    column = position - body.rfind("\n", 0, position)
    return f"the body is not valid JSON: {wrong['ctx']['error']} (line {line}, column {column})"


def _name(location: Iterable[Any]) -> str:
    """The name of a field, such as history[2].at."""
    name = ""
    for part in location:
        if part not in _SOURCES:
            name += f"[{part}]" if isinstance(part, int) else f".{part}"
    return name.removeprefix(".") or "body"


def _problem(wrong: dict[str, Any]) -> str:
    if _name(wrong["loc"]) == "body" and wrong["type"] != "value_error":
        return "send a JSON object, with the header Content-Type: application/json"
    if wrong["type"] == "extra_forbidden":
        return f"unknown field; {did_you_mean(wrong['loc'][-1], field_names())}/docs/ lists all"
    return str(wrong["msg"]).removeprefix("Value error, ")
