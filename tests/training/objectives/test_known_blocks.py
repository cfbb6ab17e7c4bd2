"""Known places of training positions, in blocks, and within the memory for those kept."""

import math
from dataclasses import fields

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.geo.distance import unit_vectors
from castpoi.model.features.known import POSITIONS_AT_ONCE, KnownPairs
from castpoi.training.objectives.known_blocks import KnownBlocks
from tests.cities import histories_of
from tests.training.histories import every_position

WINDOW = 512


def walk(visits: int, places: int, seed: int = 0) -> list[int]:
    walked: list[int] = np.random.default_rng(seed).integers(0, places, visits).tolist()
    return walked


def points(places: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rng = np.random.default_rng(1)
    return unit_vectors(40 + rng.random(places), -74 + rng.random(places))


def same(one: KnownPairs, other: KnownPairs) -> bool:
    return all(
        np.array_equal(getattr(one, each.name), getattr(other, each.name))
        for each in fields(KnownPairs)
    )


@given(
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
    window=st.integers(1, 100),
)
@settings(max_examples=25, deadline=None)
def test_any_positions_have_the_bits_that_they_have_among_all(
    lengths: list[int], seed: int, window: int
) -> None:
    """In any order, twice, and whether blocks are kept or not."""
    histories = histories_of(*(walk(length, 7, seed) for length in lengths))
    every = KnownBlocks(histories, points(7), window=window).of(every_position(histories))
    rng = np.random.default_rng(seed)
    some = rng.integers(0, len(histories.place), 40)
    kept, none_kept = (
        KnownBlocks(histories, points(7), window=window, kept_bytes=room) for room in (10**9, 0)
    )
    for known in (kept, none_kept, kept, none_kept):
        found = known.of(some)
        for row, position in enumerate(some.tolist()):
            assert same(found.part(row, row + 1), every.part(position, position + 1))
    assert kept.kept
    assert not none_kept.kept


def test_a_batch_of_one_user_with_many_visits_counts_no_more_than_its_blocks() -> None:
    """Before, all pairs of the user were computed at the start: here 1.8 GB."""
    histories = histories_of(walk(20_000, 1_000))
    known = KnownBlocks(histories, points(1_000))
    assert not known.kept  # nothing is computed before a batch asks for it
    batch = np.arange(19_000, 19_050)
    found = known.of(batch)
    assert len(known.kept) == 2
    assert len(found.place) <= len(batch) * WINDOW
    pairs = sum(len(block.place) for block in known.kept.values())
    assert pairs <= 2 * POSITIONS_AT_ONCE * WINDOW


def test_blocks_are_kept_until_their_memory_is_full() -> None:
    histories = histories_of(walk(2_000, 100))
    positions = every_position(histories)
    known = KnownBlocks(histories, points(100), kept_bytes=2_000_000)
    found = known.of(positions)
    assert 1_000_000 < sum(block.size_bytes for block in known.kept.values()) <= 2_000_000
    whole = KnownBlocks(histories, points(100))
    assert same(found, whole.of(positions))
    assert len(whole.kept) == math.ceil(2_000 / POSITIONS_AT_ONCE) > len(known.kept)
