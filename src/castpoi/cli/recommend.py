"""`castpoi recommend`: the next places for a user or a history, with reasons; `castpoi similar`."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import click

import castpoi
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, loading_options, options_of, out_option, parsed
from castpoi.core.errors import extra_for
from castpoi.recommend.area import parse_box
from castpoi.recommend.request import Request

if TYPE_CHECKING:
    from castpoi.recommend.recommendation import ContributingVisit, Recommendation, Recommendations


def _point(text: str) -> tuple[float, float]:
    """Read LAT,LON; an error does not repeat the position, which is personal."""
    try:
        lat, lon = map(float, text.split(","))
    except ValueError:
        raise click.BadParameter(
            "it must be a latitude and a longitude in degrees: LAT,LON."
        ) from None
    return lat, lon


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Whose next places, and how they are computed."""

    user: Annotated[str, "ID"] | None = None
    """A user of the run's city."""
    history: Annotated[Path, "FILE"] | None = None
    """A file of visits: a table with place and time, or JSON [{"place", "at"}]."""
    all_users: bool = False
    """Every user of the run's city; written to --out."""
    users: Annotated[Path, "FILE"] | None = None
    """The users of a table; written to --out. The columns near_lat, near_lon, within_km, south,
    west, north, east, at, category, max_per_category and exclude (ids separated by ;) filter the
    places of one user."""
    histories: Annotated[Path, "FILE"] | None = None
    """Everybody in a table of visits (user, place, time); written to --out."""
    at: Annotated[str, "TIME"] | None = None
    """Time of the request, e.g. 2012-04-03T18:00-04:00; later visits are left out. For a run
    trained with --known-time it is the time of the next visit.  [default of such a run: now]"""
    engine: Literal["local", "ray"] = "local"
    """For many people: this machine, or a Ray cluster (extra castpoi[ray]); a folder then has one
    row per person, with lists."""
    address: Annotated[str, "HOST:PORT"] | None = None
    """The Ray cluster.  [default: this machine]"""


_TYPES: Final = {
    "k": click.IntRange(min=1),
    "near": parsed("LAT,LON", _point),
    "box": parsed("SOUTH,WEST,NORTH,EAST", lambda text: parse_box(text, what="--box")),
    "polygon": parsed("'LAT,LON LAT,LON ...'", lambda text: tuple(map(_point, text.split()))),
    "categories": "NAME",
    "exclude": "PLACE",
    "max_per_category": click.IntRange(min=1),
}


@click.command()
@click.argument("run", type=FOLDER)
@options_of(_Options, "options")
@options_of(
    Request,
    "filters",
    leave_out=("history", "user", "at_us", "candidates"),
    names={"categories": "category"},
    types=_TYPES,
    make=dict,
)
@loading_options()
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
    options: _Options,
    filters: dict[str, Any],
    loading: dict[str, Any],
    out: Path | None,
    overwrite: bool,
) -> None:
    """Recommend the most likely next places with a RUN.

    For a user of the run's city, for the visits in a file, or for many people at once. A time
    without an offset from UTC is the local time of the visited place. Filters apply before the best
    places are chosen.
    """
    from castpoi.recommend.input_files import read_history

    one = (options.user, options.history)
    many = (options.all_users or None, options.users, options.histories)
    if sum(each is not None for each in (*one, *many)) != 1:
        raise click.UsageError(
            "Give one of --user, --history, --all-users, --users and --histories."
        )
    if any(each is not None for each in many) != (out is not None):
        raise click.UsageError("--out goes with --all-users, --users or --histories.")
    if options.engine == "ray" and (out is None or filters["explain"]):
        raise click.UsageError("--engine ray goes with --out, and not with --explain.")
    if options.address is not None and options.engine != "ray":
        raise click.UsageError("--address goes with --engine ray.")
    loading, filters = {"run": run, **loading}, {"at": options.at, **filters}
    if out is not None:
        _recommend_many(console, loading, options, out, overwrite, filters)
        return
    history = None if options.history is None else read_history(options.history)
    request = Request.of(history=history, user=options.user, **filters)
    (answer,) = castpoi.load(**loading).recommend_many([request])
    for remark in answer.remarks:
        console.note(f"Note: {remark}.")
    show(console, answer)
    console.result(answer.to_dict())


def _recommend_many(
    console: Console,
    loading: Mapping[str, Any],
    options: _Options,
    out: Path,
    overwrite: bool,
    filters: Mapping[str, Any],
) -> None:
    """Write the recommendations of many people, and print a summary."""
    from castpoi.recommend.batch import write_batch
    from castpoi.recommend.input_files import read_frame
    from castpoi.recommend.people import people_of

    recommender = castpoi.load(**loading)
    files = (options.users, options.histories)
    tables = (None if path is None else read_frame(path) for path in files)
    people = people_of(recommender, *tables, **filters)
    if filters["explain"]:
        console.note(
            "Note: --explain scores each history again without each of its last visits; it takes "
            "several times as long."
        )
    began = time.perf_counter()
    if options.engine == "local":
        done = write_batch(
            recommender, people, out, overwrite=overwrite, progress=console.progress()
        )
    else:
        with extra_for("--engine ray", "ray"):
            from castpoi.scale.ray_batch import write_batch_on_ray
        # absolute paths, as the workers of a cluster have other working folders
        there = {name: v.absolute() if isinstance(v, Path) else v for name, v in loading.items()}
        done = write_batch_on_ray(
            model_sha256=recommender.run.model_sha256, people=people, out=out,
            overwrite=overwrite, loading=there, address=options.address,
        )  # fmt: skip
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


@click.command()
@click.argument("run", type=FOLDER)
@click.argument("place")
@click.option(
    "--k", type=click.IntRange(min=1), default=10, show_default=True, help="Number of places."
)
@click.option(
    "--within-km", type=float, metavar="X", help="Only places within this distance of PLACE."
)
@click.option(
    "--category", "categories", multiple=True, metavar="NAME", help="Only places of this category."
)
@loading_options(leave_out=["city"])
@output_options
def similar(
    console: Console,
    run: Path,
    place: str,
    *,
    k: int,
    within_km: float | None,
    categories: tuple[str, ...],
    loading: dict[str, Any],
) -> None:
    """Show the places of a RUN that are most similar to a PLACE, given by its id.

    Places are compared by the vectors of the model. A model without vectors gives places of the
    same category, nearest first.
    """
    model = castpoi.load(run, **loading)
    answer = model.similar(place, k=k, within_km=within_km, categories=categories or None)
    console.table(
        ["", "place", "category", "km", "similarity"],
        [
            [
                str(rank),
                each.name or each.place,
                each.category or "-",
                f"{each.distance_km:.1f}",
                "-" if each.similarity is None else f"{each.similarity:.3f}",
            ]
            for rank, each in enumerate(answer, start=1)
        ],
        title=f"Similar to {place} by {answer.by} ({answer.model})",
        left=3,
    )
    console.result(answer.to_dict())
