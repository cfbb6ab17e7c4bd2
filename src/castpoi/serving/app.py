"""The web application: routes and pages around a service, and what every request passes."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.staticfiles import StaticFiles

from castpoi import __version__
from castpoi.core.errors import CastPoiError
from castpoi.serving import pages
from castpoi.serving.failures import tell_failures
from castpoi.serving.middleware import BodyLimit, Watch
from castpoi.serving.open_files import AcceptErrors
from castpoi.serving.routes import router
from castpoi.serving.security import Doorkeeper, KeyRing
from castpoi.serving.service import Service

_ABOUT: Final = (
    "Where will a person go next, from the places they have been? Coordinates are degrees, "
    "latitude first; times are ISO 8601, and without an offset the wall clock of the place."
)


def create_app(
    service: Service,
    *,
    on_ready: Callable[[], None] | None = None,
    on_failure: Callable[[Exception], None] | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """The application of a service, which loads its run once it has started.

    `on_ready` hears when it has, `on_failure` what is wrong with the run if it cannot. While
    `is_stopping`, answers close their connections.
    """

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(AcceptErrors())
        first = asyncio.create_task(_begin(service, on_ready, on_failure))
        with _reload_on_hangup(service):
            yield
        await first
        await service.close()

    app = FastAPI(
        title="castpoi",
        version=__version__,
        description=_ABOUT,
        lifespan=life,
        docs_url=None,  # their pages load scripts from elsewhere; ours does not
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(router)
    app.include_router(pages.router)
    app.mount("/docs", StaticFiles(directory=pages.DOCS, html=True), name="docs")
    app.mount("/map", StaticFiles(directory=pages.MAP), name="map")
    tell_failures(app)
    _set_up_the_way_in(app, service, is_stopping)
    return app


def _set_up_the_way_in(app: FastAPI, service: Service, is_stopping: Callable[[], bool]) -> None:
    """What a request passes; the last one added is the first one passed."""
    settings = service.settings
    app.add_middleware(BodyLimit, most_bytes=settings.limits.body_bytes)
    app.add_middleware(Doorkeeper, keys=KeyRing(settings.api_keys), origins=settings.origins)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_middleware(
        Watch, metrics=service.metrics, tiles=settings.tiles, is_stopping=is_stopping
    )


async def _begin(
    service: Service,
    on_ready: Callable[[], None] | None,
    on_failure: Callable[[Exception], None] | None,
) -> None:
    try:
        await service.begin()
    except Exception as problem:
        if on_failure is not None:
            on_failure(problem)
    else:
        if on_ready is not None:
            on_ready()


@contextmanager
def _reload_on_hangup(service: Service) -> Iterator[None]:
    """While the block runs, SIGHUP loads the run anew; one that cannot be read changes nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return
    under_way: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        with suppress(CastPoiError):  # already logged
            await service.reload()

    def begin() -> None:
        task = asyncio.create_task(reload())
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, begin)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
