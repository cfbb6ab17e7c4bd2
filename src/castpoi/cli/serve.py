"""`castpoi serve`: recommendations of a run behind an HTTP API."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from castpoi.cli.console import Console, speaks
from castpoi.cli.options import cold_places_option, private_places_options
from castpoi.core.errors import BadInput
from castpoi.core.files import read_manifest
from castpoi.recommend.scores import Shortlist
from castpoi.serving.settings import Limits, ServiceSettings

if TYPE_CHECKING:  # it needs an extra
    from castpoi.serving.service import Service


class ShortlistSize(click.ParamType[Shortlist]):
    """A number of places, or `all`."""

    name = "N|all"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Shortlist:
        """The word `all`, or a whole number above 0."""
        text = str(value)
        if text == "all":
            return "all"
        if not text.isdecimal() or int(text) < 1:
            self.fail(f"'{text}' is neither a number of places nor all.", param, ctx)
        return int(text)


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--host", default=ServiceSettings.host, show_default=True, help="Address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=ServiceSettings.port,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--store",
    metavar="URL",
    envvar="CASTPOI_STORE",
    help="The visit store: sqlite:///FILE or postgresql://USER@HOST/NAME; also CASTPOI_STORE in "
    "the environment, where a password is not seen by others.  "
    "[default: RUN.visits.sqlite beside the run]",
)
@click.option(
    "--api-key-file",
    type=click.Path(path_type=Path),
    help="API keys, one a line; also CASTPOI_API_KEYS in the environment, with commas. Needed "
    "on every host but this machine's own. A proxy must limit the rate of wrong keys.",
)
@click.option(
    "--cors-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="A site whose pages may ask, e.g. https://app.example.org; none unless told.",
)
@click.option(
    "--city",
    type=click.Path(path_type=Path),
    help="Where the run's city is, if it has moved; a new store begins with its check-ins.",
)
@click.option(
    "--import-city/--no-import-city",
    default=True,
    show_default=True,
    help="Whether a new store begins with the check-ins of the run's city.",
)
@click.option(
    "--tiles",
    metavar="URL",
    help="Raster tiles below the map, e.g. https://tiles.example.org/{z}/{x}/{y}.png.",
)
@click.option(
    "--shortlist",
    type=ShortlistSize(),
    help="Number of places that the reader of castpoi scores exactly, or all.  "
    "[default: 384 for more than 2,000 places, else all]",
)
@click.option(
    "--queue",
    type=click.IntRange(min=1),
    default=Limits.waiting,
    show_default=True,
    help="Most requests that may wait; one more gets 503.",
)
@cold_places_option
@private_places_options
@speaks
def serve(
    console: Console,
    run: Path,
    *,
    host: str,
    port: int,
    store: str | None,
    api_key_file: Path | None,
    origins: tuple[str, ...],
    import_city: bool,
    tiles: str | None,
    queue: int,
    **reading: Any,
) -> None:
    """Serve the recommendations of a RUN over HTTP until stopped.

    The API is described at /docs of the service. A posted visit changes the next recommendation.
    SIGHUP, or POST /v1/model/reload, reads the RUN anew without dropping a request.
    """
    with _the_extra():
        from castpoi.serving.logs import logged_to_stderr
        from castpoi.serving.security import read_api_keys
        from castpoi.serving.server import listening_socket, serve_until_stopped
    read_manifest(run, kind="run")  # a wrong folder is told before anything is opened
    settings = ServiceSettings(
        host=host,
        port=port,
        api_keys=tuple(read_api_keys(api_key_file)),
        origins=origins,
        tiles=tiles,
        limits=Limits(waiting=queue),
    )
    with listening_socket(host, port) as listening:
        service = _service(console, run, settings, store, reading, import_city=import_city)
        with logged_to_stderr():
            ready = partial(_tell, console, service, listening)
            serve_until_stopped(service, listening, on_ready=ready)


@contextmanager
def _the_extra() -> Iterator[None]:
    """Import what only a service needs; where it is not installed, tell how to get it."""
    try:
        yield
    except ModuleNotFoundError as problem:
        raise BadInput(
            f"serving needs {problem.name}, which is not installed; pip install 'castpoi[serve]'"
        ) from problem


def _service(
    console: Console,
    run: Path,
    settings: ServiceSettings,
    store: str | None,
    reading: dict[str, Any],
    *,
    import_city: bool,
) -> "Service":
    """The service of a run, which it has yet to read, and of a store, which is open."""
    from castpoi.recommend.recommender import load
    from castpoi.serving.service import Service
    from castpoi.serving.store import VisitStore
    from castpoi.serving.visits import CityImport

    return Service(
        settings=settings,
        load=lambda: load(run, **reading),
        store=VisitStore(store or f"sqlite:///{run.absolute()}.visits.sqlite"),
        city=CityImport(folder=reading["city"], report=console.note) if import_city else None,
    )


def _tell(console: Console, service: "Service", listening: socket.socket) -> None:
    """Say that the service is ready: where it answers, with what, and how many it knows."""
    from castpoi.serving.server import address_of

    users, visits = service.store.counts()
    card, address = service.card, address_of(listening)
    console.say(
        f"{card.model} answers at {address} (docs: {address}/docs/): "
        f"{card.places:,} places, {users:,} users with {visits:,} visits. "
        "Stop with Ctrl-C."
    )
    console.result(
        {
            "address": address,
            "model": card.model,
            "places": card.places,
            "users": users,
            "visits": visits,
            "needs_key": bool(service.settings.api_keys),
        }
    )
