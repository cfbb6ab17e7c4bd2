"""A whole synthetic city: plan, people, rhythm and wandering, as one raw table of check-ins."""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.record import SECOND_US
from castpoi.checkins.synthetic.categories import CATEGORIES
from castpoi.checkins.synthetic.city_plan import CityPlan, lay_out_city
from castpoi.checkins.synthetic.config import SynthesisConfig
from castpoi.checkins.synthetic.people import settle_people
from castpoi.checkins.synthetic.rhythm import Calendar, draw_instants
from castpoi.checkins.synthetic.wandering import Wanderers
from castpoi.core.errors import BadInput
from castpoi.core.progress import SILENCE, Progress

TIME: Final = "time"
"""The one column of the raw table that a prepared city names differently."""


def synthesize(config: SynthesisConfig, *, seed: int, progress: Progress = SILENCE) -> pl.DataFrame:
    """The check-ins of a synthetic city in order of time, the same for the same seed.

    Columns: user, place, lat, lon, time (UTC), category, name; what `castpoi data prepare` reads.
    """
    if seed < 0:
        raise BadInput(f"seed is {seed}; choose a whole number of 0 or more")
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(5)]
    plan = lay_out_city(config, streams[0])
    people = settle_people(plan, config, streams[1])
    calendar = Calendar(config)
    with progress.task("drawing the rhythm"):
        utc_s = draw_instants(people.checkins, calendar, streams[2])
    with progress.task("wandering", total=len(utc_s)) as task:
        wanderers = Wanderers(plan, people, calendar.slot_of(utc_s), config, streams[3])
        place = wanderers.wander(task)
    person = np.repeat(streams[4].permutation(len(people)), people.checkins)
    with progress.task("laying out the table"):
        return _table(plan, person, place, utc_s)


def _table(
    plan: CityPlan,
    person: NDArray[np.int64],
    place: NDArray[np.int32],
    utc_s: NDArray[np.int64],
) -> pl.DataFrame:
    """The check-ins by time, then person, with all that is known of their places."""
    people = int(person.max()) + 1
    order = np.argsort(utc_s * people + person)  # no two are equal: a person's instants differ
    places = _places(plan)[place[order]]
    users = _ids("person", people)[person[order]]
    instants = pl.Series(record.AT_UTC, utc_s[order] * SECOND_US).cast(record.INSTANT)
    return places.select(
        users.alias(record.USER),
        pl.col(record.PLACE),
        pl.col(record.LAT),
        pl.col(record.LON),
        instants.alias(TIME),
        pl.col(record.CATEGORY),
        pl.col(record.NAME),
    )


def _places(plan: CityPlan) -> pl.DataFrame:
    names = pl.Series([category.name for category in CATEGORIES])
    return pl.DataFrame(
        {
            record.PLACE: _ids("place", len(plan)),
            record.LAT: plan.lat,
            record.LON: plan.lon,
            record.CATEGORY: names[plan.category],
            record.NAME: plan.names,
        }
    )


def _ids(word: str, count: int) -> pl.Series:
    width = len(str(count))
    return pl.Series([f"{word}-{number:0{width}d}" for number in range(1, count + 1)])
