"""The crowd: how many people went to a place, and which places they share."""

import math

import pytest
import torch

from castpoi.model.crowd import Crowd
from tests.model.small import PLACES, Visit, histories


def people(*places: list[int]) -> list[list[Visit]]:
    return [[(place, hour, 0) for hour, place in enumerate(went)] for went in places]


def counted(*places: list[int], likest: int = PLACES) -> Crowd:
    crowd = Crowd(places=PLACES, likest=likest)
    crowd.count(histories(*people(*places)))
    return crowd


def own(*places: int) -> torch.Tensor:
    """The places of one person. [1, P + 1]"""
    mine = torch.zeros(1, PLACES + 1)
    mine[0, [place + 1 for place in places]] = 1.0
    return mine


def test_people_are_counted_once_however_often_they_went() -> None:
    crowd = counted([0, 0, 0, 1], [0, 2])
    assert crowd.breadth()[0, :4].exp().tolist() == pytest.approx([3, 2, 2, 1])


def test_a_place_is_like_the_last_ones_if_the_same_people_went_there() -> None:
    crowd = counted([0, 1], [0, 1], [0, 2], [3])
    alike = crowd.alike(torch.tensor([[1, 4]]))[0]  # last at 0, before at 3
    # of three people at 0, two went to 1 and one to 2
    one, two = 2 / (math.sqrt(2 * 2) + 10), 1 / (math.sqrt(2 * 1) + 10)
    expected = [0.0, math.log1p(10 * one), math.log1p(10 * two), 0.0]
    assert alike[:4].tolist() == pytest.approx(expected)


def test_an_earlier_visit_counts_less() -> None:
    crowd = counted([0, 1], [0, 1])
    now, then = (crowd.alike(torch.tensor([rows]))[0, 1].expm1() for rows in ([1, 4], [4, 1]))
    assert float(then / now) == pytest.approx(0.8)


def test_no_history_no_likeness() -> None:
    assert not counted([0, 1], [0, 1]).alike(torch.tensor([[0, 0]])).any()


def test_whoever_learns_is_taken_out_as_if_never_counted() -> None:
    mine = own(0, 1, 4)
    with_me = counted([0, 1], [0, 1, 2], [0, 2], [0, 1, 4])
    last = torch.tensor([[1]])
    without_me = counted([0, 1], [0, 1, 2], [0, 2])
    torch.testing.assert_close(with_me.breadth(mine), without_me.breadth())
    both, there, here = 2, 2, 3  # of the others; whoever asks is not among the people here
    expected = both / (math.sqrt(here * there) + 10)
    assert float(with_me.alike(last, mine)[0, 1].expm1() / 10) == pytest.approx(expected)
    assert with_me.alike(last, mine)[0, 4] == 0  # where only I went


def test_a_place_that_is_among_the_likest_by_oneself_alone_counts_nothing() -> None:
    others = [[0, 1], [0, 1], [0, 2], [0, 2]]
    crowd = counted(*others, [0, 2], likest=1)
    assert crowd.likest[1].tolist() == [3]  # two others each, and I make the difference
    assert crowd.alike(torch.tensor([[1]]))[0, 2] > 0
    assert not crowd.alike(torch.tensor([[1]]), own(0, 2)).any()
