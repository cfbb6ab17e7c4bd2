"""A synthetic city before anybody moves: its settings, its places, jump lengths, and its people.

Neighbourhoods cluster around a centre and their sizes follow Zipf's law; places are close to the
middle of their neighbourhood. The attractiveness of places follows Zipf's law too, and the most
attractive places tend to be in the largest neighbourhoods.

Jump lengths follow the truncated power law of González, Hidalgo and Barabási (2008),
p(r) ~ (r + r0)^-beta exp(-r / kappa). The place at the end of a jump is drawn from the block around
that point, in proportion to attractiveness.

Shapes: P places, U users. The two rows of `xy_km` are kilometres east and north of the centre.
"""

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from castpoi.core.arrays import Floats, Numbers
from castpoi.core.errors import BadInput
from castpoi.geo.distance import EARTH_RADIUS_KM

Rng = np.random.Generator

ZONE: Final = "America/New_York"  # time zone of the city; it has daylight-saving time

MIN_PLACES: Final = 20  # below this there are not enough homes, workplaces and other places

MAX_CHECKINS: Final = 1_000_000_000
_RANGES: Final = {
    "users": (1, MAX_CHECKINS),
    "places": (MIN_PLACES, MAX_CHECKINS),
    "days": (1, 3_650),
    "checkins_per_day": (1e-6, 50),
}
"""Smallest and largest value of each setting."""


SLOTS: Final = 48  # times of the week that differ: 24 hours of a workday, then 24 of a weekend day
RESIDENCE: Final = "Residence"
OFFICE: Final = "Office"
CENTRE_LAT: Final = 40.75
CENTRE_LON: Final = -73.98
CITY_RADIUS_KM: Final = 24.0
COMPANIONS: Final = 3  # number of places where people commonly go after a place
EXPLORATION_RHO: Final = 0.68  # probability of a new place for a person with one known place
EXPLORATION_GAMMA: Final = 0.21  # its decrease with the known places (both Song et al. 2010)
HABIT_SHARE: Final = 0.7  # of free returns, which repeat a visit at a similar time of the week
JUMP_EXPONENT: Final = 1.75  # González et al. (2008), as the next two
JUMP_OFFSET_KM: Final = 1.5  # jumps much shorter than this are equally likely
JUMP_CUTOFF_KM: Final = 20.0  # jumps much longer than this are rare: the size of the city
POPULARITY_EXPONENT: Final = 0.75  # attractiveness falls with the rank of a place to this power
LONGEST_JUMP_KM: Final = 60.0
BLOCK_KM: Final = 0.5
MIN_CHECKINS: Final = 3  # so that everyone has a history, a validation target and a test target
_SPREAD: Final = 1.1
"""Standard deviation of the logarithm of rates; the median is half the mean, as in New York."""
_BUSIEST: Final = 12.0  # largest rate as a multiple of the mean
_FIRST: Final = (
    "Alder Amber Ash Aspen Beacon Birch Bluebell Bramble Bridge Briar Canal Cedar Chapel "
    "Cherry Chestnut Clover Copper Cypress Dock Elm Ferry Foundry Garnet Granite Hawthorn "
    "Hazel Heron Ivy Juniper Kestrel Lantern Larch Laurel Lilac Linden Magnolia Maple "
    "Marigold Mill Mulberry Myrtle Oak Olive Orchard Pearl Pine Poplar Quarry Quince Raven "
    "Rowan Sable Silver Sorrel Spruce Sycamore Thistle Tulip Walnut Willow"
)
_SECOND: Final = "Street Avenue Square Hill Lane Row Corner Yard Bend Gate Road Point"


@dataclass(frozen=True, kw_only=True)
class SynthesisConfig:
    """Size of a synthetic city."""

    users: int = 500
    """Number of people; each has at least three check-ins."""
    places: int = 2_000
    """Number of places, including homes and workplaces; some may have no visit."""
    days: int = 120
    """Number of local days."""
    checkins_per_day: float = 0.8
    """Mean check-ins per person and day; people differ by a log-normal factor."""
    first_day: date = date(2024, 1, 8)
    """The first local day; the default is a Monday nine weeks before the clocks change."""

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:  # nan fails too
                raise BadInput(f"{name} is {value}; choose a value from {least:,} to {most:,}")
        if not 1971 <= self.first_day.year <= 2100:
            raise BadInput(f"the first day is {self.first_day}; choose one from 1971 to 2100")
        if self.expected_checkins > MAX_CHECKINS:
            raise BadInput(
                f"these settings make about {self.expected_checkins:,} check-ins; the maximum is "
                f"{MAX_CHECKINS:,}; reduce users, days or check-ins per day"
            )

    @property
    def expected_checkins(self) -> int:
        """The approximate number of check-ins."""
        return round(self.users * self.days * self.checkins_per_day)

    def as_json(self) -> dict[str, Any]:
        """All settings as JSON values."""
        return {**asdict(self), "first_day": self.first_day.isoformat(), "zone": ZONE}


@dataclass(frozen=True)
class Category:
    """One kind of place."""

    name: str
    share: float  # share of all places
    nouns: tuple[str, ...]  # last words of the names of its places
    hours: tuple[tuple[float, float], ...] = ()
    """When people come: (hour of a peak, its width in hours)."""
    weekend: float = 1.0  # factor for a weekend day compared with a workday


CATEGORIES: Final = (
    Category(RESIDENCE, 0.20, ("Apartments", "House", "Court")),
    Category(OFFICE, 0.10, ("Offices", "Studios", "Works")),
    Category("Coffee Shop", 0.09, ("Coffee", "Espresso", "Café"), ((8, 1.5), (15, 2))),
    Category("Bakery", 0.05, ("Bakery", "Bread"), ((8, 1.5),)),
    Category("Lunch Counter", 0.08, ("Deli", "Noodles", "Sandwiches"), ((12.5, 1.2),), 0.6),
    Category("Restaurant", 0.11, ("Kitchen", "Grill", "Trattoria"), ((19.5, 1.7), (13, 1.2)), 1.4),
    Category("Bar", 0.08, ("Tavern", "Taproom", "Bar"), ((22.5, 2.2), (1, 1.5)), 1.6),
    Category("Grocery", 0.06, ("Market", "Grocery"), ((18, 2), (11, 2))),
    Category("Shop", 0.07, ("Books", "Hardware", "Outfitters"), ((15, 3),), 1.8),
    Category("Gym", 0.04, ("Gym", "Fitness", "Yoga"), ((6.5, 1.2), (18, 1.5)), 0.7),
    Category("Park", 0.04, ("Park", "Gardens", "Green"), ((14, 3.5), (8, 1.5)), 2.0),
    Category("Station", 0.05, ("Station", "Terminal"), ((8, 1.2), (17.5, 1.5)), 0.5),
    Category(
        "Cinema or Stage", 0.02, ("Cinema", "Theatre", "Playhouse"), ((20, 1.5), (16, 2)), 2.0
    ),
    Category("Museum", 0.01, ("Museum", "Gallery"), ((14, 2),), 2.5),
)


def index_of(name: str) -> int:
    """Row of a category in `CATEGORIES`."""
    return [category.name for category in CATEGORIES].index(name)


def appeal_by_slot() -> Floats:
    """Appeal of each category at each time of the week. [SLOTS, categories]"""
    hour = np.arange(24) + 0.5
    appeal = np.full((2, 24, len(CATEGORIES)), 0.04)  # nowhere and at no hour it is 0
    for column, category in enumerate(CATEGORIES):
        for peak, width in category.hours:
            away = np.abs((hour - peak + 12) % 24 - 12)
            bump = np.exp(-0.5 * (away / width) ** 2)
            appeal[0, :, column] += bump
            appeal[1, :, column] += bump * category.weekend
    return appeal.reshape(SLOTS, len(CATEGORIES))


class JumpLaw:
    """Lengths of jumps, drawn by inverting the distribution function."""

    def __init__(self) -> None:
        self._length_km = np.concatenate([[0.0], np.geomspace(1e-3, LONGEST_JUMP_KM, 2_000)])
        density = (self._length_km + JUMP_OFFSET_KM) ** -JUMP_EXPONENT
        density *= np.exp(-self._length_km / JUMP_CUTOFF_KM)
        slices = (density[1:] + density[:-1]) / 2 * np.diff(self._length_km)
        self._reached = np.concatenate([[0.0], np.cumsum(slices)]) / slices.sum()

    def lengths_km(self, size: tuple[int, ...], rng: Rng) -> Floats:
        """Independent jump lengths."""
        return np.interp(rng.random(size), self._reached, self._length_km)

    def ends(self, xy_km: Floats, rng: Rng) -> Floats:
        """Where one jump from each point ends, in any direction. [2, ...] -> [2, ...]"""
        length = self.lengths_km(xy_km.shape[1:], rng)
        angle = rng.random(xy_km.shape[1:]) * (2 * np.pi)
        return xy_km + length * np.stack([np.cos(angle), np.sin(angle)])


class Blocks:
    """Some places in square blocks, to find one near a point quickly."""

    def __init__(self, places: Numbers, xy_km: Floats, weight: Floats) -> None:
        """From the numbers of the places, and the points and weights of all. [2, P], [P]"""
        xy_km = xy_km[:, places]
        self._corner = xy_km.min(axis=1)  # south-west
        self._size = ((xy_km.max(axis=1) - self._corner) / BLOCK_KM).astype(np.int64) + 1
        block = self._block_of(xy_km)
        order = np.argsort(block, kind="stable")
        self._place = places[order]
        self._reached = np.concatenate([[0.0], np.cumsum(weight[self._place])])
        count = np.bincount(block, minlength=self._size.prod())
        self._bounds = np.concatenate([[0], np.cumsum(count)])
        self._inhabited = self._nearest_inhabited(count)

    def near(self, xy_km: Floats, rng: Rng) -> Numbers:
        """One place near each point: from its block, or from the nearest block that has places."""
        block = self._inhabited[self._block_of(xy_km)]
        first, end = self._bounds[block], self._bounds[block + 1]
        low, high = self._reached[first], self._reached[end]
        drawn = np.searchsorted(
            self._reached, low + rng.random(block.shape) * (high - low), "right"
        )
        return self._place[np.clip(drawn - 1, first, end - 1)]

    def holds(self, xy_km: Floats) -> NDArray[np.bool_]:
        """Whether each point lies inside the rectangle of the blocks."""
        column, row = self._column_and_row(xy_km)
        columns, rows = self._size
        return (column >= 0) & (column < columns) & (row >= 0) & (row < rows)

    def _column_and_row(self, xy_km: Floats) -> Numbers:
        return np.floor((xy_km.T - self._corner).T / BLOCK_KM).astype(np.int64)

    def _block_of(self, xy_km: Floats) -> Numbers:
        column, row = self._column_and_row(xy_km)
        columns, rows = self._size
        return np.clip(row, 0, rows - 1) * columns + np.clip(column, 0, columns - 1)

    def _nearest_inhabited(self, count: Numbers) -> Numbers:
        """For each block the nearest one that has places, found by growing those that do."""
        known = np.where(count > 0, np.arange(len(count)), -1).reshape(self._size[::-1])
        while (known < 0).any():
            p = np.pad(known, 1, constant_values=-1)
            for neighbour in (p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]):
                known = np.where(known < 0, neighbour, known)
        return known.ravel()


@dataclass(frozen=True, kw_only=True)
class CityPlan:
    """The places of a synthetic city."""

    xy_km: Floats  # [2, P]
    neighbourhood: Numbers  # [P]
    category: Numbers  # row of `CATEGORIES`. [P]
    attractiveness: Floats  # [P]
    companions: Numbers  # where people commonly go after each place. [P, COMPANIONS]
    names: list[str]

    def __len__(self) -> int:
        return len(self.category)

    @property
    def lat(self) -> Floats:
        """Latitude in degrees, to about a decimetre. [P]"""
        return np.round(CENTRE_LAT + np.degrees(self.xy_km[1] / EARTH_RADIUS_KM), 6)

    @property
    def lon(self) -> Floats:
        """Longitude in degrees, to about a decimetre. [P]"""
        shrink = float(np.cos(np.radians(CENTRE_LAT)))
        return np.round(CENTRE_LON + np.degrees(self.xy_km[0] / (EARTH_RADIUS_KM * shrink)), 6)

    def of_category(self, name: str) -> Numbers:
        """The places of one category."""
        return np.flatnonzero(self.category == index_of(name))

    def blocks(self, places: Numbers) -> Blocks:
        """Some of the places by blocks."""
        return Blocks(places, self.xy_km, self.attractiveness)


def places_to_go_out(category: Numbers) -> Numbers:
    """The places that are neither homes nor workplaces."""
    return np.flatnonzero(np.array([bool(each.hours) for each in CATEGORIES])[category])


def lay_out_city(config: SynthesisConfig, rng: Rng) -> CityPlan:
    """Draw the plan of a city."""
    neighbourhood, xy_km = _settle(config.places, rng)
    category = _categories(config.places, rng)
    attractiveness = _attractiveness(neighbourhood, rng)
    blocks = Blocks(places_to_go_out(category), xy_km, attractiveness)
    ends = JumpLaw().ends(np.repeat(xy_km, COMPANIONS, axis=1), rng)
    return CityPlan(
        xy_km=xy_km,
        neighbourhood=neighbourhood,
        category=category,
        attractiveness=attractiveness,
        companions=blocks.near(ends, rng).reshape(-1, COMPANIONS),
        names=name_places(category, rng),
    )


def _settle(places: int, rng: Rng) -> tuple[Numbers, Floats]:
    """Neighbourhood and position of each place. [P], [2, P]"""
    centres = int(np.clip(np.sqrt(places) / 2, 5, 150))
    away_km = np.minimum(rng.gamma(1.5, 4.5, centres), CITY_RADIUS_KM - 4)
    angle = rng.random(centres) * (2 * np.pi)
    size = 1 / np.arange(1, centres + 1) ** 0.7  # Zipf-like sizes of settlements
    spread_km = rng.uniform(0.3, 1.0, centres)
    neighbourhood = rng.choice(centres, size=places, p=size / size.sum())
    around_km = np.clip(rng.normal(size=(2, places)), -3.5, 3.5) * spread_km[neighbourhood]
    centre_xy_km = away_km * np.stack([np.cos(angle), np.sin(angle)])
    return neighbourhood, centre_xy_km[:, neighbourhood] + around_km


def _categories(places: int, rng: Rng) -> Numbers:
    """A category for each place; every category has a place. [P]"""
    share = np.array([category.share for category in CATEGORIES])
    drawn = rng.choice(len(CATEGORIES), size=places, p=share / share.sum())
    drawn[: len(CATEGORIES)] = np.arange(len(CATEGORIES))
    return rng.permutation(drawn)


def _attractiveness(neighbourhood: Numbers, rng: Rng) -> Floats:
    """Zipf's law over places; large neighbourhoods, which have low numbers, attract more. [P]"""
    noise = rng.exponential(size=len(neighbourhood))
    order = np.argsort(noise * np.sqrt(1 + neighbourhood), kind="stable")
    rank = np.empty(len(order))
    rank[order] = np.arange(1, len(order) + 1)
    return rank**-POPULARITY_EXPONENT


def name_places(category: Numbers, rng: Rng) -> list[str]:
    """A name for each place, such as "Willow Street Bakery"; two places may have the same."""
    firsts, seconds = _FIRST.split(), _SECOND.split()
    first = rng.integers(len(firsts), size=len(category)).tolist()
    second = rng.integers(len(seconds), size=len(category)).tolist()
    third = rng.random(len(category)).tolist()
    names = []
    for kind, a, b, c in zip(category.tolist(), first, second, third, strict=True):
        nouns = CATEGORIES[kind].nouns
        names.append(f"{firsts[a]} {seconds[b]} {nouns[int(c * len(nouns))]}")
    return names


@dataclass(frozen=True, kw_only=True)
class People:
    """All people, the busiest first."""

    home: Numbers  # [U]
    work: Numbers  # [U]
    taste: NDArray[np.float32]  # preference of each person for each category. [U, categories]
    checkins: Numbers  # number of check-ins of each person, in descending order. [U]

    def __len__(self) -> int:
        return len(self.home)


def settle_people(plan: CityPlan, config: SynthesisConfig, rng: Rng) -> People:
    """Draw everyone's home, work, tastes and number of check-ins."""
    home = rng.choice(plan.of_category(RESIDENCE), size=config.users)
    commute_end = JumpLaw().ends(plan.xy_km[:, home], rng)
    work = plan.blocks(plan.of_category(OFFICE)).near(commute_end, rng)
    taste = rng.gamma(0.7, size=(config.users, len(CATEGORIES))) + 0.05
    # log-normal over people, Poisson for each of them
    factor = np.exp(rng.normal(0.0, _SPREAD, config.users) - _SPREAD**2 / 2)
    drawn = rng.poisson(np.minimum(factor, _BUSIEST) * (config.checkins_per_day * config.days))
    checkins = -np.sort(-np.maximum(drawn, MIN_CHECKINS))
    return People(home=home, work=work, taste=taste.astype(np.float32), checkins=checkins)
