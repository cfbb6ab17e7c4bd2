"""From check-ins to a city, in one call: a frame, a file, or several of either."""

from collections.abc import Sequence
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, Final, get_args

import polars as pl

from castpoi.checkins.city import City
from castpoi.checkins.cleaning import RECIPES, Recipe
from castpoi.checkins.prepare import Preparation, make_city
from castpoi.checkins.prepare import prepare as prepare_city
from castpoi.checkins.reading.layouts import Word
from castpoi.checkins.synthetic.plan import SynthesisConfig
from castpoi.checkins.synthetic.walk import synthesize as synthesize_checkins
from castpoi.core.config import read_dataclass
from castpoi.core.errors import BadInput, did_you_mean
from castpoi.core.frames import as_frame, is_frame
from castpoi.core.progress import Progress
from castpoi.library.progress import shown

_STEPS: Final = tuple(field.name for field in fields(Recipe) if field.name != "name")
_OPTIONS: Final = tuple(field.name for field in fields(Preparation) if field.name != "recipe")
_WORDS: Final = tuple(word for word in get_args(Word) if word not in _OPTIONS)


def prepare(
    source: Any,
    *,
    places_table: Any = None,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    recipe: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> City:
    """Make a city from check-ins: read, check, localise, clean and split them.

    `source` is a frame (polars, pandas, pyarrow or any with the Arrow interface), a path, or a
    list of them; `places_table`, a frame or path, has the coordinates of the places if the
    check-ins have none. `options` are those of `castpoi data prepare`: the column of a field
    (`time="ts"`), or a setting (`split="chronological"`, `on_bad_rows="drop"`, `core="once"`).
    The city is in memory; with `out` it is also written to that folder.
    """
    preparation, progress = _preparation(options, recipe), progress or shown()
    tables = _tables(source)
    places = None if places_table is None else _tables(places_table)[0]
    if out is None:
        return make_city(tables, preparation, places_table=places, progress=progress)
    return prepare_city(
        tables, Path(out), preparation,
        places_table=places, overwrite=overwrite, progress=progress,
    )  # fmt: skip


def synthesize(*, seed: int = 42, **settings: Any) -> pl.DataFrame:
    """Check-ins of a synthetic city, for examples and tests.

    `settings` are those of `castpoi data synthesize`, such as `users=500` and `places=2000`.
    """
    return synthesize_checkins(read_dataclass(SynthesisConfig, settings), seed=seed)


def _tables(source: Any) -> list[Path | pl.DataFrame]:
    if is_frame(source):
        return [as_frame(source, what="the table")]
    if isinstance(source, str | PathLike):
        return [Path(source)]
    if isinstance(source, Sequence) and source:
        return [table for each in source for table in _tables(each)]
    raise BadInput(
        f"a {type(source).__name__} is not a source of check-ins; give a frame, a path, or a list "
        "of them"
    )


def _preparation(options: dict[str, Any], recipe: str | None) -> Preparation:
    """The options sorted into columns, steps and settings."""
    known = (*_WORDS, *_STEPS, *_OPTIONS)
    for name in options:
        if name not in known:
            guess = did_you_mean(name, known)
            raise BadInput(f"{name} is not an option; {guess}the options are {', '.join(known)}")
    columns = {word: options.pop(word) for word in _WORDS if word in options}
    steps = {name: options.pop(name) for name in _STEPS if name in options}
    if recipe is not None and (recipe not in RECIPES or steps):
        raise BadInput(
            f"recipe={recipe!r} must be one of {', '.join(RECIPES)}, which fix every cleaning step"
        )
    chosen = Recipe(**steps) if recipe is None else RECIPES[recipe]
    columns = {**options.pop("columns", {}), **columns}
    return Preparation(columns=columns, recipe=chosen, **options)
