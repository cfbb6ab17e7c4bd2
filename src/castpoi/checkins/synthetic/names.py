"""Names that a person would believe: "Willow Street Bakery"."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.synthetic.categories import CATEGORIES

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


def name_places(category: NDArray[np.int64], rng: np.random.Generator) -> list[str]:
    """A name for each place after its category; two places may share one, as in life."""
    first = rng.integers(len(_FIRST), size=len(category)).tolist()
    second = rng.integers(len(_SECOND), size=len(category)).tolist()
    third = rng.random(len(category)).tolist()
    names = []
    for kind, a, b, c in zip(category.tolist(), first, second, third, strict=True):
        nouns = CATEGORIES[kind].nouns
        names.append(f"{_FIRST[a]} {_SECOND[b]} {nouns[int(c * len(nouns))]}")
    return names
