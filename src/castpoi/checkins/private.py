"""The categories of places where people live.

Such places are recommended only to people who have been there, and no map or list of a city shows
them (docs/decisions/0011-private-homes.md).
"""

from collections.abc import Iterable
from typing import Final

PRIVATE_CATEGORIES: Final = (
    # Foursquare until 2022, "Residence" and what is below it; the synthetic city has "Residence"
    *("Residence", "Home (private)", "Residential Building (Apartment / Condo)"),
    *("Housing Development", "Assisted Living", "Trailer Park"),
    # Foursquare now: "Community and Government > Residential Building > Apartment or Condo"
    *("Residential Building", "Apartment or Condo"),
    *("Home", "Apartment", "Condo"),  # Gowalla
    # Overture, below "real_estate" and "public_service_and_government"
    *("apartments", "condominium", "housing_cooperative", "mobile_home_park", "low_income_housing"),
)
"""Categories of private places in the published category trees."""

_BELOW: Final = " > "
"""Between the categories of a path, the widest first."""


def is_among(category: str, wanted: Iterable[str]) -> bool:
    """Whether a category, or the last one of its path `A > B`, is wanted; case is ignored."""
    folded = category.casefold()
    return any(name.casefold() in (folded, folded.rpartition(_BELOW)[2]) for name in wanted)
