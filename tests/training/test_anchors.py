"""The anchors of every position are those of the history that ends there."""

import numpy as np

from castpoi.checkins.city import City
from castpoi.model.anchors import anchors_of
from castpoi.model.config import Anchor
from castpoi.model.known_pairs import known_pairs
from castpoi.training.anchors import anchors_after
from castpoi.training.train_part import train_histories
from castpoi.training.windows import known_places
from tests.training.histories import prefixes

ALL: tuple[Anchor, ...] = ("home", "last", "before_last")
WINDOW = 12


def test_anchors_of_all_positions_are_those_of_every_prefix_alone(town: City) -> None:
    histories = train_histories(town)
    found = anchors_after(histories, known_places(histories, WINDOW), ALL)
    alone = prefixes(histories).tail(WINDOW)
    np.testing.assert_array_equal(found, anchors_of(alone, known_pairs(alone, WINDOW), ALL))


def test_no_anchors_are_kept_where_there_is_no_gate(town: City) -> None:
    histories = train_histories(town)
    found = anchors_after(histories, known_places(histories, WINDOW), ())
    assert found.shape == (len(histories.place), 0)
