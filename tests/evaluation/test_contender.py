from dataclasses import replace

import numpy as np
import pytest

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.evaluation.contender import Contender, ranks_side_by_side, with_equal_seeds
from tests.evaluation.results import contenders_of, result_of
from tests.messages import refused


def test_ranks_are_joined_by_checkin_not_by_position() -> None:
    near = result_of([5, 3, 1], method="near")
    shuffled = result_of([1, 5, 3], method="far", checkin=[2, 0, 1])
    ranks = ranks_side_by_side(contenders_of([near, shuffled]))
    np.testing.assert_array_equal(ranks["near"], [[5, 3, 1]])
    np.testing.assert_array_equal(ranks["far"], [[5, 3, 1]])


def test_every_contender_keeps_its_own_seeds() -> None:
    results = [result_of([s], method=m, seed=s) for m, s in (("a", 1), ("b", 2), ("a", 3))]
    ranks = ranks_side_by_side(contenders_of(results))
    assert {name: own.tolist() for name, own in ranks.items()} == {"a": [[1], [3]], "b": [[2]]}


def test_two_contenders_get_equally_many_seeds_the_shared_ones_first() -> None:
    def seeds(*pairs: tuple[str, int]) -> list[tuple[int, ...]]:
        one, other = contenders_of([result_of([1], method=m, seed=s) for m, s in pairs])
        return [each.seeds for each in with_equal_seeds(one, other)]

    assert seeds(("a", 44), ("a", 42), ("a", 43), ("b", 43)) == [(43,), (43,)]
    assert seeds(("a", 42), ("a", 43), ("a", 44), ("b", 44), ("b", 50)) == [(42, 44), (44, 50)]
    assert seeds(("a", 43), ("a", 42), ("b", 50)) == [(42,), (50,)]
    assert seeds(("a", 42), ("b", 50)) == [(42,), (50,)]


def test_who_only_counts_has_no_seeds_to_be_equalled() -> None:
    names = (("a", 1), ("a", 2), ("b", 0))
    one, other = contenders_of([result_of([1], method=m, seed=s) for m, s in names])
    counted = replace(other, is_counted=True)
    assert with_equal_seeds(one, counted) == (one, counted)
    assert counted.seeds == ()


def test_a_target_that_one_of_them_lacks_is_an_error() -> None:
    near = result_of([5, 3, 1], method="near")
    words = r"near-0 and far-0 rank different targets \(3 and 3, 2 in common\)"
    far = result_of([5, 3, 1], method="far", checkin=[0, 1, 7])
    with pytest.raises(BrokenFolder, match=words):
        ranks_side_by_side(contenders_of([near, far]))


def test_a_copy_does_not_pass_for_a_second_seed() -> None:
    near = result_of([1], method="near", seed=4)
    words = "near has two results with seed 4, and a copy is no second seed; leave one out"
    with pytest.raises(BadInput, match=words):
        Contender("near", (near, replace(near, name="copy")))


def test_nobody_and_namesakes_are_refused() -> None:
    near = result_of([1], method="near")
    with refused(BadInput):
        Contender("near", ())
    with refused(BadInput):
        ranks_side_by_side([])
    with refused(BadInput):
        ranks_side_by_side([Contender("x", (near,)), Contender("x", (near,))])
