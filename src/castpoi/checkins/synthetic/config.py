"""Settings of a synthetic city: its size, and the parameters of the laws of mobility."""

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

from castpoi.core.errors import BadInput

ZONE: Final = "America/New_York"
"""Time zone of the city; it has daylight-saving time."""

FEWEST_PLACES: Final = 20
"""Below this there are not enough homes, workplaces and other places."""

MOST_CHECKINS: Final = 1_000_000_000
_RANGES: Final = {
    "users": (1, MOST_CHECKINS),
    "places": (FEWEST_PLACES, MOST_CHECKINS),
    "days": (1, 3_650),
    "checkins_per_day": (1e-6, 50),
    "exploration_rho": (0, 1),
    "exploration_gamma": (0, 1e6),
    "habit_share": (0, 1),
    "jump_exponent": (1e-6, 1e6),
    "jump_offset_km": (1e-6, 1e6),
    "jump_cutoff_km": (1e-6, 1e6),
    "popularity_exponent": (0, 1e6),
}
"""Smallest and largest value of each setting."""


@dataclass(frozen=True, kw_only=True)
class SynthesisConfig:
    """Size of a synthetic city and the laws of its people."""

    users: int = 500
    """People; each of them has at least three check-ins."""
    places: int = 2_000
    """Places of the plan, homes and workplaces included; some may have no visit."""
    days: int = 120
    """Number of local days."""
    checkins_per_day: float = 0.8
    """Mean over people, who differ by a log-normal factor."""
    first_day: date = date(2024, 1, 8)
    """The first local day; the default is a Monday nine weeks before the clocks change."""

    exploration_rho: float = 0.68
    """Probability that a person with one known place visits a new one (Song et al. 2010)."""
    exploration_gamma: float = 0.21
    """Decrease of that probability with the number of known places (Song et al. 2010)."""
    habit_share: float = 0.7
    """Share of free returns that repeat a visit at a similar time of the week."""
    jump_exponent: float = 1.75
    """Exponent of the jump lengths (González et al. 2008)."""
    jump_offset_km: float = 1.5
    """Jumps much shorter than this are equally likely (González et al. 2008)."""
    jump_cutoff_km: float = 20.0
    """Jumps much longer than this are rare: the size of the city."""
    popularity_exponent: float = 0.75
    """Attractiveness of the place of rank r falls with r to this power (Zipf)."""

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:  # nan fails too
                raise BadInput(f"{name} is {value}; choose a value from {least:,} to {most:,}")
        if not 1971 <= self.first_day.year <= 2100:
            raise BadInput(f"the first day is {self.first_day}; choose one from 1971 to 2100")
        if self.expected_checkins > MOST_CHECKINS:
            raise BadInput(
                f"these settings make about {self.expected_checkins:,} check-ins, the most is "
                f"{MOST_CHECKINS:,}; reduce users, days or check-ins per day"
            )

    @property
    def expected_checkins(self) -> int:
        """The approximate number of check-ins."""
        return round(self.users * self.days * self.checkins_per_day)

    def as_json(self) -> dict[str, Any]:
        """All settings as JSON values."""
        return {**asdict(self), "first_day": self.first_day.isoformat(), "zone": ZONE}
