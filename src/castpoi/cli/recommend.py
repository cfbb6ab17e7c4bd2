"""`castpoi recommend`: the next places for a user or a history, with reasons."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import castpoi
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import (
    FOLDER,
    closed_places_option,
    cold_places_option,
    out_option,
    parsed,
    private_places_options,
)
from castpoi.core.errors import extra_for

if TYPE_CHECKING:  # imported when the command runs, so that --help is fast
    from castpoi.recommend.recommendation import ContributingVisit, Recommendation, Recommendations

_LOADING: Final = ("city", "places", "closed", "private_categories")
"""Options that are arguments of `castpoi.load`."""


def _point(text: str) -> tuple[float, float]:
    """Read LAT,LON; an error does not repeat the position, which is personal."""
    try:
        lat, lon = map(float, text.split(","))
    except ValueError:
        raise click.BadParameter(
            "it must be a latitude and a longitude in degrees: LAT,LON."
        ) from None
    return lat, lon


def _polygon(text: str) -> tuple[tuple[float, float], ...]:
    return tuple(map(_point, text.split()))


@click.command()
@click.argument("run", type=FOLDER)
@click.option("--user", metavar="ID", help="A user of the run's city.")
@click.option(
    "--history",
    "history_file",
    metavar="FILE",
    type=FOLDER,
    help='A file of visits: a table with place and time, or JSON [{"place", "at"}].',
)
@click.option("--all-users", is_flag=True, help="Every user of the run's city; written to --out.")
@click.option(
    "--users",
    metavar="FILE",
    type=FOLDER,
    help="The users of a table; written to --out. The columns near_lat, near_lon, within_km, "
    "south, west, north, east, at, category, max_per_category and exclude (ids separated by ;) "
    "filter the places of one user.",
)
@click.option(
    "--histories",
    metavar="FILE",
    type=FOLDER,
    help="Everybody in a table of visits (user, place, time); written to --out.",
)
@click.option(
    "--k", type=click.IntRange(min=1), default=10, show_default=True, help="Number of places."
)
@click.option("--explain", is_flag=True, help="Show the terms and visits behind each score.")
@click.option("--near", type=parsed("LAT,LON", _point), help="Position of the person, in degrees.")
@click.option(
    "--within-km",
    type=float,
    metavar="X",
    help="Only places within this distance of --near or of the last visit.",
)
@click.option(
    "--box",
    metavar="SOUTH,WEST,NORTH,EAST",
    help="Only places in this box, in degrees; west above east crosses the date line.",
)
@click.option(
    "--polygon",
    type=parsed("'LAT,LON LAT,LON ...'", _polygon),
    help="Only places in this polygon, by its corners in order.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PLACE",
    help="Leave out this place; may be given several times.",
)
@click.option(
    "--max-per-category",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most this many places of one category.",
)
@click.option(
    "--category", "categories", multiple=True, metavar="NAME", help="Only places of this category."
)
@click.option("--exclude-visited", is_flag=True, help="Only places that the history never visits.")
@click.option("--new-only", is_flag=True, help="Only places not among the last 512 visits.")
@click.option(
    "--at",
    metavar="TIME",
    help="Time of the request, e.g. 2012-04-03T18:00-04:00; later visits are left out. For a run "
    "trained with --known-time it is the time of the next visit.  [default there: now]",
)
@click.option("--city", type=FOLDER, help="The run's city, if it has moved.")
@cold_places_option
@closed_places_option
@private_places_options
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="For many people: this machine, or a Ray cluster (extra castpoi[ray]); a folder then has "
    "one row per person, with lists.",
)
@click.option("--address", metavar="HOST:PORT", help="The Ray cluster.  [default: this machine]")
@out_option(
    "For many people: FILE.parquet, .csv, .jsonl or .geojson, or a folder of parquet parts. The "
    "same command resumes after a kill.",
    replaces="a previous output, or the parts of another job",
    required=False,
)
@output_options
def recommend(
    console: Console,
    run: Path,
    *,
    user: str | None,
    history_file: Path | None,
    all_users: bool,
    users: Path | None,
    histories: Path | None,
    out: Path | None,
    overwrite: bool,
    box: str | None,
    engine: str,
    address: str | None,
    **options: Any,
) -> None:
    """Recommend the most likely next places with a RUN.

    For a user of the run's city, for the visits in a file, or for many people at once. A time
    without an offset from UTC is the local time of the visited place. Filters apply before the best
    places are chosen.
    """
    from castpoi.recommend.area import parse_box
    from castpoi.recommend.input_files import read_history
    from castpoi.recommend.request import Request

    one, many = (user, history_file), (all_users or None, users, histories)
    if sum(each is not None for each in (*one, *many)) != 1:
        raise click.UsageError(
            "Give one of --user, --history, --all-users, --users and --histories."
        )
    if any(each is not None for each in many) != (out is not None):
        raise click.UsageError("--out goes with --all-users, --users or --histories.")
    loading = {"run": run, **{name: options.pop(name) for name in _LOADING}}
    options |= {name: options[name] or None for name in ("categories", "exclude")}
    options["box"] = None if box is None else parse_box(box, what="--box")
    _check_engine(engine, address, is_possible=out is not None and not options["explain"])
    if out is not None:
        ray = None if engine == "local" else {"loading": _absolute(loading), "address": address}
        _recommend_many(console, loading, users, histories, out, overwrite, ray, options)
        return
    history = None if history_file is None else read_history(history_file)
    request = Request.of(history=history, user=user, **options)
    (answer,) = castpoi.load(**loading).recommend_many([request])
    for remark in answer.remarks:
        console.note(f"Note: {remark}.")
    show(console, answer)
    console.result(answer.to_dict())


def _check_engine(engine: str, address: str | None, *, is_possible: bool) -> None:
    if engine == "ray" and not is_possible:
        raise click.UsageError("--engine ray goes with --out, and not with --explain.")
    if address is not None and engine != "ray":
        raise click.UsageError("--address goes with --engine ray.")


def _absolute(loading: Mapping[str, Any]) -> dict[str, Any]:
    """The same with absolute paths, as the workers of a cluster have other working folders."""
    return {name: v.absolute() if isinstance(v, Path) else v for name, v in loading.items()}


def _recommend_many(
    console: Console,
    loading: Mapping[str, Any],
    users: Path | None,
    histories: Path | None,
    out: Path,
    overwrite: bool,
    on_ray: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> None:
    """Write the recommendations of many people, and print a summary."""
    from castpoi.recommend.batch import write_batch
    from castpoi.recommend.input_files import read_frame
    from castpoi.recommend.people import people_of

    recommender = castpoi.load(**loading)
    tables = (None if path is None else read_frame(path) for path in (users, histories))
    people = people_of(recommender, *tables, **options)
    if options["explain"]:
        console.note(
            "Note: --explain scores each history again without each of its last visits; it takes "
            "several times as long."
        )
    began = time.perf_counter()
    if on_ray is None:
        done = write_batch(
            recommender, people, out, overwrite=overwrite, progress=console.progress()
        )
    else:
        sha256 = recommender.run.model_sha256
        done = _ray_batch().write_batch_on_ray(
            model_sha256=sha256, people=people, out=out, overwrite=overwrite, **on_ray
        )
    seconds = time.perf_counter() - began
    for name in ("parts", "people"):
        if done.get(f"{name}_resumed"):
            console.note(f"Note: resumed; {done[f'{name}_resumed']:,} {name} were there already.")
    if done["rejected"]:
        console.note(
            f"Note: {done['rejected']:,} people have no recommendations; see {out}.rejected.csv."
        )
    console.print(
        f"{out}: {done['recommendations']:,} recommendations for {len(people):,} people "
        f"({seconds:.1f} s, {len(people) / seconds:,.0f} people per second)"
    )
    console.result({**done, "seconds": round(seconds, 3), "out": str(out)})


def _ray_batch() -> Any:
    """The engine on Ray, which is an extra."""
    with extra_for("--engine ray", "ray"):
        from castpoi.scale import ray_batch
    return ray_batch


def show(console: Console, answer: "Recommendations") -> None:
    """Print recommendations as a table, then the reason for each."""
    from castpoi.recommend.explain import COUNTERFACTUALS

    console.table(
        ["", "place", "category", "km", "%", "score"],
        [_row(rank, each) for rank, each in enumerate(answer, start=1)],
        title=f"Where next ({answer.model})",
        left=3,
    )
    is_read = answer.visits_by == "attention"
    for rank, each in enumerate(answer, start=1):
        console.print(f"{rank}. {_label(each)}: {each.sentence}")
        _show_explanation(
            console, each, "of the attention to" if is_read else "of the loss without"
        )
    if not is_read and any(each.visits for each in answer):
        console.print(
            "Loss without a visit: how much the score falls, as a share of the falls for "
            f"{COUNTERFACTUALS} visits: the last ones and the latest to these places."
        )


def _row(rank: int, each: "Recommendation") -> list[str]:
    km = "-" if each.distance_km is None else f"{each.distance_km:.1f}"
    percent, score = f"{100 * each.probability:.2f}", f"{each.score:.3f}"
    return [str(rank), each.name or each.place, each.category or "-", km, percent, score]


def _show_explanation(console: Console, each: "Recommendation", weighed: str) -> None:
    from castpoi.recommend.recommendation import ago_words, distance_words

    if each.visits is None:
        return
    if each.terms is not None:
        terms = " + ".join(f"{name} {value:.3f}" for name, value in each.terms.items())
        console.print(f"   score {each.score:.3f} = {terms}")
    for visit in each.visits:
        where = "here" if visit.place == each.place else f"{distance_words(visit.distance_km)} away"
        console.print(
            f"   {visit.weight:6.1%} {weighed} {_label(visit)}, {where}, "
            f"{ago_words(60 * visit.hours_ago)}; score without it {visit.score_without:.3f}"
        )
    console.print()


def _label(place: "Recommendation | ContributingVisit") -> str:
    return place.name or place.category or place.place
