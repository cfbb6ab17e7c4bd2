import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from castpoi.core.errors import BadInput
from castpoi.evaluation.contender import Contender
from castpoi.evaluation.metrics import per_target
from castpoi.evaluation.pool import in_pool, pool_curve
from tests.evaluation.results import result_of
from tests.messages import refused


def one(metric: str, rank: float, *, pool: int, places: int) -> float:
    return float(in_pool(metric, np.array([rank]), pool=pool, places=places)[0])


def test_a_pool_of_two_of_three_places_worked_by_hand() -> None:
    # The second-best place meets the best or the worst, each half of the time.
    assert one("HR@1", 2, pool=2, places=3) == pytest.approx(1 / 2)
    assert one("MRR", 2, pool=2, places=3) == pytest.approx((1 / 2 + 1) / 2)
    assert one("HR@1", 3, pool=2, places=3) == 0
    assert one("MRR", 3, pool=2, places=3) == pytest.approx(1 / 2)


def test_the_best_place_is_first_in_every_pool() -> None:
    for pool in (1, 100, 5000, 9999, 10_000):
        assert one("HR@1", 1, pool=pool, places=10_000) == pytest.approx(1)
        assert one("MRR", 1, pool=pool, places=10_000) == pytest.approx(1)


@pytest.mark.parametrize("metric", ["HR@1", "HR@10", "MRR"])
def test_the_whole_vocabulary_as_pool_gives_the_metric_itself_half_ranks_too(metric: str) -> None:
    ranks = np.arange(2, 81) / 2
    found = in_pool(metric, ranks, pool=40, places=40)
    np.testing.assert_allclose(found, per_target(metric, ranks), rtol=1e-12)


def test_a_half_rank_counts_as_the_next_whole_rank_for_hits_and_lies_between_for_mrr() -> None:
    at = {"pool": 20, "places": 100}
    assert one("HR@5", 10.5, **at) == one("HR@5", 11, **at)
    low, high = one("MRR", 11, **at), one("MRR", 10, **at)
    assert one("MRR", 10.5, **at) == pytest.approx(2 / (1 / low + 1 / high))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_closed_form_agrees_with_scipy(data: st.DataObject) -> None:
    places = data.draw(st.integers(2, 300))
    pool = data.draw(st.integers(1, places))
    rank = data.draw(st.integers(1, places))
    cutoff = data.draw(st.integers(1, 30))
    law = hypergeom(places - 1, rank - 1, pool - 1)
    expected = one(f"HR@{cutoff}", rank, pool=pool, places=places)
    assert expected == pytest.approx(law.cdf(cutoff - 1), abs=1e-9)
    better = np.arange(pool)
    mean = float((law.pmf(better) / (1 + better)).sum())
    assert one("MRR", rank, pool=pool, places=places) == pytest.approx(mean)


def test_the_closed_form_agrees_with_drawing_pools() -> None:
    places, pool, draws = 60, 12, 4000
    rng = np.random.default_rng(5)
    for rank in (2, 9, 30, 60):
        others = np.array([r for r in range(1, places + 1) if r != rank])
        drawn = rng.permuted(np.tile(others, (draws, 1)), axis=1)[:, : pool - 1]
        ranks = 1 + (drawn < rank).sum(axis=1)
        # Four deviations of a mean of 4,000 values between 0 and 1 are at most 0.032.
        for metric in ("HR@5", "MRR"):
            sampled = float(per_target(metric, ranks.astype(float)).mean())
            assert one(metric, rank, pool=pool, places=places) == pytest.approx(sampled, abs=0.032)


@pytest.mark.parametrize(
    ("better", "tied", "closed", "drawn"),
    [(9, 1, 99.99, 99.99), (0, 800, 72.9, 76.8), (50, 1000, 33.3, 22.1)],
)
def test_many_ties_are_read_wrongly_by_as_much_as_the_docs_say(
    better: int, tied: int, closed: float, drawn: float
) -> None:
    places, pool, draws = 4980, 100, 20_000
    kinds = [better, tied, places - 1 - better - tied]
    came = np.random.default_rng(5).multivariate_hypergeometric(kinds, pool - 1, draws)
    sampled = per_target("HR@10", 1 + came[:, 0] + came[:, 1] / 2).mean()
    found = one("HR@10", 1 + better + tied / 2, pool=pool, places=places)
    assert 100 * found == pytest.approx(closed, abs=0.05)
    assert 100 * sampled == pytest.approx(drawn, abs=1.4)  # four deviations


@pytest.mark.parametrize("rank", [1, 2, 1_000, 1_000_000, 10_000_000])
def test_ten_million_places_lose_no_digit_that_matters(rank: int) -> None:
    places, pool = 10_000_000, 100
    ways = Fraction(math.comb(places - 1, pool - 1))
    hits = sum(math.comb(rank - 1, x) * math.comb(places - rank, pool - 1 - x) for x in range(10))
    assert one("HR@10", rank, pool=pool, places=places) == pytest.approx(
        float(hits / ways), rel=1e-6, abs=1e-300
    )
    all_out = Fraction(math.comb(places - rank, pool), math.comb(places, pool))
    exact = float((1 - all_out) * places / (rank * pool))
    assert one("MRR", rank, pool=pool, places=places) == pytest.approx(exact, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 400), st.data())
def test_a_larger_pool_is_never_easier_and_a_better_rank_never_worse(
    places: int, data: st.DataObject
) -> None:
    ranks = np.arange(2, 2 * places + 1) / 2
    small, large = sorted(data.draw(st.lists(st.integers(1, places), min_size=2, max_size=2)))
    for metric in ("HR@5", "MRR"):
        in_small = in_pool(metric, ranks, pool=small, places=places)
        in_large = in_pool(metric, ranks, pool=large, places=places)
        assert (in_small >= in_large - 1e-9).all()
        assert (np.diff(in_small) <= 1e-9).all()


def contender(name: str, *ranks: float, places: int = 1000, seed: int = 0) -> Contender:
    return Contender(name, (result_of(ranks, method=name, places=places, seed=seed),))


def test_a_pair_whose_order_flips_is_named_the_truly_better_first() -> None:
    # Steady is never far off; bold is right or lost. In a pool of 100 nearness is enough.
    steady, bold = contender("steady", 15, 15, 15), contender("bold", 1, 900, 900)
    weak = contender("weak", 990, 990, 990)
    curve = pool_curve([steady, bold, weak], "HR@10")
    assert curve.pools == [100, 200, 500, 1000]
    assert curve.values["steady"][0] > curve.values["bold"][0]
    assert curve.values["steady"][-1] == 0
    assert curve.values["bold"][-1] == pytest.approx(1 / 3)
    assert curve.flips == [("bold", "steady")]
    assert pool_curve([bold, steady], "HR@10").flips == [("bold", "steady")]


def test_equal_contenders_do_not_flip() -> None:
    assert pool_curve([contender("one", 5), contender("twin", 5)], "MRR").flips == []


def test_seeds_of_a_contender_are_averaged() -> None:
    seeds = tuple(result_of([rank], seed=rank) for rank in (1, 4))
    curve = pool_curve([Contender("m", seeds)], "MRR", pools=[])
    assert curve.values == {"m": [pytest.approx((1 + 1 / 4) / 2)]}


def test_what_makes_no_sense_is_refused() -> None:
    ranks = np.array([3.0])
    for pool in (0, 11):
        with pytest.raises(BadInput, match=f"a pool of {pool} is impossible: it holds 1 to all 10"):
            in_pool("MRR", ranks, pool=pool, places=10)
    with refused(BadInput):
        in_pool("MRR", ranks, pool=2, places=2)
    with refused(BadInput):
        in_pool("NDCG@10", ranks, pool=5, places=10)
