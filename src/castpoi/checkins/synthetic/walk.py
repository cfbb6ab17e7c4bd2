"""The visits of people in a synthetic city: when they check in, and where.

*When*: the rhythm of day and week on the local clock. Its curves follow the check-ins of New York
(Foursquare, 2012): workdays have peaks at 8, 13 and 18 o'clock, weekends one broad afternoon.

*Where*: exploration and preferential return (Song, Koren, Wang and Barabási 2010). A person with S
known places visits a new one with probability rho * S^-gamma; otherwise they return. A return goes,
by the hour, to home or work; or to the place of a past visit, which is drawn uniformly, so that a
place is drawn in proportion to its visits; or, by habit, to the place of the visit at the most
similar time of the week among a few past visits. A new place is at the end of a jump, or is a
common companion of the present place.

All people make their k-th visit in the same step, so that numpy loops over people.
Shapes: U users, N check-ins, A people who still move, E explorers.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.record import SECOND_US
from castpoi.checkins.synthetic.plan import (
    CATEGORIES,
    COMPANIONS,
    EXPLORATION_GAMMA,
    EXPLORATION_RHO,
    HABIT_SHARE,
    SLOTS,
    ZONE,
    CityPlan,
    JumpLaw,
    People,
    Rng,
    SynthesisConfig,
    appeal_by_slot,
    lay_out_city,
    places_to_go_out,
    settle_people,
)
from castpoi.core.arrays import Floats, Numbers
from castpoi.core.errors import BadInput
from castpoi.core.progress import SILENCE, Progress, Task

HOUR: Final = 3600

_WORKDAY: Final = (
    2.2, 1.5, 1.1, 0.9, 0.9, 1.7, 3.5, 6.8, 9.4, 7.8, 4.9, 4.0,
    4.9, 5.5, 4.6, 4.2, 4.0, 5.2, 6.1, 5.7, 5.0, 3.8, 3.2, 3.0,
)  # fmt: skip
_WEEKEND_DAY: Final = (
    4.4, 3.5, 2.7, 1.9, 1.2, 1.4, 1.9, 2.5, 3.8, 4.2, 4.6, 4.9,
    5.2, 5.9, 6.1, 5.9, 5.5, 5.8, 5.6, 5.5, 4.8, 4.3, 4.1, 3.9,
)  # fmt: skip
_DAY_OF_WEEK: Final = (1.06, 1.06, 1.02, 1.00, 1.12, 0.93, 0.82)  # Monday to Sunday

_FOLLOWING_SHARE: Final = 0.3  # share of check-ins that follow soon after another one
_FOLLOWING_GAP_S: Final = 45 * 60.0
_ROOM_PER_PAIR: Final = 16
_HASH_PERSON: Final = np.array([0x9E3779B97F4A7C15], dtype=np.uint64)
_HASH_PLACE: Final = np.array([0xC2B2AE3D27D4EB4F], dtype=np.uint64)
ANCHORS: Final = 2  # every diary begins with home and work, which are no check-ins

_HOME_SLOT: Final = 20
_WORK_SLOT: Final = 10
_HANDFUL: Final = 8  # past visits that a habit chooses from
_PROPOSALS: Final = 6  # new places that an explorer chooses from
_COMPANION_SHARE: Final = 0.5
_COMPANION_PULL: Final = 6.0  # weight of a companion of the present place; the end of a jump has 1
_OUTSIDE_PULL: Final = 1e-3  # weight of a jump over the edge of the city

_HOME_WORKDAY: Final = (
    0.60, 0.60, 0.60, 0.60, 0.55, 0.50, 0.35, 0.25, 0.12, 0.07, 0.05, 0.05,
    0.05, 0.05, 0.06, 0.08, 0.12, 0.20, 0.28, 0.32, 0.36, 0.42, 0.48, 0.55,
)  # fmt: skip
_HOME_WEEKEND_DAY: Final = (
    0.50, 0.50, 0.55, 0.60, 0.60, 0.55, 0.45, 0.40, 0.35, 0.30, 0.25, 0.20,
    0.18, 0.18, 0.18, 0.18, 0.20, 0.22, 0.25, 0.26, 0.28, 0.32, 0.38, 0.45,
)  # fmt: skip
_WORK_WORKDAY: Final = (
    0.01, 0.01, 0.01, 0.01, 0.01, 0.03, 0.10, 0.28, 0.42, 0.42, 0.34, 0.26,
    0.22, 0.28, 0.28, 0.26, 0.20, 0.10, 0.05, 0.03, 0.02, 0.02, 0.01, 0.01,
)  # fmt: skip
_WORK_WEEKEND_DAY: Final = (0.02,) * 24

_AT_HOME: Final = np.array(_HOME_WORKDAY + _HOME_WEEKEND_DAY)
_AT_WORK: Final = np.array(_WORK_WORKDAY + _WORK_WEEKEND_DAY)
"""Share of returns to home and to work at each time of the week. [SLOTS]"""


def synthesize(config: SynthesisConfig, *, seed: int, progress: Progress = SILENCE) -> pl.DataFrame:
    """The check-ins of a synthetic city in order of time; the same seed gives the same check-ins.

    Columns: user, place, lat, lon, time (UTC), category, name; `castpoi data prepare` reads them.
    """
    if seed < 0:
        raise BadInput(f"seed is {seed}; choose a whole number of 0 or more")
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(5)]
    plan = lay_out_city(config, streams[0])
    people = settle_people(plan, config, streams[1])
    calendar = Calendar(config)
    with progress.task("drawing times"):
        utc_s = draw_instants(people.checkins, calendar, streams[2])
    with progress.task("drawing visits", total=len(utc_s)) as task:
        walk = Walk(plan, people, calendar.slot_of(utc_s), streams[3])
        place = walk.run(task)
    person = np.repeat(streams[4].permutation(len(people)), people.checkins)
    with progress.task("building the table"):
        return _table(plan, person, place, utc_s)


def _table(
    plan: CityPlan, person: Numbers, place: NDArray[np.int32], utc_s: Numbers
) -> pl.DataFrame:
    """The check-ins by time, then person, with the columns of their places."""
    people = int(person.max()) + 1
    order = np.argsort(utc_s * people + person)  # no two are equal: a person's instants differ
    categories = pl.Series([category.name for category in CATEGORIES])
    columns = {"place": _ids("place", len(plan)), "lat": plan.lat, "lon": plan.lon}
    places = pl.DataFrame({**columns, "category": categories[plan.category], "name": plan.names})
    users = _ids("person", people)[person[order]].alias("user")
    time = pl.Series("time", utc_s[order] * SECOND_US).cast(record.INSTANT)
    return places[place[order]].select(users, "place", "lat", "lon", time, "category", "name")


def _ids(word: str, count: int) -> pl.Series:
    digits = len(str(count))
    return pl.Series([f"{word}-{number:0{digits}d}" for number in range(1, count + 1)])


class Calendar:
    """The local days of a config, hour by hour, on the local clock and in UTC."""

    def __init__(self, config: SynthesisConfig) -> None:
        zone = ZoneInfo(ZONE)
        midnight = datetime.combine(config.first_day, time())
        hours = [midnight + timedelta(hours=hour) for hour in range(24 * config.days + 1)]
        utc = [int(hour.replace(tzinfo=zone).timestamp()) for hour in hours]
        self.begin_s, self.end_s = utc[0], utc[-1]
        self._utc_of_local_hour = np.array(utc)
        weekday = np.array([hour.weekday() for hour in hours[:-1]])
        of_day = np.tile(np.arange(24), config.days)
        curve = np.where(weekday < 5, np.array(_WORKDAY)[of_day], np.array(_WEEKEND_DAY)[of_day])
        self._reached = np.cumsum(curve * np.array(_DAY_OF_WEEK)[weekday])
        begins = range(self.begin_s, self.end_s, HOUR)  # the zone changes at whole hours only
        local = [datetime.fromtimestamp(begin, UTC).astimezone(zone) for begin in begins]
        self._slot = np.array([24 * (at.weekday() >= 5) + at.hour for at in local], dtype=np.uint8)

    def draw(self, count: int, rng: Rng) -> Numbers:
        """Independent instants that follow the rhythm, as seconds of the UTC epoch. [count]"""
        drawn = rng.random(count) * self._reached[-1]
        hour = np.searchsorted(self._reached[:-1], drawn, side="right")
        return self._utc_of_local_hour[hour] + rng.integers(HOUR, size=count)

    def slot_of(self, utc_s: Numbers) -> NDArray[np.uint8]:
        """Time of the week on the local clock: hour of a workday, or 24 + hour of a weekend."""
        return self._slot[(utc_s - self.begin_s) // HOUR]


def draw_instants(checkins: Numbers, calendar: Calendar, rng: Rng) -> Numbers:
    """Instants of every person's check-ins, end to end; they increase for each person. [N]"""
    owner = np.repeat(np.arange(len(checkins)), checkins)
    begin = (np.cumsum(checkins) - checkins)[owner]
    own = calendar.draw(len(owner), rng)
    leader = begin + (rng.random(len(owner)) * checkins[owner]).astype(np.int64)
    gap_s = rng.exponential(_FOLLOWING_GAP_S, len(owner)).astype(np.int64)
    follows = rng.random(len(owner)) < _FOLLOWING_SHARE
    utc_s = np.where(follows, own[leader] + gap_s, own)
    utc_s = np.where(utc_s < calendar.end_s, utc_s, own)
    span = calendar.end_s - calendar.begin_s
    ordered = np.sort(owner * span + (utc_s - calendar.begin_s)) - owner * span
    rank = np.arange(len(owner)) - begin
    lead = 2 * span * owner  # keeps the running maximum within each person
    apart = np.maximum.accumulate(ordered - rank + lead) - lead + rank  # equal ones move on
    return calendar.begin_s + np.minimum(apart, span - checkins[owner] + rank)


class KnownPlaces:
    """The places that each person has visited, in a hash table of fixed size.

    A visited place is always found. A few in a hundred others are found too, and then not visited.
    """

    def __init__(self, pairs: int) -> None:
        """A table for about this many pairs of a person and a place."""
        bits = max(12, int(pairs * _ROOM_PER_PAIR).bit_length() - 1)
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(1 << bits, dtype=np.bool_)

    def add(self, person: Numbers, place: Numbers) -> None:
        """Add a place for each of these people."""
        self._marked[self._mark(person, place)] = True

    def contains(self, person: Numbers, place: Numbers) -> NDArray[np.bool_]:
        """Whether each of these people has the place."""
        return self._marked[self._mark(person, place)]

    def _mark(self, person: Numbers, place: Numbers) -> NDArray[np.uint64]:
        hashed = person.astype(np.uint64) * _HASH_PERSON + place.astype(np.uint64)
        hashed ^= hashed >> np.uint64(29)
        return (hashed * _HASH_PLACE) >> self._shift


def exploration_probability(known: Numbers) -> Floats:
    """Probability of a visit to a new place after this many known places (Song et al. 2010)."""
    return EXPLORATION_RHO * np.power(known, -EXPLORATION_GAMMA, dtype=np.float64)


def slot_similarity() -> NDArray[np.float32]:
    """Similarity of two times of the week, 0 to 1. [SLOTS, SLOTS]"""
    hour, is_weekend = np.arange(SLOTS) % 24, np.arange(SLOTS) >= 24
    apart = np.abs((hour[:, None] - hour + 12) % 24 - 12)
    same_kind = np.where(is_weekend[:, None] == is_weekend, 1.0, 0.4)
    return (np.exp(-0.5 * (apart / 2.0) ** 2) * same_kind).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Diaries:
    """The visits of all people, end to end; each diary begins with home and work."""

    place: NDArray[np.int32]
    slot: NDArray[np.uint8]  # time of the week of each entry
    begin: Numbers  # first entry of each person's diary. [U]
    is_checkin: NDArray[np.bool_]  # false for home and work


def open_diaries(people: People, slot: NDArray[np.uint8]) -> Diaries:
    """Diaries with home, work and the times of all visits, but without their places."""
    length = people.checkins + ANCHORS
    begin = np.cumsum(length) - length
    is_checkin = np.ones(int(length.sum()), dtype=np.bool_)
    is_checkin[begin] = is_checkin[begin + 1] = False
    place = np.zeros(len(is_checkin), dtype=np.int32)
    place[begin], place[begin + 1] = people.home, people.work
    slots = np.empty(len(is_checkin), dtype=np.uint8)
    slots[begin], slots[begin + 1], slots[is_checkin] = _HOME_SLOT, _WORK_SLOT, slot
    return Diaries(place=place, slot=slots, begin=begin, is_checkin=is_checkin)


class Walk:
    """Draws the visits of all people, one visit of everyone per step."""

    def __init__(
        self,
        plan: CityPlan,
        people: People,
        slot: NDArray[np.uint8],
        rng: Rng,
    ) -> None:
        """Begin with empty diaries; `slot` is the time of the week of each check-in. [N]"""
        self._plan, self._people, self.diaries = plan, people, open_diaries(people, slot)
        self._rng = rng
        self._jumps = JumpLaw()
        self._blocks = plan.blocks(places_to_go_out(plan.category))
        self._appeal = appeal_by_slot().astype(np.float32)
        self._similarity = slot_similarity()
        self._known_count = np.full(len(people), ANCHORS, dtype=np.int64)
        self._known = KnownPlaces(len(slot))
        everyone = np.arange(len(people))
        self._known.add(everyone, people.home)
        self._known.add(everyone, people.work)

    def run(self, task: Task) -> NDArray[np.int32]:
        """Draw all visits; the place of each check-in. [N]"""
        ends = -self._people.checkins  # ascending, so those who still move come first
        for step in range(-int(ends[0])):
            moving = int(np.searchsorted(ends, -step, side="left"))
            self._step(np.arange(moving), ANCHORS + step)
            task.advance(moving)
        return self.diaries.place[self.diaries.is_checkin]

    def _step(self, person: Numbers, entry: int) -> None:
        """Draw the visit of each of these people for this entry of their diaries."""
        row = self.diaries.begin[person] + entry
        probability = exploration_probability(self._known_count[person])
        explores = self._rng.random(len(person)) < probability
        self.diaries.place[row] = self._return(person, row, entry)
        found, is_new = self._explore(person[explores], row[explores])
        explorer = person[explores][is_new]
        self.diaries.place[row[explores][is_new]] = found[is_new]
        self._known.add(explorer, found[is_new])
        self._known_count[explorer] += 1

    def _return(self, person: Numbers, row: Numbers, entry: int) -> Numbers:
        """A known place for each person: by anchor, by habit or by frequency. [A]"""
        here, slot = self.diaries.place[row - 1], self.diaries.slot[row]
        home, work = self._people.home[person], self._people.work[person]
        roll = self._rng.random(len(person))
        to_home = (roll < _AT_HOME[slot]) & (here != home)
        to_work = (roll >= _AT_HOME[slot]) & (roll < (_AT_HOME + _AT_WORK)[slot]) & (here != work)
        remembered = self.remember(person, row, entry)
        return np.where(to_home, home, np.where(to_work, work, remembered))

    def remember(self, person: Numbers, row: Numbers, entry: int) -> Numbers:
        """The place of a past visit: any, or by habit one at a similar time. [A]"""
        diaries, rng = self.diaries, self._rng
        drawn = (rng.random((len(person), _HANDFUL)) * entry).astype(np.int64)
        past = diaries.begin[person][:, None] + drawn  # [A, _HANDFUL]
        place, here = diaries.place[past], diaries.place[row - 1][:, None]
        came_from = diaries.place[np.maximum(past - 1, diaries.begin[person][:, None])]
        fitness = self._similarity[diaries.slot[row][:, None], diaries.slot[past]]
        fitness = fitness + (came_from == here) - 2.0 * (place == here)
        has_habit = rng.random(len(person)) < HABIT_SHARE
        chosen = np.where(has_habit, np.argmax(fitness, axis=1), 0)
        return place[np.arange(len(person)), chosen].astype(np.int64)

    def _explore(self, person: Numbers, row: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """A place for each explorer, and whether they have not visited it. [E], [E]"""
        slot = self.diaries.slot[row]
        proposals, pull = self._propose(self.diaries.place[row - 1])
        kind = self._plan.category[proposals]
        wish = self._appeal[slot[:, None], kind] * self._people.taste[person[:, None], kind]
        is_new = ~self._known.contains(person[:, None], proposals)
        reached = np.cumsum(wish * pull * is_new, axis=1)
        roll = self._rng.random(len(person)) * reached[:, -1]
        chosen = np.minimum((reached <= roll[:, None]).sum(axis=1), _PROPOSALS - 1)
        one = np.arange(len(person))
        return proposals[one, chosen], is_new[one, chosen]

    def _propose(self, here: NDArray[np.int32]) -> tuple[Numbers, Floats]:
        """Places at the ends of jumps, or companions of the present place; and their weights.

        [E] -> [E, _PROPOSALS], [E, _PROPOSALS]
        """
        rng, plan = self._rng, self._plan
        begins = np.repeat(plan.xy_km[:, here, None], _PROPOSALS, axis=2)  # [2, E, _PROPOSALS]
        ends = self._jumps.ends(begins, rng)
        proposals = self._blocks.near(ends, rng)
        pull = np.where(self._blocks.holds(ends), 1.0, _OUTSIDE_PULL)
        follows = np.flatnonzero(rng.random(len(here)) < _COMPANION_SHARE)
        proposals[follows, :COMPANIONS] = plan.companions[here[follows]]
        pull[follows, :COMPANIONS] = _COMPANION_PULL
        return proposals, pull
