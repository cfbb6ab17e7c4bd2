"""The places of a run, by number and by id, and how to find them.

Shapes: P places.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.record import is_among
from castpoi.core.errors import BadInput, UnknownPlace
from castpoi.geo.distance import KM_PER_DEGREE, haversine_km
from castpoi.geo.zones import numbered_zones
from castpoi.methods.run import KNOWN_CHECKINS
from castpoi.recommend.area import Box, Point, is_in_box

_ROUNDING: Final = 1e-9  # degrees


@dataclass(frozen=True, kw_only=True)
class PlaceBook:
    """Ids, names, categories, coordinates and time zones of all places of a vocabulary."""

    ids: list[str]
    names: list[str | None]
    categories: list[str | None]
    lat: NDArray[np.float64]  # [P]
    lon: NDArray[np.float64]  # [P]
    zones: list[str]  # IANA zones
    zone_number: NDArray[np.int64]  # number of the zone of each place [P]
    checkins: NDArray[np.int64]  # check-ins in the splits that the run was trained on [P]
    is_closed: NDArray[np.bool_]  # closed places are never recommended [P]
    private_categories: tuple[str, ...] = ()
    """Their places are recommended only to people who have visited them."""

    @classmethod
    def of(cls, table: pl.DataFrame, *, closed: Iterable[str] = ()) -> "PlaceBook":
        """The book of a run's table of places; `closed` has ids."""
        zone_number, zones = numbered_zones(table[record.ZONE])
        return cls(
            ids=table[record.PLACE_ID].to_list(),
            names=table[record.NAME].to_list(),
            categories=table[record.CATEGORY].to_list(),
            lat=table[record.LAT].to_numpy(),
            lon=table[record.LON].to_numpy(),
            zones=zones,
            zone_number=zone_number,
            checkins=table[KNOWN_CHECKINS].to_numpy().astype(np.int64),
            is_closed=table[record.PLACE_ID].is_in(list(closed)).to_numpy(),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def table(self) -> pl.DataFrame:
        """Id, name, category and coordinates of every place, by number."""
        return pl.DataFrame(
            {
                record.PLACE: self.ids,
                record.NAME: pl.Series(self.names, dtype=pl.String),
                record.CATEGORY: pl.Series(self.categories, dtype=pl.String),
                record.LAT: self.lat,
                record.LON: self.lon,
            }
        )

    @cached_property
    def is_private(self) -> NDArray[np.bool_]:
        """Whether each place has a private category. [P]"""
        return self.is_of_any(self.private_categories)

    @cached_property
    def number_of(self) -> dict[str, int]:
        """The number of every place, by id."""
        return {place_id: number for number, place_id in enumerate(self.ids)}

    @cached_property
    def log_popularity(self) -> NDArray[np.float32]:
        """log(1 + known check-ins); its softmax is nearly the share of check-ins. [P]"""
        return np.log1p(self.checkins).astype(np.float32)

    @cached_property
    def main_zone(self) -> str:
        """The time zone with the most check-ins."""
        count = np.bincount(self.zone_number, weights=1.0 + self.checkins)
        return self.zones[int(count.argmax())]

    def number(self, place_id: str) -> int:
        """The number of a place; raises UnknownPlace."""
        if place_id not in self.number_of:
            raise UnknownPlace(
                f"no place has the id '{place_id[:40]}'; the run's places.parquet and GET "
                "/v1/places list the ids"
            )
        return self.number_of[place_id]

    def details(self, place: int) -> dict[str, Any]:
        """Id, name, category and coordinates of a place."""
        lat, lon = self.point(place)
        name, category = self.names[place], self.categories[place]
        return {
            "place": self.ids[place], "name": name, "category": category, "lat": lat, "lon": lon
        }  # fmt: skip

    def point(self, place: int) -> Point:
        """Latitude and longitude of a place."""
        return float(self.lat[place]), float(self.lon[place])

    def km_from(self, point: Point, places: NDArray[np.int64] | slice) -> NDArray[np.float64]:
        """Distance of some places from a point."""
        return haversine_km(*point, self.lat[places], self.lon[places])

    def is_within(self, point: Point, km: float) -> NDArray[np.bool_]:
        """Whether each place is at most this far from a point. [P]"""
        degrees = km / KM_PER_DEGREE + _ROUNDING
        order, lat = self._by_latitude
        first, end = np.searchsorted(lat, [point[0] - degrees, point[0] + degrees])
        near = order[first:end]
        is_within = np.zeros(len(self), dtype=np.bool_)
        is_within[near] = self.km_from(point, near) <= km
        return is_within

    def is_of_category(self, wanted: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each place has one of the categories, in upper or lower case. [P]"""
        known, _ = self._folded_categories
        unknown = [name for name in wanted if name.casefold() not in known]
        if unknown:
            raise BadInput(
                f"no place has the category '{unknown[0]}'; {self._other_categories(unknown[0])}"
            )
        return self.is_of_any(wanted)

    def is_of_any(self, categories: Sequence[str]) -> NDArray[np.bool_]:
        """The same, but a category without places is no error. [P]"""
        known, number = self._folded_categories
        wanted = [is_among(name, categories) for name in known]
        return np.array(wanted, dtype=np.bool_)[number]

    @cached_property
    def category_number(self) -> NDArray[np.int64]:
        """The number of the category of each place; -1 without a category. [P]"""
        known, number = self._folded_categories
        return np.where(number == known.index(""), -1, number) if "" in known else number

    def find(
        self,
        *,
        text: str = "",
        box: Box | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> list[int]:
        """Public places in a box whose name, category or id contains a text; most check-ins first.

        Only those `after` a place in this order.
        """
        is_found = ~self.is_private  # [P]
        if box is not None:
            is_found &= is_in_box(box, self.lat, self.lon)
        if after is not None:
            more = self.checkins - self.checkins[after]
            is_found &= (more < 0) | ((more == 0) & (np.arange(len(self)) > after))
        numbers = np.flatnonzero(is_found)
        if text:
            wanted = text.casefold()
            numbers = np.array([n for n in numbers if wanted in self._words[n]], dtype=np.int64)
        order = np.lexsort((numbers, -self.checkins[numbers]))
        return [int(number) for number in numbers[order[:limit]]]

    def _other_categories(self, wanted: str) -> str:
        """A suggestion for an unknown category."""
        known = Counter(filter(None, self.categories))
        by_folded = {category.casefold(): category for category in known}
        close = difflib.get_close_matches(wanted.casefold(), by_folded, n=1)
        if close:
            return f"did you mean '{by_folded[close[0]]}'?"
        if not known:
            return "the places of this run have no categories"
        return f"the most frequent are {', '.join(name for name, _ in known.most_common(5))}"

    @cached_property
    def _by_latitude(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Places from south to north, and their latitudes. [P], [P]"""
        order = np.argsort(self.lat)
        return order, self.lat[order]

    @cached_property
    def _words(self) -> list[str]:
        """The text of each place that a search matches."""
        texts = zip(self.names, self.categories, self.ids, strict=True)
        return ["\n".join(text or "" for text in each).casefold() for each in texts]

    @cached_property
    def _folded_categories(self) -> tuple[list[str], NDArray[np.int64]]:
        """Category names in lower case, and the number of the category of each place. [P]"""
        folded = [(category or "").casefold() for category in self.categories]
        known, number = np.unique(np.array(folded), return_inverse=True)
        return known.tolist(), number
