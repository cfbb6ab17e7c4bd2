"""The anchors of every position are those of the history that ends there."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.model.anchors import anchors_of
from castpoi.model.config import Anchor
from castpoi.model.known_pairs import known_pairs
from castpoi.training.anchors import anchors_after
from castpoi.training.known_places import KnownPlaces
from castpoi.training.train_part import train_histories
from tests.training.histories import every_position, prefixes

ALL: tuple[Anchor, ...] = ("home", "last", "before_last")
WINDOW = 12


def of_all_positions(histories: Histories, anchors: Sequence[Anchor]) -> NDArray[np.int64]:
    known, every = KnownPlaces(histories, WINDOW), every_position(histories)
    return anchors_after(
        every,
        place=histories.place,
        user_begin=known.user_begin,
        home=known.of(every).home,
        anchors=anchors,
    )


def test_anchors_of_all_positions_are_those_of_every_prefix_alone(town: City) -> None:
    histories = train_histories(town)
    alone = prefixes(histories).tail(WINDOW)
    expected = anchors_of(alone, known_pairs(alone, WINDOW), ALL)
    np.testing.assert_array_equal(of_all_positions(histories, ALL), expected)


def test_no_anchors_are_kept_where_there_is_no_gate(town: City) -> None:
    histories = train_histories(town)
    assert of_all_positions(histories, ()).shape == (len(histories.place), 0)
