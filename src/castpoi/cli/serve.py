"""`castpoi serve`: recommendations of a run over HTTP."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, PORT, loading_options, options_of, parsed, store_option
from castpoi.core.errors import BadInput, extra_for
from castpoi.core.files import read_manifest
from castpoi.serving.settings import Limits, ServiceSettings, default_store, read_api_keys

if TYPE_CHECKING:  # these need torch or an extra
    from castpoi.methods.run import Run
    from castpoi.recommend.recommender import Recommender
    from castpoi.recommend.scores import Shortlist
    from castpoi.serving.handover import Recommenders
    from castpoi.serving.schema import ModelCard
    from castpoi.serving.service import Service
    from castpoi.serving.workers import Loaded


def _shortlist(text: str) -> "Shortlist":
    """Read `all`, or a number of places."""
    if text == "all":
        return "all"
    if not text.isdecimal() or int(text) < 1:
        raise click.BadParameter(f"'{text}' is neither a number of places nor all.")
    return int(text)


def _named(text: str) -> tuple[str, str]:
    """Read NAME=VALUE."""
    name, is_there, value = text.partition("=")
    if not (name and is_there and value):
        raise click.BadParameter(f"'{text}' is not NAME=VALUE.")
    return name, value


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The runs of a service and its files."""

    runs: Annotated[tuple[tuple[str, str], ...], parsed("NAME=RUN", _named)] = ()
    """Instead of RUN: one of several runs, each for its share of the users. Repeat it."""
    shares: Annotated[tuple[tuple[str, str], ...], parsed("NAME=NUMBER", _named)] = ()
    """Share of users of a --run, relative to the others.  [default: 1 for each]"""
    answer_log: Annotated[Path, "FILE"] | None = None
    """Log the places shown to users, for 'castpoi evaluate-log'; user ids are hashed."""
    api_key_file: Path | None = None
    """API keys, one per line; or CASTPOI_API_KEYS in the environment, separated by commas. Required
    unless --host is this machine. A proxy must limit the rate of wrong keys."""
    import_city: bool = True
    """Whether a new store begins with the check-ins of the run's city."""
    shortlist: Annotated[Any, parsed("N|all", _shortlist)] = None
    """Number of places that the reader of castpoi scores exactly, or all.
    [default: 384 for more than 2,000 places, else all]"""
    workers: Annotated[int, click.IntRange(min=1)] = 1
    """Number of processes that answer; they share the memory of the RUN and the port."""


@click.command()
@click.argument("run", type=FOLDER, required=False)
@options_of(_Options, "options", names={"runs": "run", "shares": "share"})
@store_option("RUN.visits.sqlite")
@options_of(
    ServiceSettings,
    "service",
    only=("host", "port", "origins", "tiles"),
    names={"origins": "cors-origin"},
    types={"port": PORT, "origins": "ORIGIN", "tiles": "URL"},
    make=dict,
)
@options_of(
    Limits,
    "limits",
    only=["waiting"],
    names={"waiting": "queue"},
    types={"waiting": click.IntRange(min=1)},
)
@loading_options()
@output_options
def serve(
    console: Console,
    run: Path | None,
    *,
    options: _Options,
    store: str | None,
    service: Mapping[str, Any],
    limits: Limits,
    loading: Mapping[str, Any],
) -> None:
    """Serve the recommendations of a RUN over HTTP until stopped.

    /docs of the service describes the API. A posted visit changes the next recommendation. SIGHUP,
    or POST /v1/model/reload, loads the RUN again without dropping a request. With several --run, a
    user always gets the recommendations of the same one.
    """
    folders = _folders(run, options.runs)
    api_keys = tuple(read_api_keys(options.api_key_file))
    settings = ServiceSettings(**service, api_keys=api_keys, limits=limits)
    loading = {"city": None, "shortlist": options.shortlist, **loading}
    _serve(console, settings, folders, options, store, loading)


def _serve(
    console: Console,
    settings: ServiceSettings,
    folders: Mapping[str, Path],
    options: _Options,
    store: str | None,
    loading: Mapping[str, Any],
) -> None:
    """Serve runs until stopped; `loading` has the arguments of `castpoi.load`."""
    with extra_for("serving", "serve"):
        from castpoi.serving.logs import logged_to_stderr
        from castpoi.serving.server import address_of, listening_socket, serve_until_stopped
        from castpoi.serving.workers import Loaded, serve_with_workers
    shares = _shares(folders, options.shares)
    make = partial(_service, settings, folders, options, shares, store, loading)
    with listening_socket(settings.host, settings.port) as listening, logged_to_stderr():
        show = partial(_show_address, console, address_of(listening), bool(settings.api_keys))
        if options.workers > 1:
            serve_with_workers(make, listening, options.workers, report=console.note, on_ready=show)
            return
        service = make(report=console.note)

        def show_service() -> None:
            users, visits = service.store.counts()
            show(Loaded(card=service.card(), users=users, visits=visits))

        serve_until_stopped(service, listening, on_ready=show_service)


def _service(
    settings: ServiceSettings,
    folders: Mapping[str, Path],
    options: _Options,
    shares: Mapping[str, float],
    store: str | None,
    loading: Mapping[str, Any],
    *,
    report: Callable[[str], None],
    loaded: "Recommenders | None" = None,
    reload: "Callable[[], Awaitable[ModelCard]] | None" = None,
) -> "Service":
    """The service of a process: see `MakeService`."""
    from castpoi.recommend.recommender import load
    from castpoi.serving.answer_log import AnswerLog
    from castpoi.serving.service import CityImport, Service
    from castpoi.serving.store import VisitStore

    def load_of(name: str) -> "Callable[[], Recommender]":
        return partial(load, folders[name], **loading) if loaded is None else lambda: loaded[name]

    loads = {name: load_of(name) for name in folders}
    (name, first), *_ = folders.items()
    visits = VisitStore(store or default_store(first))
    log, city = options.answer_log, CityImport(folder=loading["city"], report=report)
    return Service(
        settings=settings,
        load=loads.pop(name),
        store=visits,
        name=name,
        others=loads,
        shares=shares,
        answer_log=None if log is None else AnswerLog(log, visits.secret()),
        city=city if options.import_city and loaded is None else None,
        page_of=page_maker(loading["city"]),
        reload=reload,
    )


def _folders(run: Path | None, runs: Sequence[tuple[str, str]]) -> dict[str, Path]:
    """The folder of each run by its name; wrong ones are refused before anything is opened."""
    if (run is None) == (not runs):
        raise click.UsageError("Give either RUN or one --run NAME=RUN or more.")
    folders = {name: Path(folder) for name, folder in runs} if run is None else {"": run}
    for folder in folders.values():
        read_manifest(folder, kind="run")
    return folders


def _shares(folders: Mapping[str, Path], given: Sequence[tuple[str, str]]) -> dict[str, float]:
    shares = dict.fromkeys(folders, 1.0)
    for name, text in given:
        if name not in folders:
            raise BadInput(f"--share {name}={text}: there is no --run {name}=...")
        try:
            shares[name] = float(text)
        except ValueError:
            shares[name] = -1.0
        if not 0.0 <= shares[name] < math.inf:
            raise BadInput(f"--share {name}={text}: a share is a number of at least 0")
    if not sum(shares.values()):
        raise BadInput("--share: the shares are all 0; give one above 0")
    return shares


def page_maker(folder: Path | None) -> "Callable[[Run], str] | None":
    """A function that makes the page about a run's city; None without the extra for reports."""
    from castpoi.checkins.city import name_of
    from castpoi.checkins.describe import describe_city
    from castpoi.methods.run import city_of

    try:
        from castpoi.reports.city_page import city_page
    except ModuleNotFoundError:
        return None

    def page_of(run: "Run") -> str:
        city = city_of(run, folder)
        return city_page(city, describe_city(city), name=name_of(city.folder or Path("city")))

    return page_of


def _show_address(console: Console, address: str, needs_key: bool, loaded: "Loaded") -> None:
    """Show the address of a service that is ready, its model and its size."""
    users, visits = loaded.users, loaded.visits
    card = loaded.card
    console.print(
        f"{card.model} is served at {address} (docs: {address}/docs/): {card.places:,} places, "
        f"{users:,} users with {visits:,} visits. Stop with Ctrl-C; the visits stay in the store."
    )
    counts = {"places": card.places, "users": users, "visits": visits}
    console.result({"address": address, "model": card.model, **counts, "needs_key": needs_key})
