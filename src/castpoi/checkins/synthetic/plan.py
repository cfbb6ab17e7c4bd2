"""The plan of a synthetic city: categories, places, distances of jumps, and people.

Neighbourhoods cluster around a centre and their sizes follow Zipf's law; places are close to the
middle of their neighbourhood. The attractiveness of places follows Zipf's law too, and the most
attractive places tend to be in the largest neighbourhoods.

Jump lengths follow the truncated power law of González, Hidalgo and Barabási (2008),
p(r) ~ (r + r0)^-beta exp(-r / kappa). The place at the end of a jump is drawn from the block around
that point, in proportion to attractiveness.

Shapes: P places, U users.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.synthetic.config import SynthesisConfig
from castpoi.geo.distance import EARTH_RADIUS_KM

SLOTS: Final = 48
"""Times of the week that differ: 24 hours of a workday, then 24 of a weekend day."""

RESIDENCE: Final = "Residence"
OFFICE: Final = "Office"
CENTRE_LAT: Final = 40.75
CENTRE_LON: Final = -73.98
CITY_RADIUS_KM: Final = 24.0
COMPANIONS: Final = 3
"""Number of places where people commonly go after a place."""
LONGEST_JUMP_KM: Final = 60.0
BLOCK_KM: Final = 0.5
_FIRST: Final = (
    "Alder", "Amber", "Ash", "Aspen", "Beacon", "Birch", "Bluebell", "Bramble", "Bridge",
    "Briar", "Canal", "Cedar", "Chapel", "Cherry", "Chestnut", "Clover", "Copper", "Cypress",
    "Dock", "Elm", "Ferry", "Foundry", "Garnet", "Granite", "Hawthorn", "Hazel", "Heron",
    "Ivy", "Juniper", "Kestrel", "Lantern", "Larch", "Laurel", "Lilac", "Linden", "Magnolia",
    "Maple", "Marigold", "Mill", "Mulberry", "Myrtle", "Oak", "Olive", "Orchard", "Pearl",
    "Pine", "Poplar", "Quarry", "Quince", "Raven", "Rowan", "Sable", "Silver", "Sorrel",
    "Spruce", "Sycamore", "Thistle", "Tulip", "Walnut", "Willow",
)  # fmt: skip
_SECOND: Final = (
    "Street", "Avenue", "Square", "Hill", "Lane", "Row", "Corner", "Yard", "Bend", "Gate",
    "Road", "Point",
)  # fmt: skip
FEWEST_CHECKINS: Final = 3
"""So that everyone has a history, a validation target and a test target."""

_SPREAD: Final = 1.1
"""Standard deviation of the logarithm of rates; the median is half the mean, as in New York."""

_BUSIEST: Final = 12.0
"""Largest rate as a multiple of the mean."""


@dataclass(frozen=True, kw_only=True)
class Category:
    """One kind of place."""

    name: str
    share: float
    """Share of all places."""
    nouns: tuple[str, ...]
    """Last words of the names of its places."""
    hours: tuple[tuple[float, float], ...] = ()
    """When people come: (hour of a peak, its width in hours)."""
    weekend: float = 1.0
    """Factor for a weekend day compared with a workday."""


CATEGORIES: Final = (
    Category(name=RESIDENCE, share=0.20, nouns=("Apartments", "House", "Court")),
    Category(name=OFFICE, share=0.10, nouns=("Offices", "Studios", "Works")),
    Category(name="Coffee Shop", share=0.09, nouns=("Coffee", "Espresso", "Café"),
             hours=((8, 1.5), (15, 2))),
    Category(name="Bakery", share=0.05, nouns=("Bakery", "Bread"), hours=((8, 1.5),)),
    Category(name="Lunch Counter", share=0.08, nouns=("Deli", "Noodles", "Sandwiches"),
             hours=((12.5, 1.2),), weekend=0.6),
    Category(name="Restaurant", share=0.11, nouns=("Kitchen", "Grill", "Trattoria"),
             hours=((19.5, 1.7), (13, 1.2)), weekend=1.4),
    Category(name="Bar", share=0.08, nouns=("Tavern", "Taproom", "Bar"),
             hours=((22.5, 2.2), (1, 1.5)), weekend=1.6),
    Category(name="Grocery", share=0.06, nouns=("Market", "Grocery"),
             hours=((18, 2), (11, 2))),
    Category(name="Shop", share=0.07, nouns=("Books", "Hardware", "Outfitters"),
             hours=((15, 3),), weekend=1.8),
    Category(name="Gym", share=0.04, nouns=("Gym", "Fitness", "Yoga"),
             hours=((6.5, 1.2), (18, 1.5)), weekend=0.7),
    Category(name="Park", share=0.04, nouns=("Park", "Gardens", "Green"),
             hours=((14, 3.5), (8, 1.5)), weekend=2.0),
    Category(name="Station", share=0.05, nouns=("Station", "Terminal"),
             hours=((8, 1.2), (17.5, 1.5)), weekend=0.5),
    Category(name="Cinema or Stage", share=0.02, nouns=("Cinema", "Theatre", "Playhouse"),
             hours=((20, 1.5), (16, 2)), weekend=2.0),
    Category(name="Museum", share=0.01, nouns=("Museum", "Gallery"),
             hours=((14, 2),), weekend=2.5),
)  # fmt: skip

GOING_OUT: Final = np.array([bool(category.hours) for category in CATEGORIES])
"""Whether a category is neither home nor workplace. [categories]"""


def index_of(name: str) -> int:
    """Row of a category in `CATEGORIES`."""
    return [category.name for category in CATEGORIES].index(name)


def appeal_by_slot() -> NDArray[np.float64]:
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

    def __init__(self, config: SynthesisConfig) -> None:
        self._length_km = np.concatenate([[0.0], np.geomspace(1e-3, LONGEST_JUMP_KM, 2_000)])
        density = (self._length_km + config.jump_offset_km) ** -config.jump_exponent
        density *= np.exp(-self._length_km / config.jump_cutoff_km)
        slices = (density[1:] + density[:-1]) / 2 * np.diff(self._length_km)
        self._reached = np.concatenate([[0.0], np.cumsum(slices)]) / slices.sum()

    def lengths_km(self, size: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent jump lengths."""
        lengths: NDArray[np.float64] = np.interp(rng.random(size), self._reached, self._length_km)
        return lengths

    def points(
        self, x_km: NDArray[np.float64], y_km: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where one jump from each point ends, in any direction."""
        length = self.lengths_km(x_km.shape, rng)
        angle = rng.random(x_km.shape) * (2 * np.pi)
        return x_km + length * np.cos(angle), y_km + length * np.sin(angle)


class Blocks:
    """Some places in square blocks, to find one near a point quickly."""

    def __init__(
        self,
        places: NDArray[np.int64],
        x_km: NDArray[np.float64],
        y_km: NDArray[np.float64],
        weight: NDArray[np.float64],
    ) -> None:
        self._west, self._south = x_km.min(), y_km.min()
        self._columns = int((x_km.max() - self._west) / BLOCK_KM) + 1
        self._rows = int((y_km.max() - self._south) / BLOCK_KM) + 1
        block = self._block_of(x_km, y_km)
        order = np.argsort(block, kind="stable")
        self._place = places[order]
        self._reached = np.concatenate([[0.0], np.cumsum(weight[order])])
        count = np.bincount(block, minlength=self._rows * self._columns)
        self._bounds = np.concatenate([[0], np.cumsum(count)])
        self._inhabited = self._nearest_inhabited(count)

    def near(
        self, x_km: NDArray[np.float64], y_km: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """One place near each point: from its block, or from the nearest block that has places."""
        block = self._inhabited[self._block_of(x_km, y_km)]
        first, end = self._bounds[block], self._bounds[block + 1]
        low, high = self._reached[first], self._reached[end]
        drawn = np.searchsorted(self._reached, low + rng.random(x_km.shape) * (high - low), "right")
        found: NDArray[np.int64] = self._place[np.clip(drawn - 1, first, end - 1)]
        return found

    def holds(self, x_km: NDArray[np.float64], y_km: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each point lies inside the rectangle of the blocks."""
        column, row = self._column_and_row(x_km, y_km)
        return (column >= 0) & (column < self._columns) & (row >= 0) & (row < self._rows)

    def _column_and_row(
        self, x_km: NDArray[np.float64], y_km: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        column = np.floor((x_km - self._west) / BLOCK_KM).astype(np.int64)
        row = np.floor((y_km - self._south) / BLOCK_KM).astype(np.int64)
        return column, row

    def _block_of(self, x_km: NDArray[np.float64], y_km: NDArray[np.float64]) -> NDArray[np.int64]:
        column, row = self._column_and_row(x_km, y_km)
        blocks_south = np.clip(row, 0, self._rows - 1) * self._columns
        block: NDArray[np.int64] = blocks_south + np.clip(column, 0, self._columns - 1)
        return block

    def _nearest_inhabited(self, count: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each block the nearest one that has places, found by growing those that do."""
        known = np.where(count > 0, np.arange(len(count)), -1).reshape(self._rows, self._columns)
        while (known < 0).any():
            p = np.pad(known, 1, constant_values=-1)
            for neighbour in (p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]):
                known = np.where(known < 0, neighbour, known)
        return known.ravel()


@dataclass(frozen=True, kw_only=True)
class CityPlan:
    """The places of a synthetic city."""

    x_km: NDArray[np.float64]
    """East of the centre. [P]"""
    y_km: NDArray[np.float64]
    """North of the centre. [P]"""
    neighbourhood: NDArray[np.int64]
    """[P]"""
    category: NDArray[np.int64]
    """Row of `CATEGORIES`. [P]"""
    attractiveness: NDArray[np.float64]
    """[P]"""
    companions: NDArray[np.int64]
    """The places where people commonly go after each place. [P, COMPANIONS]"""
    names: list[str]

    def __len__(self) -> int:
        return len(self.x_km)

    @property
    def lat(self) -> NDArray[np.float64]:
        """Latitude in degrees, to about a decimetre. [P]"""
        return np.round(CENTRE_LAT + np.degrees(self.y_km / EARTH_RADIUS_KM), 6)

    @property
    def lon(self) -> NDArray[np.float64]:
        """Longitude in degrees, to about a decimetre. [P]"""
        shrink = np.cos(np.radians(CENTRE_LAT))
        east = np.degrees(self.x_km / (EARTH_RADIUS_KM * float(shrink)))
        return np.round(CENTRE_LON + east, 6)

    def of_category(self, name: str) -> NDArray[np.int64]:
        """The places of one category."""
        return np.flatnonzero(self.category == index_of(name))

    def blocks(self, places: NDArray[np.int64]) -> Blocks:
        """Some of the places by blocks."""
        return Blocks(places, self.x_km[places], self.y_km[places], self.attractiveness[places])


def places_to_go_out(category: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places that are neither homes nor workplaces."""
    return np.flatnonzero(GOING_OUT[category])


def lay_out_city(config: SynthesisConfig, rng: np.random.Generator) -> CityPlan:
    """Draw the plan of a city."""
    neighbourhood, x_km, y_km = _settle(config.places, rng)
    category = _categories(config.places, rng)
    attractiveness = _attractiveness(neighbourhood, config.popularity_exponent, rng)
    places = places_to_go_out(category)
    blocks = Blocks(places, x_km[places], y_km[places], attractiveness[places])
    ends = JumpLaw(config).points(np.repeat(x_km, COMPANIONS), np.repeat(y_km, COMPANIONS), rng)
    return CityPlan(
        x_km=x_km,
        y_km=y_km,
        neighbourhood=neighbourhood,
        category=category,
        attractiveness=attractiveness,
        companions=blocks.near(*ends, rng).reshape(-1, COMPANIONS),
        names=name_places(category, rng),
    )


def _settle(
    places: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Neighbourhood and position of each place. [P], [P], [P]"""
    hearts = int(np.clip(np.sqrt(places) / 2, 5, 150))
    away_km = np.minimum(rng.gamma(1.5, 4.5, hearts), CITY_RADIUS_KM - 4)
    angle = rng.random(hearts) * (2 * np.pi)
    size = 1 / np.arange(1, hearts + 1) ** 0.7  # Zipf-like sizes of settlements
    spread_km = rng.uniform(0.3, 1.0, hearts)
    neighbourhood = rng.choice(hearts, size=places, p=size / size.sum())
    around_km = np.clip(rng.normal(size=(2, places)), -3.5, 3.5) * spread_km[neighbourhood]
    x_km = (away_km * np.cos(angle))[neighbourhood] + around_km[0]
    y_km = (away_km * np.sin(angle))[neighbourhood] + around_km[1]
    return neighbourhood, x_km, y_km


def _categories(places: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A category for each place; every category has a place. [P]"""
    share = np.array([category.share for category in CATEGORIES])
    drawn = rng.choice(len(CATEGORIES), size=places, p=share / share.sum())
    drawn[: len(CATEGORIES)] = np.arange(len(CATEGORIES))
    return rng.permutation(drawn)


def _attractiveness(
    neighbourhood: NDArray[np.int64], exponent: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Zipf's law over places; large neighbourhoods, which have low numbers, attract more. [P]"""
    luck = rng.exponential(size=len(neighbourhood))
    rank = np.empty(len(neighbourhood))
    rank[np.argsort(luck * np.sqrt(1 + neighbourhood), kind="stable")] = np.arange(
        1, len(neighbourhood) + 1
    )
    attractiveness: NDArray[np.float64] = rank**-exponent
    return attractiveness


def name_places(category: NDArray[np.int64], rng: np.random.Generator) -> list[str]:
    """A name for each place, such as "Willow Street Bakery"; two places may have the same."""
    first = rng.integers(len(_FIRST), size=len(category)).tolist()
    second = rng.integers(len(_SECOND), size=len(category)).tolist()
    third = rng.random(len(category)).tolist()
    names = []
    for kind, a, b, c in zip(category.tolist(), first, second, third, strict=True):
        nouns = CATEGORIES[kind].nouns
        names.append(f"{_FIRST[a]} {_SECOND[b]} {nouns[int(c * len(nouns))]}")
    return names


@dataclass(frozen=True, kw_only=True)
class People:
    """All people, the busiest first."""

    home: NDArray[np.int64]
    """[U]"""
    work: NDArray[np.int64]
    """[U]"""
    taste: NDArray[np.float32]
    """Preference of each person for each category. [U, categories]"""
    checkins: NDArray[np.int64]
    """Number of check-ins of each person, in descending order. [U]"""

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
