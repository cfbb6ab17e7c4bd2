"""Beside the API: health, the first page and the documentation need no key, metrics do."""

from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse, JSONResponse

from castpoi.serving import answer_schema as told
from castpoi.serving.metrics import CONTENT_TYPE
from castpoi.serving.routes import Served

DOCS: Final = Path(__file__).with_name("api_page")
"""A page that shows /openapi.json, with nothing from elsewhere."""
MAP: Final = Path(__file__).with_name("map")
"""The map page: index.html is the first page, its other files are under /map/."""

_NO_TILES: Final = '<meta name="castpoi-tiles" content="" />'

_NOT_READY: Final[dict[int | str, dict[str, Any]]] = {503: {"model": told.ErrorAnswer}}

router = APIRouter()


@router.get("/healthz", response_model=told.Health)
async def alive() -> JSONResponse:
    """Whether the service lives."""
    return JSONResponse({"status": "alive"})


@router.get("/readyz", response_model=told.Health, responses=_NOT_READY)
async def ready(service: Served) -> JSONResponse:
    """Whether the service can answer: its run is loaded and its store answers."""
    _ = service.run.current  # not ready is told at once
    await service.store_threads.read(service.store.check)
    return JSONResponse({"status": "ready"})


@router.get("/metrics", include_in_schema=False)
async def metrics(service: Served) -> Response:
    """What the service counts of itself, for Prometheus."""
    return Response(service.metrics.page(), media_type=CONTENT_TYPE)


@router.get("/", include_in_schema=False)
def first_page(service: Served) -> Response:
    """The map."""
    text = (MAP / "index.html").read_text(encoding="utf-8")
    if service.settings.tiles is not None:
        text = text.replace(_NO_TILES, _NO_TILES.replace('""', f'"{service.settings.tiles}"'))
    return HTMLResponse(text)
