"""`castpoi data prepare`: turn a table of check-ins into a city."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from castpoi.checkins.city import dropped_path
from castpoi.checkins.cleaning import RECIPES, Recipe
from castpoi.checkins.prepare import Preparation, prepare_within
from castpoi.checkins.prepare import prepare as prepare_city
from castpoi.checkins.reading.layouts import LAYOUTS, parse_columns
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, options_of, out_option, parsed

EPILOG = """\b
Examples:
  castpoi data prepare visits.csv --out cities/mine
  castpoi data prepare visits.parquet --columns user=who,place=where,time=when --out cities/mine
  castpoi data prepare visits.csv --places-table places.csv --out cities/mine
  castpoi data prepare nyc.csv.gz --recipe nyc --out cities/nyc
  castpoi data prepare gowalla-ca.csv.gz --core once --out cities/gowalla-ca
  castpoi data prepare dataset_TSMC2014_TKY.txt --recipe tky --out cities/tky

docs/data.md explains every layout, option and file of a city, docs/tables.md other formats.
"""


def _hours(text: str) -> float:
    """Read hours with a sign: `8`, `+8`, `-5.5`, `+8h`."""
    match = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?)\s*h?\s*", str(text))
    if match is None:
        raise click.BadParameter(f"'{text}' is not a number of hours such as +8")
    return float(match.group(1))


def _delimiter(text: str) -> str | None:
    plain = {"\\t": "\t", "tab": "\t"}.get(text, text).strip("'\"") or text
    if len(plain) > 1:
        raise click.BadParameter(f"'{text}' must be one character, or 'tab'")
    return plain or None


def _bytes(text: str) -> int:
    """Read a size in bytes: `8GB`, `1.5 GB`, `500MB`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(GB|MB)\s*", text, re.IGNORECASE)
    if match is None:
        raise click.BadParameter(f"'{text}' is not a size such as 8GB or 500MB")
    return round(float(match[1]) * (10**9 if match[2].upper() == "GB" else 10**6))


_TYPES = {
    "format": click.Choice(["auto", *LAYOUTS]),
    "columns": parsed("WORD=COLUMN,...", parse_columns),
    "places_columns": parsed(
        "WORD=COLUMN,...", lambda text: parse_columns(text, "--places-columns")
    ),
    "delimiter": parsed("character", _delimiter),
    "naive_times": click.Choice(["utc", "local"]),
    "clock_shift_hours": parsed("hours", _hours),
}
_FIXED = ("name", "published_sessions", "published_split", "time_split")
"""Fields of a recipe that only the paper's recipes set."""


@click.command(epilog=EPILOG)
@click.argument("sources", nargs=-1, required=True, type=FOLDER)
@out_option("The city to write.", replaces="a previous city")
@options_of(
    Preparation,
    "preparation",
    leave_out=["recipe"],
    names={"clock_shift_hours": "clock-shift"},
    types=_TYPES,
)
@click.option(
    "--places-table",
    type=FOLDER,
    metavar="FILE",
    help="Table with the coordinates of the places (optionally name, category, zone), if the "
    "check-ins have only their ids.",
)
@click.option("--recipe", type=click.Choice(list(RECIPES)), help="The paper's exact cleaning.")
@click.option(
    "--memory",
    type=parsed("SIZE", _bytes),
    help="Ceiling of memory, such as 8GB, for sources of many files that do not fit in it: "
    "check-ins are kept in files next to OUT meanwhile.",
)
@options_of(Recipe, "steps", leave_out=_FIXED)
@output_options
def prepare(
    console: Console,
    sources: tuple[Path, ...],
    *,
    out: Path,
    overwrite: bool,
    preparation: Preparation,
    places_table: Path | None,
    memory: int | None,
    recipe: str | None,
    steps: Recipe,
) -> None:
    """Read, clean, localise and split check-ins into a CITY.

    SOURCES are files or folders: a table (csv, tsv, their .gz, parquet, JSON lines, GeoJSON,
    RecBole) with a user, a place, its coordinates and a time, or one of the published layouts.
    """
    preparation = replace(preparation, recipe=_recipe(recipe, steps))
    arguments = list(sources), out, preparation
    options: Any = {"places_table": places_table, "overwrite": overwrite}
    options["progress"] = console.progress()
    if memory is None:
        manifest = prepare_city(*arguments, **options).manifest
    else:
        manifest = prepare_within(memory, *arguments, **options)
    for remark in manifest["remarks"]:
        console.note(f"Note: {remark}.")
    show_preparation(console, manifest, out)
    console.result({**summary(manifest), "out": str(out)})


def _recipe(name: str | None, steps: Recipe) -> Recipe:
    """The steps given one by one, or a recipe of the paper, whose steps are fixed."""
    if name is None:
        return steps
    if steps != Recipe():
        raise click.UsageError(
            f"--recipe {name} fixes every cleaning step; leave out --keep-duplicates, "
            "--repeat-minutes, --core, --min-..., --drop-isolated-hours and --session-gap-hours"
        )
    return RECIPES[name]


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
        console.print(f"bad rows dropped: {bad}; written to {dropped_path(out)}")
    console.print(f"rhythm: {manifest['rhythm']['finding']}")
    console.print(
        f"{out}: {manifest['train']:,} train, {manifest['validation']:,} validation and "
        f"{manifest['test']:,} test check-ins ({manifest['left_out']:,} left out), "
        f"{manifest['revisit_share']:.1%} of the test "
        f"targets are revisits; fingerprint {manifest['fingerprint'][:12]}"
    )
    console.print(f"Next: castpoi train {shlex.quote(str(out))} --out RUN")
