"""The plan of a synthetic city: neighbourhoods, and the places in them.

Neighbourhoods gather around a centre, their sizes fall like Zipf's law, and places lie close to
the heart of their neighbourhood. Attractiveness falls like Zipf's law too, and the most
attractive places tend to stand in the largest neighbourhoods.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.synthetic.categories import CATEGORIES, GOING_OUT, index_of
from castpoi.checkins.synthetic.config import SynthesisConfig
from castpoi.checkins.synthetic.jumps import Blocks, JumpLaw
from castpoi.checkins.synthetic.names import name_places
from castpoi.geo.distance import EARTH_RADIUS_KM

CENTRE_LAT: Final = 40.75
CENTRE_LON: Final = -73.98
CITY_RADIUS_KM: Final = 24.0
COMPANIONS: Final = 3
"""Places where people commonly go after a place."""


@dataclass(frozen=True, kw_only=True)
class CityPlan:
    """Every place of a synthetic city. P places."""

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
    """Where people commonly go after each place. [P, COMPANIONS]"""
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
    """The places that are neither a home nor a workplace."""
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
    """Zipf's law over places; a neighbourhood with a low number is large and draws more. [P]"""
    luck = rng.exponential(size=len(neighbourhood))
    rank = np.empty(len(neighbourhood))
    rank[np.argsort(luck * np.sqrt(1 + neighbourhood), kind="stable")] = np.arange(
        1, len(neighbourhood) + 1
    )
    attractiveness: NDArray[np.float64] = rank**-exponent
    return attractiveness
