"""Boxes and polygons."""

import numpy as np
import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.area import box_of, is_in_box, is_in_polygon, parse_box, polygon_of
from tests.messages import refused

LAT, LON = np.array([0.0, 0.0, 10.0]), np.array([179.0, -179.0, 0.0])


def test_a_box_may_cross_the_date_line() -> None:
    assert is_in_box((-1, 178, 1, -178), LAT, LON).tolist() == [True, True, False]
    assert is_in_box((-1, -180, 1, 178), LAT, LON).tolist() == [False, True, False]


def test_a_polygon_may_cross_the_date_line() -> None:
    around = polygon_of([(-1, 178), (-1, -178.5), (1, -178.5), (1, 178)])
    assert is_in_polygon(around, LAT, LON).tolist() == [True, True, False]


@pytest.mark.parametrize("text", ["1,2,3", "9,0,1,0", "nan,0,1,0", "a,b,c,d"])
def test_a_wrong_box_is_refused(text: str) -> None:
    with refused(BadInput):
        parse_box(text, what="bbox")
    with refused(BadInput):
        box_of([0, 0, 91, 0])


def test_a_polygon_has_three_corners_of_two_degrees() -> None:
    with refused(BadInput):
        polygon_of([(0, 0), (1, 1)])
    with refused(BadInput):
        polygon_of([(0, 0), (1, 1), (91, 0)])
