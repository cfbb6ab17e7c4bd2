"""Similar places: by the vectors of the model where it has them, else by category and distance.

Shapes: P places, D width of a vector, K similar places.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from castpoi.core.arrays import k_best
from castpoi.core.errors import NoCandidateLeft
from castpoi.core.notebook import html_table
from castpoi.methods.ranker import HasPlaceVectors, Ranker
from castpoi.recommend.places import PlaceBook
from castpoi.recommend.recommendation import Answer

SimilarBy = Literal["vectors", "category and distance"]
"""What the order of similar places is computed from."""


class SimilarPlace(Answer):
    """A place that is similar to another."""

    place: str
    """Id of the place."""
    name: str | None
    category: str | None
    lat: float
    lon: float
    similarity: float | None
    """Cosine of the vectors of the two places, from -1 to 1; null for models without vectors."""
    distance_km: float


class SimilarPlaces(Answer):
    """The places that are most similar to a place, most similar first."""

    places: tuple[SimilarPlace, ...]
    place: str
    """Id of the place that they are similar to."""
    by: SimilarBy
    """`vectors` of the model, which places with similar visitors share; or, for methods without
    vectors, places of the same category first, nearest first."""
    model: str
    """Method and first characters of the SHA-256 of the model."""

    def __iter__(self) -> Iterator[SimilarPlace]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        nearest = ", ".join(each.name or each.place for each in self.places[:3])
        return f"{len(self)} places similar to {self.place}: {nearest}{', …' * (len(self) > 3)}"

    def _repr_html_(self) -> str:
        rows = [
            [
                f"{rank}. {each.name or each.place}",
                each.category or "",
                f"{each.distance_km:.1f}",
                "" if each.similarity is None else f"{each.similarity:.2f}",
            ]
            for rank, each in enumerate(self, start=1)
        ]
        columns = ["place", "category", "km", "similarity"]
        points = [(each.lat, each.lon) for each in self]
        return html_table(columns, rows, caption=f"similar to {self.place}", points=points)

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON of the API."""
        return {**vars(self), "places": [vars(each) for each in self]}


def similar_places(
    ranker: Ranker[Any],
    places: PlaceBook,
    place_id: str,
    *,
    model: str,
    k: int,
    within_km: float | None,
    categories: Sequence[str] | None,
) -> SimilarPlaces:
    """The k public, open places most similar to a place; raises UnknownPlace or NoCandidateLeft."""
    place = places.number(place_id)
    allowed = ~(places.is_private | places.is_closed)  # [P]
    allowed[place] = False
    if categories is not None:
        allowed &= places.is_of_category(categories)
    km = places.km_from(places.point(place), slice(None))  # [P]
    if within_km is not None:
        allowed &= km <= within_km
    numbers = np.flatnonzero(allowed)
    if not len(numbers):
        raise NoCandidateLeft(
            "no place is left to compare: none has these categories within this distance and is "
            "public and open; give other categories or a larger within_km"
        )
    similarity = _similarity(ranker, place)
    if similarity is None:
        is_same = places.category_number[numbers] == places.category_number[place]
        best = numbers[np.lexsort((km[numbers], ~is_same))[:k]]  # [K]
    else:
        best = numbers[k_best(similarity[numbers], k)]
    return SimilarPlaces(
        places=tuple(
            SimilarPlace(
                **places.details(number),
                similarity=None if similarity is None else float(similarity[number]),
                distance_km=float(km[number]),
            )
            for number in best.tolist()
        ),
        place=place_id,
        by="category and distance" if similarity is None else "vectors",
        model=model,
    )


def _similarity(ranker: Ranker[Any], place: int) -> NDArray[np.float32] | None:
    """Cosine of the vector of a place with those of all places. [P]"""
    if not isinstance(ranker, HasPlaceVectors):
        return None
    vectors = ranker.place_vectors()  # [P, D]
    lengths = np.maximum(np.linalg.norm(vectors, axis=1), np.finfo(np.float32).tiny)  # [P]
    cosine: NDArray[np.float32] = vectors @ vectors[place] / (lengths * lengths[place])
    return np.clip(cosine, -1.0, 1.0)
