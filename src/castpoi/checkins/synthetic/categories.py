"""Kinds of places: how common they are, what they are called, at which hours people go there."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SLOTS: Final = 48
"""Moments of the week that people tell apart: 24 hours of a workday, then 24 of a weekend day."""

RESIDENCE: Final = "Residence"
OFFICE: Final = "Office"


@dataclass(frozen=True, kw_only=True)
class Category:
    """One kind of place."""

    name: str
    share: float
    """Share of all places."""
    nouns: tuple[str, ...]
    """Last words of the names of such places."""
    hours: tuple[tuple[float, float], ...] = ()
    """When people come: (hour of the peak, width in hours)."""
    weekend: float = 1.0
    """How much likelier on a weekend day than on a workday."""


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
"""Whether people go there without living or working there. [categories]"""


def index_of(name: str) -> int:
    """Row of a category."""
    return [category.name for category in CATEGORIES].index(name)


def appeal_by_slot() -> NDArray[np.float64]:
    """How much each category appeals at each moment of the week. [SLOTS, categories]"""
    hour = np.arange(24) + 0.5
    appeal = np.full((2, 24, len(CATEGORIES)), 0.04)  # someone goes anywhere at any hour
    for column, category in enumerate(CATEGORIES):
        for peak, width in category.hours:
            away = np.abs((hour - peak + 12) % 24 - 12)
            bump = np.exp(-0.5 * (away / width) ** 2)
            appeal[0, :, column] += bump
            appeal[1, :, column] += bump * category.weekend
    return appeal.reshape(SLOTS, len(CATEGORIES))
