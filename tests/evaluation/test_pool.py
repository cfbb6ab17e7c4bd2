import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from castpoi.core.errors import BadInput
from castpoi.evaluation.compare import Contender
from castpoi.evaluation.metrics import per_target
from castpoi.evaluation.pool import hits_in_pool, pool_curve
from tests.evaluation.results import result_of
from tests.messages import refused


def one(cutoff: int, rank: float, *, pool: int, places: int) -> float:
    return float(hits_in_pool(np.array([rank]), cutoff, pool=pool, places=places)[0])


def test_a_pool_of_two_of_three_places_worked_by_hand() -> None:
    # The second-best place meets the best or the worst, each half of the time.
    assert one(1, 2, pool=2, places=3) == pytest.approx(1 / 2)
    assert one(1, 3, pool=2, places=3) == 0


@pytest.mark.parametrize("cutoff", [1, 10])
def test_the_whole_vocabulary_as_pool_gives_the_metric_itself_half_ranks_too(cutoff: int) -> None:
    ranks = np.arange(2, 81) / 2
    found = hits_in_pool(ranks, cutoff, pool=40, places=40)
    np.testing.assert_allclose(found, per_target(f"HR@{cutoff}", ranks), rtol=1e-12)


def test_a_half_rank_counts_as_the_next_whole_rank() -> None:
    assert one(5, 10.5, pool=20, places=100) == one(5, 11, pool=20, places=100)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_closed_form_agrees_with_scipy(data: st.DataObject) -> None:
    places = data.draw(st.integers(2, 300))
    pool = data.draw(st.integers(1, places))
    rank = data.draw(st.integers(1, places))
    cutoff = data.draw(st.integers(1, 30))
    law = hypergeom(places - 1, rank - 1, pool - 1)
    found = one(cutoff, rank, pool=pool, places=places)
    assert found == pytest.approx(law.cdf(cutoff - 1), abs=1e-9)


@pytest.mark.parametrize(
    ("better", "tied", "closed", "drawn"),
    [(9, 1, 99.99, 99.99), (0, 800, 72.9, 76.8), (50, 1000, 33.3, 22.1)],
)
def test_many_ties_are_off_by_as_much_as_the_docs_state(
    better: int, tied: int, closed: float, drawn: float
) -> None:
    places, pool, draws = 4980, 100, 20_000
    kinds = [better, tied, places - 1 - better - tied]
    came = np.random.default_rng(5).multivariate_hypergeometric(kinds, pool - 1, draws)
    sampled = per_target("HR@10", 1 + came[:, 0] + came[:, 1] / 2).mean()
    found = one(10, 1 + better + tied / 2, pool=pool, places=places)
    assert 100 * found == pytest.approx(closed, abs=0.05)
    assert 100 * sampled == pytest.approx(drawn, abs=1.4)  # four deviations


@pytest.mark.parametrize("rank", [1, 2, 1_000, 1_000_000, 10_000_000])
def test_ten_million_places_lose_no_digit_that_matters(rank: int) -> None:
    places, pool = 10_000_000, 100
    ways = Fraction(math.comb(places - 1, pool - 1))
    hits = sum(math.comb(rank - 1, x) * math.comb(places - rank, pool - 1 - x) for x in range(10))
    assert one(10, rank, pool=pool, places=places) == pytest.approx(
        float(hits / ways), rel=1e-6, abs=1e-300
    )


def contender(name: str, *ranks: float, places: int = 1000) -> Contender:
    return Contender(name, (result_of(ranks, method=name, places=places),))


def test_flipped_pairs_are_listed_with_the_better_method_first() -> None:
    # Steady is never far off; bold is right or lost. In a pool of 100 nearness is enough.
    steady, bold = contender("steady", 15, 15, 15), contender("bold", 1, 900, 900)
    weak = contender("weak", 990, 990, 990)
    curve = pool_curve([steady, bold, weak], 10)
    assert curve.pools == [100, 200, 500, 1000]
    assert curve.values["steady"][0] > curve.values["bold"][0]
    assert curve.values["steady"][-1] == 0
    assert curve.values["bold"][-1] == pytest.approx(1 / 3)
    assert curve.flips == [("bold", "steady")]
    assert pool_curve([bold, steady], 10).flips == [("bold", "steady")]


@pytest.mark.parametrize("pool", [0, 11])
def test_an_impossible_pool_is_refused(pool: int) -> None:
    with refused(BadInput):
        hits_in_pool(np.array([3.0]), 10, pool=pool, places=10)
