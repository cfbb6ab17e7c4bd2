"""Buckets of distance and age: an edge belongs to the bucket above it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.geo.distance import (
    DISPLACEMENT_EDGES_KM,
    SPATIAL_BIAS_EDGES_KM,
    TEMPORAL_BIAS_EDGES_HOURS,
    bucket_of,
)

ALL_EDGES = [SPATIAL_BIAS_EDGES_KM, TEMPORAL_BIAS_EDGES_HOURS, DISPLACEMENT_EDGES_KM]


def test_edges_are_those_of_the_paper() -> None:
    assert list(SPATIAL_BIAS_EDGES_KM) == [0.5, 2, 5, 20, 100]
    assert list(TEMPORAL_BIAS_EDGES_HOURS) == [1, 6, 24, 168, 720]
    assert list(DISPLACEMENT_EDGES_KM) == [0.1, 0.5, 1, 2, 5, 10, 50]


@pytest.mark.parametrize("edges", ALL_EDGES)
def test_an_edge_belongs_to_the_bucket_above_it(edges: tuple[float, ...]) -> None:
    at_edges = bucket_of(np.array(edges), edges)
    just_below = bucket_of(np.nextafter(np.array(edges), 0), edges)
    assert at_edges.tolist() == list(range(1, len(edges) + 1))
    assert just_below.tolist() == list(range(len(edges)))


@pytest.mark.parametrize("edges", ALL_EDGES)
def test_zero_is_in_the_first_bucket_and_infinity_in_the_last(
    edges: tuple[float, ...],
) -> None:
    assert bucket_of([0.0, 1e9, np.inf], edges).tolist() == [0, len(edges), len(edges)]


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=30), st.sampled_from(ALL_EDGES))
def test_a_bucket_is_the_number_of_edges_reached(
    values: list[float], edges: tuple[float, ...]
) -> None:
    slow = [sum(value >= edge for edge in edges) for value in values]
    assert bucket_of(values, edges).tolist() == slow
