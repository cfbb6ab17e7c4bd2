from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import find_folders
from castpoi.evaluation.compare import (
    Contender,
    compare,
    ranks_side_by_side,
    with_equal_seeds,
)
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import Result
from tests.contract import odd_city
from tests.evaluation.rankers import fixed
from tests.evaluation.results import contenders_of, result_of
from tests.messages import refused


def result(method: str, *scores: float, seed: int = 0, part: str = "test") -> Result:
    found = evaluate(fixed(*scores), odd_city(), method=method, seed=seed, part=part)
    return replace(found, name=f"{method}-{seed}")


NEAR_FIRST = (5, 4, 3, 2, 1)  # ranks of the test targets: 2, 4, 4, 1
FAR_FIRST = (1, 2, 3, 4, 5)  # 4, 2, 2, 5
BOTH = (NEAR_FIRST, FAR_FIRST)


def test_the_best_method_by_the_chosen_metric_is_first() -> None:
    results = [result("far", *FAR_FIRST), result("near", *NEAR_FIRST)]
    by_mrr = compare(results)
    assert [row.method for row in by_mrr.rows] == ["near", "far"]
    assert by_mrr.rows[0].metrics["MRR"].mean == pytest.approx((1 / 2 + 1 / 4 + 1 / 4 + 1) / 4)
    middle = result("middle", 1, 9, 1, 9, 1)  # ranks 1.5, 1.5, 1.5, 4: often right, never first
    by_hits = compare([middle, *results], sort_by="HR@1")
    assert [row.method for row in by_hits.rows] == ["near", "far", "middle"]
    assert compare([*results, middle]).rows[0].method == "middle"
    assert by_mrr.n == 4
    assert by_mrr.strata_n == {"revisit": 2, "new": 2}


def test_results_of_two_splits_are_refused() -> None:
    near = result("near", *NEAR_FIRST)
    other = replace(near, manifest={**near.manifest, "fingerprint": "f" * 64}, name="elsewhere")
    f"near-0 and elsewhere are of different splits .*{near.fingerprint[:12]} and ffff"
    with refused(BrokenFolder):
        compare([near, other])


def test_results_of_two_parts_are_refused() -> None:
    with refused(BrokenFolder):
        compare([result("near", *NEAR_FIRST), result("far", *FAR_FIRST, part="validation")])


def test_results_of_different_targets_are_refused() -> None:
    near = result("near", *NEAR_FIRST)
    fewer = replace(near, ranks=near.ranks.head(3), name="fewer")
    with refused(BrokenFolder):
        compare([near, fewer])


def test_results_that_do_not_agree_about_revisits_are_refused() -> None:
    near = result("near", *NEAR_FIRST)
    turned = replace(near, ranks=near.ranks.with_columns(~pl.col("is_revisit")), name="turned")
    with refused(BrokenFolder):
        compare([near, turned])


def test_a_copy_does_not_pass_for_a_second_seed() -> None:
    near = result("near", *NEAR_FIRST)
    with refused(BadInput):
        compare([near, replace(near, name="copy")])


def test_an_unknown_metric_and_no_result_are_refused() -> None:
    with refused(BadInput):
        compare([result("near", *NEAR_FIRST)], sort_by="HR@7")
    with refused(BadInput):
        compare([])


def test_a_folder_of_results_means_the_results_in_it(tmp_path: Path) -> None:
    for method in ("near", "far"):
        result(method, *NEAR_FIRST).save(tmp_path / method)
    (tmp_path / "something else").mkdir()
    expected = [tmp_path / "far", tmp_path / "near"]
    assert find_folders([tmp_path], "result") == expected
    assert find_folders([tmp_path, tmp_path / "near"], "result") == expected  # each once
    assert find_folders([tmp_path / "absent"], "result") == [tmp_path / "absent"]


def test_a_result_has_whether_its_method_received_the_times_of_the_targets() -> None:
    near = result("near", *NEAR_FIRST)
    assert near.manifest["known_time"] is False
    assert not near.known_time


def timed(found: Result) -> Result:
    """The same as if the method had received the times of the targets."""
    return replace(found, manifest={**found.manifest, "known_time": True})


@pytest.mark.parametrize("known_first", [True, False])
def test_known_time_is_not_compared_with_other_results(known_first: bool) -> None:
    both = [timed(result("timed", *NEAR_FIRST)), result("untimed", *FAR_FIRST)]
    with refused(BadInput):
        compare(both if known_first else both[::-1])
    with refused(BadInput):
        ranks_side_by_side([Contender(each.method, (each,)) for each in both])


def test_ranks_are_joined_by_checkin_not_by_position() -> None:
    near = result_of([5, 3, 1], method="near")
    shuffled = result_of([1, 5, 3], method="far", checkin=[2, 0, 1])
    ranks = ranks_side_by_side(contenders_of([near, shuffled]))
    np.testing.assert_array_equal(ranks["near"], [[5, 3, 1]])
    np.testing.assert_array_equal(ranks["far"], [[5, 3, 1]])


def test_two_contenders_get_equally_many_seeds_the_shared_ones_first() -> None:
    def seeds(*pairs: tuple[str, int]) -> list[tuple[int, ...]]:
        one, other = contenders_of([result_of([1], method=m, seed=s) for m, s in pairs])
        return [each.seeds for each in with_equal_seeds(one, other)]

    assert seeds(("a", 44), ("a", 42), ("a", 43), ("b", 43)) == [(43,), (43,)]
    assert seeds(("a", 42), ("a", 43), ("a", 44), ("b", 44), ("b", 50)) == [(42, 44), (44, 50)]
    assert seeds(("a", 43), ("a", 42), ("b", 50)) == [(42,), (50,)]
    assert seeds(("a", 42), ("b", 50)) == [(42,), (50,)]


def test_a_counting_method_has_no_seeds_to_match() -> None:
    names = (("a", 1), ("a", 2), ("b", 0))
    one, other = contenders_of([result_of([1], method=m, seed=s) for m, s in names])
    counted = replace(other, is_counted=True)
    assert with_equal_seeds(one, counted) == (one, counted)
    assert counted.seeds == ()


def test_a_target_that_one_of_them_lacks_is_an_error() -> None:
    near = result_of([5, 3, 1], method="near")
    far = result_of([5, 3, 1], method="far", checkin=[0, 1, 7])
    with refused(BrokenFolder):
        ranks_side_by_side(contenders_of([near, far]))


def test_no_contender_and_two_of_one_name_are_refused() -> None:
    near = result_of([1], method="near")
    with refused(BadInput):
        Contender("near", ())
    with refused(BadInput):
        ranks_side_by_side([])
    with refused(BadInput):
        ranks_side_by_side([Contender("x", (near,)), Contender("x", (near,))])
