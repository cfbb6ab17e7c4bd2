"""The people of a synthetic city: where they live and work, what they like, how much they share."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.synthetic.categories import CATEGORIES, OFFICE, RESIDENCE
from castpoi.checkins.synthetic.city_plan import CityPlan
from castpoi.checkins.synthetic.config import SynthesisConfig
from castpoi.checkins.synthetic.jumps import JumpLaw

FEWEST_CHECKINS: Final = 3
"""So that everyone has a past, a validation target and a test target."""

_SPREAD: Final = 1.1
"""Standard deviation of the logarithm of people's rates: the median person makes half the mean,
as in the check-ins of New York."""

_BUSIEST: Final = 12.0
"""Nobody makes more than this many times the mean."""


@dataclass(frozen=True, kw_only=True)
class People:
    """Everyone, the busiest first. U users."""

    home: NDArray[np.int64]
    """[U]"""
    work: NDArray[np.int64]
    """[U]"""
    taste: NDArray[np.float32]
    """How much each person likes each category. [U, categories]"""
    checkins: NDArray[np.int64]
    """How many check-ins each person makes, falling. [U]"""

    def __len__(self) -> int:
        return len(self.home)


def settle_people(plan: CityPlan, config: SynthesisConfig, rng: np.random.Generator) -> People:
    """Draw everyone's home, work, tastes and number of check-ins."""
    home = rng.choice(plan.of_category(RESIDENCE), size=config.users)
    commute_end = JumpLaw(config).points(plan.x_km[home], plan.y_km[home], rng)
    work = plan.blocks(plan.of_category(OFFICE)).near(*commute_end, rng)
    taste = rng.gamma(0.7, size=(config.users, len(CATEGORIES))) + 0.05
    return People(
        home=home,
        work=work,
        taste=taste.astype(np.float32),
        checkins=-np.sort(-_number_of_checkins(config, rng)),
    )


def _number_of_checkins(config: SynthesisConfig, rng: np.random.Generator) -> NDArray[np.int64]:
    """Log-normal over people, Poisson for each of them. [U]"""
    factor = np.exp(rng.normal(0.0, _SPREAD, config.users) - _SPREAD**2 / 2)
    mean = config.checkins_per_day * config.days
    drawn = rng.poisson(np.minimum(factor, _BUSIEST) * mean)
    return np.maximum(drawn, FEWEST_CHECKINS)
