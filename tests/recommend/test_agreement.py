"""How small a shortlist may be: worked by hand, and against shortlists that are really served."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from castpoi.recommend.agreement import MOST_HISTORIES, agreement_of, needed_sizes
from castpoi.recommend.history import History, history_of
from castpoi.recommend.scores import PlaceScorer
from castpoi.recommend.shortlist import ShortlistScorer
from castpoi.recommend.shortlist_choice import NOT_MEASURED
from tests.contract import odd_city
from tests.serving.small_run import DAY, small_book, small_ranker

PLACES = 5
NEXT: dict[str, Any] = {"distance_gate": True}


def histories() -> list[History]:
    return [history_of(DAY[:count], small_book())[0] for count in (7, 0, 3, 5, 1)]


@dataclass
class Told:
    """A ranker whose exact and cheap scores are told by hand."""

    exact: list[float]
    cheap: list[float]

    @property
    def places(self) -> int:
        return len(self.exact)

    @property
    def scorer(self) -> "Told":
        return self

    def encode(self, _: Any) -> "Told":
        return self

    def score(self, _: Any) -> NDArray[np.float32]:
        return np.array([self.exact], dtype=np.float32)

    def foretold(self, _: Any) -> torch.Tensor:
        return torch.tensor([self.cheap])


def test_the_size_that_finds_a_place_is_its_rank_by_the_cheap_terms() -> None:
    ranker: Any = Told(exact=[9.0, 8.0, 7.0, 6.0, 5.0], cheap=[1.0, 5.0, 2.0, 4.0, 3.0])
    visited = history_of(DAY[:1], small_book())[0]  # the station, place 3
    ((anywhere, new),) = needed_sizes(ranker, [visited], top=3)
    assert anywhere.tolist() == [5, 1, 4]
    assert new.tolist() == [4, 1, 3]


def test_any_places_and_new_ones_are_told_apart() -> None:
    # the reader lifts the last place of all, which the person has visited: new ones need less
    ranker: Any = Told(exact=[1.0, 2.0, 3.0, 9.0, 4.0], cheap=[1.0, 2.0, 3.0, 0.0, 4.0])
    agreement = agreement_of(ranker, histories()[-1:], sizes=[1, 4, 5])
    assert agreement.histories == 1
    assert agreement.anywhere == pytest.approx({1: 1 / 5, 4: 4 / 5})
    assert agreement.new == pytest.approx({1: 1 / 4, 4: 1})


@pytest.mark.parametrize("parts", [{}, NEXT], ids=["paper", "next"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_agreement_is_that_of_a_shortlist_that_serves(size: int, parts: dict[str, Any]) -> None:
    ranker, book = small_ranker(odd_city(), **parts), small_book()
    read = [history for history in histories() if len(history)]
    agreement = agreement_of(ranker, histories(), sizes=[size])
    assert agreement.histories == len(read)
    for is_new, told in ((False, agreement.anywhere), (True, agreement.new)):
        found, wanted = 0, 0
        for history in read:
            allowed = np.ones(PLACES, dtype=np.bool_)
            allowed[history.place] &= not is_new
            exact, short = (
                scorer.score([history], [allowed], [1]).best(0, 10).tolist()
                for scorer in (PlaceScorer(ranker, book), ShortlistScorer(ranker, book, size=size))
            )
            found, wanted = found + len({*exact} & {*short}), wanted + len(exact)
        assert told[size] == pytest.approx(found / wanted)


def test_measuring_ends_in_time_but_tries_at_least_one_history() -> None:
    ranker = small_ranker(odd_city())
    assert agreement_of(ranker, histories(), sizes=[2], most_seconds=0).histories == 1

    def endless() -> Iterator[History]:
        while True:
            yield histories()[-1]

    assert (
        agreement_of(ranker, endless(), sizes=[2], most_seconds=math.inf).histories
        == MOST_HISTORIES
    )


def test_nothing_to_try_tells_nothing() -> None:
    ranker = small_ranker(odd_city())
    assert agreement_of(ranker, [history_of([], small_book())[0]]) == NOT_MEASURED
