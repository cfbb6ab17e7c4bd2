"""`castpoi data prepare`: a raw table becomes a city."""

import re
import shlex
from pathlib import Path
from typing import Any

import click

from castpoi.checkins.cleaning import RECIPES, Recipe
from castpoi.checkins.prepare import Preparation, dropped_path
from castpoi.checkins.prepare import prepare as prepare_city
from castpoi.checkins.reading.layouts import LAYOUTS, USUAL_NAMES, parse_columns
from castpoi.cli.console import Console, speaks
from castpoi.cli.options import out_option

EPILOG = """\b
Examples:
  castpoi data prepare visits.csv --out cities/mine
  castpoi data prepare visits.parquet --columns user=who,place=where,time=when --out cities/mine
  castpoi data prepare nyc.csv.gz --recipe nyc --out cities/nyc
  castpoi data prepare gowalla-ca.csv.gz --core once --out cities/gowalla-ca
  castpoi data prepare dataset_TSMC2014_TKY.txt --recipe tky --out cities/tky

docs/data.md explains every layout, option and file of a city.
"""


class Hours(click.ParamType[float]):
    """Hours with a sign: `8`, `+8`, `-5.5`, `+8h`."""

    name = "hours"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number of hours."""
        match = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?)\s*h?\s*", str(value))
        if match is None:
            self.fail(f"'{value}' is not a number of hours such as +8", param, ctx)
        return float(match.group(1))


@click.command(epilog=EPILOG)
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
@out_option("The city to write.", replaces="a previous city")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["auto", *LAYOUTS]),
    default="auto",
    show_default=True,
    help="Layout of the source; auto recognises all of them.",
)
@click.option(
    "--columns",
    metavar="WORD=COLUMN,...",
    help=f"Columns of a table whose names are not usual. Words: {', '.join(USUAL_NAMES)}.",
)
@click.option("--delimiter", help="What parts the columns of a table (default: by its ending).")
@click.option("--encoding", help="Encoding of a text file (default: UTF-8, or by its layout).")
@click.option(
    "--naive-times",
    type=click.Choice(["utc", "local"]),
    help="What times without a zone mean (default: refuse them unless the layout says it).",
)
@click.option("--zone", help="One IANA time zone for all places (default: by coordinates).")
@click.option(
    "--local-time",
    type=click.Choice(["place", "offset"]),
    default=Preparation.local_time,
    show_default=True,
    help="Local time follows the zone of the place, or the offset column of the source.",
)
@click.option("--clock-shift", type=Hours(), default="0", help="Hours to add to every time.")
@click.option("--accept-rhythm", is_flag=True, help="Keep a clock whose hours look wrong.")
@click.option(
    "--on-bad-rows",
    type=click.Choice(["fail", "drop"]),
    default="fail",
    show_default=True,
    help="Stop at the first bad row, or leave bad rows out and write them beside the city.",
)
@click.option(
    "--max-place-spread-km",
    type=float,
    default=Preparation.max_place_spread_km,
    show_default=True,
    help="Coordinates of one place further apart than this are a mistake.",
)
@click.option("--recipe", type=click.Choice(list(RECIPES)), help="The paper's exact rules.")
@click.option("--keep-duplicates", is_flag=True, help="Keep rows of one user, place and instant.")
@click.option("--repeat-minutes", type=float, help="Drop repeats at a place within this time.")
@click.option(
    "--core",
    type=click.Choice(["once", "twice", "iterate"]),
    help="Keep places, then users, with enough check-ins; this many rounds.",
)
@click.option(
    "--min-place-checkins",
    type=int,
    default=Recipe.least_place_checkins,
    show_default=True,
    help="With --core: fewest check-ins of a place.",
)
@click.option(
    "--min-user-checkins",
    type=int,
    default=Recipe.least_user_checkins,
    show_default=True,
    help="With --core: fewest check-ins of a user.",
)
@click.option(
    "--drop-isolated-hours",
    type=float,
    help="Drop check-ins further than this from both neighbours.",
)
@click.option(
    "--session-gap-hours",
    type=float,
    default=Recipe.session_gap_hours,
    show_default=True,
    help="A longer gap between two check-ins of a user begins a new session.",
)
@click.option(
    "--min-session",
    type=int,
    default=Recipe.least_session,
    show_default=True,
    help="Drop sessions with fewer check-ins.",
)
@click.option(
    "--split",
    type=click.Choice(["leave-one-out", "chronological"]),
    default=Preparation.split,
    show_default=True,
    help="The paper's split per user, or 80/10/10 in time.",
)
@speaks
def prepare(
    console: Console,
    sources: tuple[Path, ...],
    out: Path,
    *,
    columns: str | None,
    clock_shift: float,
    on_bad_rows: str,
    overwrite: bool,
    recipe: str | None,
    **options: Any,
) -> None:
    """Read, clean, localise and split check-ins into a CITY.

    SOURCES are files or folders: a table (csv, tsv, their .gz, parquet) with a user, a place, its
    coordinates and a time, or one of the published layouts.
    """
    chosen = _recipe(recipe, options)
    preparation = Preparation(
        format_name=options["format_name"],
        columns=parse_columns(columns) if columns else {},
        delimiter=_delimiter(options["delimiter"]),
        encoding=options["encoding"],
        naive_times=options["naive_times"],
        drop_bad_rows=on_bad_rows == "drop",
        max_place_spread_km=options["max_place_spread_km"],
        zone=options["zone"],
        local_time=options["local_time"],
        clock_shift_hours=clock_shift,
        accept_rhythm=options["accept_rhythm"],
        recipe=chosen,
        split=options["split"],
    )
    with console.progress() as progress:
        city = prepare_city(list(sources), out, preparation, overwrite=overwrite, progress=progress)
    for remark in city.manifest["remarks"]:
        console.note(f"Note: {remark}.")
    show_preparation(console, city.manifest, out)
    console.result({**summary(city.manifest), "out": str(out)})


def _recipe(name: str | None, options: dict[str, Any]) -> Recipe:
    """The steps asked for one by one, or a recipe of the paper, whose steps are fixed."""
    steps = Recipe(
        drop_duplicates=not options["keep_duplicates"],
        repeat_minutes=options["repeat_minutes"],
        core=options["core"],
        least_place_checkins=options["min_place_checkins"],
        least_user_checkins=options["min_user_checkins"],
        isolated_hours=options["drop_isolated_hours"],
        session_gap_hours=options["session_gap_hours"],
        least_session=options["min_session"],
    )
    if name is None:
        return steps
    if steps != Recipe():
        raise click.UsageError(
            f"--recipe {name} fixes every cleaning step; leave out --keep-duplicates, "
            "--repeat-minutes, --core, --min-..., --drop-isolated-hours and --session-gap-hours"
        )
    return RECIPES[name]


def _delimiter(text: str | None) -> str | None:
    if text in (None, ""):
        return None
    plain = {"\\t": "\t", "tab": "\t"}.get(str(text), str(text)).strip("'\"") or str(text)
    if len(plain) != 1:
        raise click.UsageError(f"--delimiter '{text}' must be one character, or 'tab'")
    return plain


def summary(manifest: dict[str, Any]) -> dict[str, Any]:
    """The entries of a city's manifest that scripts rely on."""
    counts = ("checkins", "users", "places", "train", "validation", "test", "left_out")
    more = ("revisit_share", "fingerprint", "dropped_rows", "remarks", "steps", "rhythm")
    return {key: manifest[key] for key in (*counts, *more, "zone_rule")}


def show_preparation(console: Console, manifest: dict[str, Any], out: Path) -> None:
    """Every cleaning step with its counts, then the city in a sentence."""
    rows = []
    for step in manifest["steps"]:
        before, after = step["checkins_before"], step["checkins_after"]
        counts = before, before - after, after, step["users_after"], step["places_after"]
        rows.append((step["step"], *(f"{count:,}" for count in counts)))
    console.table(("step: drop", "check-ins", "dropped", "left", "users", "places"), rows)
    if manifest["dropped_rows"]:
        bad = ", ".join(f"{count:,} {rule}" for rule, count in manifest["dropped_rows"].items())
        console.say(f"bad rows dropped: {bad}; written to {dropped_path(out)}")
    console.say(f"rhythm: {manifest['rhythm']['finding']}")
    console.say(
        f"{out}: {manifest['train']:,} train, {manifest['validation']:,} validation and "
        f"{manifest['test']:,} test check-ins ({manifest['left_out']:,} left out), "
        f"{manifest['revisit_share']:.1%} of the test "
        f"targets are revisits; fingerprint {manifest['fingerprint'][:12]}"
    )
    console.say(f"Next: castpoi train {shlex.quote(str(out))} --out RUN")
