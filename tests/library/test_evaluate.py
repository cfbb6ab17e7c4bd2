"""Models of one's own, evaluated like ours."""

import numpy as np
import pytest
from numpy.typing import NDArray

from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput, BadScores
from castpoi.library.evaluate import History, city_before, evaluate
from tests.cities import THEIR_PARTS, TWO_PEOPLE, small_city


@pytest.fixture
def city() -> City:
    return small_city(TWO_PEOPLE, THEIR_PARTS)


class Counts:
    """Scores places by the visits of everybody, and sees what it was fitted on."""

    def fit(self, city: City) -> None:
        self.checkins = city.checkins.height
        self.popularity = np.bincount(city.train.place, minlength=city.places.height)

    def score(self, histories: Histories) -> NDArray[np.int64]:
        return np.tile(self.popularity, (len(histories), 1))


def test_a_class_with_fit_and_score_is_evaluated(city: City) -> None:
    result = evaluate(Counts(), city)
    assert result.method == "Counts"
    assert result.ranks["rank"].to_list() == [4.5, 2.0]  # theatre, park: tied


def test_a_model_is_fitted_without_the_targets(city: City) -> None:
    model = Counts()
    evaluate(model, city)
    tested = model.checkins
    evaluate(model, city, split="validation")
    assert (tested, model.checkins) == (4, 3)


def test_a_function_receives_local_times_and_the_user(city: City) -> None:
    seen = []

    def spy(history: History) -> NDArray[np.float64]:
        seen.append((history.user, history.hour.tolist(), history.weekday.tolist()))
        return np.zeros(5)

    evaluate(spy, city)
    assert seen[1] == (1, [22.0], [0])  # Tuesday 02:00 UTC is Monday evening in New York


def test_the_city_before_a_split_keeps_the_numbers_of_places_and_users(city: City) -> None:
    before = city_before(city, "test")
    assert before.checkins["checkin"].to_list() == [0, 1, 2, 3]
    assert before.places.equals(city.places)
    assert before.split["part"].to_list() == ["train", "train", "validation", "train"]


def test_a_class_is_not_a_model(city: City) -> None:
    with pytest.raises(BadInput, match="give an object of it"):
        evaluate(Counts, city)


def test_what_cannot_score_is_not_a_model(city: City) -> None:
    with pytest.raises(BadInput, match="is not a model"):
        evaluate(7, city)


def test_scores_that_are_not_numbers_are_refused(city: City) -> None:
    with pytest.raises(BadScores, match=r"return one of shape \(2, 5\)"):
        evaluate(lambda _: ["a"], city, name="text")


def test_scores_for_some_places_only_are_refused(city: City) -> None:
    with pytest.raises(BadScores, match="fix its `score`"):
        evaluate(lambda _: np.zeros(3), city, name="short")


def test_a_method_that_needs_training_is_named_with_the_call_that_trains_it(city: City) -> None:
    with pytest.raises(BadInput, match=r"castpoi\.train\(city, model='sasrec'\)"):
        evaluate("sasrec", city)


def test_a_counting_method_is_evaluated_by_its_name(city: City) -> None:
    assert evaluate("popularity", city).method == "popularity"
