"""Where people go: exploration and preferential return, with anchors and habits.

After Song, Koren, Wang and Barabási (2010). A person who knows S places goes to a new one with
probability rho * S^-gamma; otherwise they return. A return is, by the hour, to home or work; or
to the place of a past visit drawn uniformly, which is a place in proportion to its frequency; or
a habit: of a handful of remembered visits the one made at the most similar moment. A new place
lies at the end of a jump, or is a common companion of the place where one is.

All people take their k-th step together, so that numpy walks over people and Python over steps.
Shapes: U users, A people who still move, E explorers, R who return.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.synthetic.categories import SLOTS, appeal_by_slot
from castpoi.checkins.synthetic.city_plan import COMPANIONS, CityPlan, places_to_go_out
from castpoi.checkins.synthetic.config import SynthesisConfig
from castpoi.checkins.synthetic.jumps import JumpLaw
from castpoi.checkins.synthetic.memory import KnownPlaces
from castpoi.checkins.synthetic.people import People
from castpoi.core.progress import Task

ANCHORS: Final = 2
"""Every diary opens with home and work, which are known before the first check-in."""

_HOME_SLOT: Final = 20
_WORK_SLOT: Final = 10
_HANDFUL: Final = 8
"""Past visits remembered at once."""
_PROPOSALS: Final = 6
"""New places weighed against each other."""
_COMPANION_CHANCE: Final = 0.5
_COMPANION_PULL: Final = 6.0
"""How much a companion of the present place weighs against the end of a jump."""
_OUTSIDE_PULL: Final = 1e-3
"""What a jump over the edge of the city weighs."""

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
"""Share of returns that go to the anchor at each moment of the week. [SLOTS]"""


def exploration_chance(known: NDArray[np.int64], config: SynthesisConfig) -> NDArray[np.float64]:
    """Chance that a person who knows so many places goes to a new one (Song et al. 2010)."""
    return config.exploration_rho * np.power(known, -config.exploration_gamma, dtype=np.float64)


def moment_likeness() -> NDArray[np.float32]:
    """How alike two moments of the week are, 0 to 1. [SLOTS, SLOTS]"""
    hour, is_weekend = np.arange(SLOTS) % 24, np.arange(SLOTS) >= 24
    apart = np.abs((hour[:, None] - hour + 12) % 24 - 12)
    same_kind = np.where(is_weekend[:, None] == is_weekend, 1.0, 0.4)
    likeness: NDArray[np.float64] = np.exp(-0.5 * (apart / 2.0) ** 2) * same_kind
    return likeness.astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Diaries:
    """Everyone's visits end to end, each diary opening with home and work."""

    place: NDArray[np.int32]
    slot: NDArray[np.uint8]
    """Moment of the week of each entry."""
    begin: NDArray[np.int64]
    """Entry at which each person's diary begins. [U]"""
    is_checkin: NDArray[np.bool_]
    """False for the two opening entries."""


def open_diaries(people: People, slot: NDArray[np.uint8]) -> Diaries:
    """Diaries with their opening entries and the moments of all visits, but no places yet."""
    length = people.checkins + ANCHORS
    begin = np.cumsum(length) - length
    is_checkin = np.ones(int(length.sum()), dtype=np.bool_)
    is_checkin[begin] = is_checkin[begin + 1] = False
    place = np.zeros(len(is_checkin), dtype=np.int32)
    place[begin], place[begin + 1] = people.home, people.work
    slots = np.empty(len(is_checkin), dtype=np.uint8)
    slots[begin], slots[begin + 1], slots[is_checkin] = _HOME_SLOT, _WORK_SLOT, slot
    return Diaries(place=place, slot=slots, begin=begin, is_checkin=is_checkin)


class Wanderers:
    """People on their way, all at the same step."""

    def __init__(
        self,
        plan: CityPlan,
        people: People,
        slot: NDArray[np.uint8],
        config: SynthesisConfig,
        rng: np.random.Generator,
    ) -> None:
        """Everyone at the beginning; `slot` is the moment of each check-in to come. [N]"""
        self._plan, self._people, self.diaries = plan, people, open_diaries(people, slot)
        self._config, self._rng = config, rng
        self._jumps = JumpLaw(config)
        self._blocks = plan.blocks(places_to_go_out(plan.category))
        self._appeal = appeal_by_slot().astype(np.float32)
        self._likeness = moment_likeness()
        self._known_count = np.full(len(people), ANCHORS, dtype=np.int64)
        self._known = KnownPlaces(len(slot))
        everyone = np.arange(len(people))
        self._known.learn(everyone, people.home)
        self._known.learn(everyone, people.work)

    def wander(self, task: Task) -> NDArray[np.int32]:
        """Fill every diary to its end, and give the place of each check-in. [N]"""
        ends = -self._people.checkins  # rising, so those who still move stand in front
        for step in range(-int(ends[0])):
            moving = int(np.searchsorted(ends, -step, side="left"))
            self._step(np.arange(moving), ANCHORS + step)
            task.advance(moving)
        return self.diaries.place[self.diaries.is_checkin]

    def _step(self, person: NDArray[np.int64], entry: int) -> None:
        """Let each of these people make the visit of this entry of their diaries."""
        row = self.diaries.begin[person] + entry
        chance = exploration_chance(self._known_count[person], self._config)
        explores = self._rng.random(len(person)) < chance
        self.diaries.place[row] = self._return(person, row, entry)
        found, is_new = self._explore(person[explores], row[explores])
        explorer = person[explores][is_new]
        self.diaries.place[row[explores][is_new]] = found[is_new]
        self._known.learn(explorer, found[is_new])
        self._known_count[explorer] += 1

    def _return(
        self, person: NDArray[np.int64], row: NDArray[np.int64], entry: int
    ) -> NDArray[np.int64]:
        """A known place for each person: by anchor, by habit or by frequency. [A]"""
        here, slot = self.diaries.place[row - 1], self.diaries.slot[row]
        home, work = self._people.home[person], self._people.work[person]
        roll = self._rng.random(len(person))
        to_home = (roll < _AT_HOME[slot]) & (here != home)
        to_work = (roll >= _AT_HOME[slot]) & (roll < (_AT_HOME + _AT_WORK)[slot]) & (here != work)
        remembered = self.remember(person, row, entry)
        return np.where(to_home, home, np.where(to_work, work, remembered))

    def remember(
        self, person: NDArray[np.int64], row: NDArray[np.int64], entry: int
    ) -> NDArray[np.int64]:
        """The place of a past visit: any, or by habit one like the present moment. [A]"""
        diaries, rng = self.diaries, self._rng
        drawn = (rng.random((len(person), _HANDFUL)) * entry).astype(np.int64)
        past = diaries.begin[person][:, None] + drawn  # [A, _HANDFUL]
        place, here = diaries.place[past], diaries.place[row - 1][:, None]
        came_from = diaries.place[np.maximum(past - 1, diaries.begin[person][:, None])]
        fitness = self._likeness[diaries.slot[row][:, None], diaries.slot[past]]
        fitness = fitness + (came_from == here) - 2.0 * (place == here)
        has_habit = rng.random(len(person)) < self._config.habit_share
        chosen = np.where(has_habit, np.argmax(fitness, axis=1), 0)
        recalled: NDArray[np.int32] = place[np.arange(len(person)), chosen]
        return recalled.astype(np.int64)

    def _explore(
        self, person: NDArray[np.int64], row: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """A place for each explorer, and whether it is new to them. [E], [E]"""
        slot = self.diaries.slot[row]
        proposals, pull = self._propose(self.diaries.place[row - 1])
        kind = self._plan.category[proposals]
        wish = self._appeal[slot[:, None], kind] * self._people.taste[person[:, None], kind]
        is_new = ~self._known.know(person[:, None], proposals)
        reached = np.cumsum(wish * pull * is_new, axis=1)
        roll = self._rng.random(len(person)) * reached[:, -1]
        chosen = np.minimum((reached <= roll[:, None]).sum(axis=1), _PROPOSALS - 1)
        one = np.arange(len(person))
        return proposals[one, chosen], is_new[one, chosen]

    def _propose(self, here: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Places at the ends of jumps, for some the companions of here too; and their pull.

        [E] -> [E, _PROPOSALS], [E, _PROPOSALS]
        """
        rng, plan = self._rng, self._plan
        x_km = np.repeat(plan.x_km[here][:, None], _PROPOSALS, axis=1)
        y_km = np.repeat(plan.y_km[here][:, None], _PROPOSALS, axis=1)
        ends = self._jumps.points(x_km, y_km, rng)
        proposals = self._blocks.near(*ends, rng)
        pull = np.where(self._blocks.holds(*ends), 1.0, _OUTSIDE_PULL)
        follows = np.flatnonzero(rng.random(len(here)) < _COMPANION_CHANCE)
        proposals[follows, :COMPANIONS] = plan.companions[here[follows]]
        pull[follows, :COMPANIONS] = _COMPANION_PULL
        return proposals, pull
