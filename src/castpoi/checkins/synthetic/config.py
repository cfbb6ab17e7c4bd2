"""What one asks of a synthetic city, and the parameters of the laws it follows."""

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

from castpoi.core.errors import BadInput

ZONE: Final = "America/New_York"
"""The clock of the city; it has daylight-saving time, so that no test can forget it."""

FEWEST_PLACES: Final = 20
"""Below this there is no room for homes, works and places to go."""

MOST_CHECKINS: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class SynthesisConfig:
    """Size of a synthetic city and the laws of its people."""

    users: int = 500
    """People; each of them has at least three check-ins."""
    places: int = 2_000
    """Places of the plan, homes and works included; the remotest may stay unvisited."""
    days: int = 120
    """Whole local days, the first one included."""
    checkins_per_day: float = 0.8
    """Mean over people; single people differ by a log-normal factor."""
    first_day: date = date(2024, 1, 8)
    """The first local day; by default a Monday nine weeks before the clocks change."""

    exploration_rho: float = 0.68
    """Chance that a person who knows one place goes somewhere new (Song et al. 2010)."""
    exploration_gamma: float = 0.21
    """How fast that chance falls with the number of known places (Song et al. 2010)."""
    habit_share: float = 0.7
    """Share of free returns that repeat what was done at a like moment; no habit of a model."""
    jump_exponent: float = 1.75
    """Exponent of the jump lengths (González et al. 2008)."""
    jump_offset_km: float = 1.5
    """Jumps much shorter than this are equally likely (González et al. 2008)."""
    jump_cutoff_km: float = 20.0
    """Jumps much longer than this are rare: the size of the city."""
    popularity_exponent: float = 0.75
    """Attractiveness of the place of rank r falls with r to this power (Zipf)."""

    def __post_init__(self) -> None:
        self._check_size()
        for name in ("exploration_rho", "habit_share"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise BadInput(f"{name} is {share}, but it is a share; choose one from 0 to 1")
        for name in ("jump_exponent", "jump_offset_km", "jump_cutoff_km"):
            if not 0 < getattr(self, name) < float("inf"):
                raise BadInput(f"{name} is {getattr(self, name)}; choose one above 0")
        for name in ("exploration_gamma", "popularity_exponent"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise BadInput(f"{name} is {getattr(self, name)}; choose one of 0 or more")

    def _check_size(self) -> None:
        if self.users < 1:
            raise BadInput(f"a city of {self.users} users has no check-ins; ask for 1 or more")
        if self.places < FEWEST_PLACES:
            raise BadInput(
                f"{self.places} places leave no room for homes, works and places to go; "
                f"ask for {FEWEST_PLACES} or more"
            )
        if not 1 <= self.days <= 3_650:
            raise BadInput(f"days is {self.days}; ask for 1 to 3650 days")
        if not 0 < self.checkins_per_day <= 50:
            raise BadInput(
                f"{self.checkins_per_day} check-ins per day is not a human life; "
                "ask for more than 0 and at most 50"
            )
        if not 1971 <= self.first_day.year <= 2100:
            raise BadInput(f"the first day is {self.first_day}; choose one from 1971 to 2100")
        if self.expected_checkins > MOST_CHECKINS:
            raise BadInput(
                f"about {self.expected_checkins:,} check-ins are asked for, the most is "
                f"{MOST_CHECKINS:,}; ask for fewer users, days or check-ins per day"
            )

    @property
    def expected_checkins(self) -> int:
        """About how many check-ins there will be."""
        return round(self.users * self.days * self.checkins_per_day)

    def as_json(self) -> dict[str, Any]:
        """Every parameter, for the record."""
        return {**asdict(self), "first_day": self.first_day.isoformat(), "zone": ZONE}
