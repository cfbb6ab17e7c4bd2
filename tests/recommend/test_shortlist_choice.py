"""Which shortlist a service has, how it finds it, and where it tells."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.scores import PlaceScorer
from castpoi.recommend.shortlist import ShortlistScorer
from castpoi.recommend.shortlist_choice import (
    EXACT,
    Agreement,
    Setting,
    Shortlist,
    chosen,
    decided,
)
from castpoi.serving.measured_shortlist import with_measured_shortlist
from castpoi.serving.store import StoredVisit, VisitStore
from castpoi.serving.tried_histories import histories_to_try, made_up
from tests.messages import refused
from tests.serving.live import MORNING, living, service_of
from tests.serving.small_run import small_book, small_run

NOON_US = 1_333_468_800_000_000


@pytest.mark.parametrize(
    ("setting", "places", "shortlist"),
    [
        ("all", 9, EXACT),
        ("auto", 5, EXACT),
        (256, 5, EXACT),
        ("auto", 6, Shortlist(size=None, size_new=None, why="to measure")),
        (256, 6, Shortlist(size=256, size_new=256, why="given")),
    ],
)
def test_a_setting_is_decided_by_the_size_of_the_vocabulary(
    setting: Setting, places: int, shortlist: Shortlist
) -> None:
    assert decided(setting, places=places, exact_up_to=5) == shortlist


def test_a_shortlist_of_nothing_is_refused() -> None:
    with refused(BadInput):
        decided(0, places=9, exact_up_to=5)


def test_the_smallest_sizes_that_agree_are_chosen_or_all_places() -> None:
    agreement = Agreement(
        anywhere={256: 0.985, 512: 0.99, 1024: 1.0}, new={256: 0.9, 512: 0.98}, histories=10
    )
    found = chosen(agreement, of="stored")
    assert (found.size, found.size_new, found.is_exact) == (512, None, False)
    assert found.to_dict() == {
        "size": 512,
        "size_new": None,
        "why": "measured",
        "agreement": {"256": 0.985, "512": 0.99, "1024": 1.0},
        "agreement_new": {"256": 0.9, "512": 0.98},
        "histories": 10,
        "of": "stored",
    }


def test_few_histories_may_agree_by_luck_so_twice_the_size_is_taken() -> None:
    anywhere = {256: 1.0, 384: 1.0, 512: 1.0}
    agreement = Agreement(anywhere=anywhere, new={256: 0.9, 512: 1.0}, histories=9)
    found = chosen(agreement, of="stored")
    assert (found.size, found.size_new) == (512, None)


def test_where_nothing_was_measured_every_place_is_read_for() -> None:
    assert chosen(Agreement(anywhere={}, new={}, histories=0), of="stored").is_exact


@pytest.fixture
def store(tmp_path: Path) -> VisitStore:
    return VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")


def test_histories_are_those_of_the_store_else_of_the_city_else_made_up(
    recommender: Recommender, store: VisitStore, tmp_path: Path
) -> None:
    book, users = recommender.places, recommender.users
    of, made = histories_to_try(store, None, book, most=3)
    assert (of, len(made)) == ("made-up", 3)
    of, known = histories_to_try(store, users, book, most=3)
    assert of == "city"
    assert 0 < len(known) <= 3
    assert len(histories_to_try(store, users, book, most=50)[1]) == 4
    store.add(
        [
            StoredVisit(user="ann", place="cafe", at_us=NOON_US),
            StoredVisit(user="ann", place="park", at_us=NOON_US + 1),
            StoredVisit(user="bob", place="moon", at_us=NOON_US),  # nowhere that the run knows
        ]
    )
    of, (history,) = histories_to_try(store, users, book, most=3)
    assert of == "stored"
    assert history.place.tolist() == [book.number_of["cafe"], book.number_of["park"]]
    store.close()


def test_a_city_that_is_gone_and_a_store_that_is_broken_leave_made_up_histories(
    tmp_path: Path, store: VisitStore
) -> None:
    run = small_run(tmp_path)
    (tmp_path / "city").rename(tmp_path / "moved")
    recommender = load(run)
    (tmp_path / "visits.sqlite").unlink()
    (tmp_path / "visits.sqlite").mkdir()
    store._engine.dispose()
    of, histories = histories_to_try(store, recommender.users, recommender.places, most=2)
    assert (of, len(histories)) == ("made-up", 2)
    store.close()


def test_made_up_people_come_back_and_one_seed_makes_the_same_ones() -> None:
    book = small_book()
    first, second = (list(made_up(book, 2, np.random.default_rng(4))) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.place, other.place)
        assert (np.diff(one.at_us) > 0).all()
        assert len(set(one.place.tolist())) < len(one)
        assert set(one.offset_minutes.tolist()) <= {-300, -240}


@pytest.fixture(scope="module")
def open_question(run_folder: Path) -> Recommender:
    """A recommender whose shortlist is still to be measured."""
    return load(run_folder, exact_up_to=0, shortlist="auto")


def measure(
    monkeypatch: pytest.MonkeyPatch, recommender: Recommender, store: VisitStore, *sizes: int
) -> Recommender:
    of: Any = "castpoi.recommend.agreement.agreement_of"
    from castpoi.recommend.agreement import agreement_of

    monkeypatch.setattr(of, lambda *words: agreement_of(*words, sizes=sizes))
    return with_measured_shortlist(recommender, store)


def test_a_measured_shortlist_serves_and_is_told_in_the_log(
    monkeypatch: pytest.MonkeyPatch,
    open_question: Recommender,
    store: VisitStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert type(open_question._answerer.scorer) is PlaceScorer
    monkeypatch.setattr("castpoi.recommend.shortlist_choice.LEAST_AGREEMENT", 0.0)
    with caplog.at_level(logging.INFO, logger="castpoi.serving"):
        measured = measure(monkeypatch, open_question, store, 2, 4)
    assert (measured.shortlist.size, measured.shortlist.size_new) == (4, 4)  # four histories only
    assert (measured.shortlist.why, measured.shortlist.of) == ("measured", "city")
    scorer = measured._answerer.scorer
    assert isinstance(scorer, ShortlistScorer)
    assert scorer.size == 4
    (line,) = caplog.messages
    assert line.startswith("shortlist chosen size=4 size_new=4 agreement=2:")
    assert " histories=4 of=city seconds=" in line
    store.close()


def test_where_no_size_agrees_every_place_is_scored_exactly(
    monkeypatch: pytest.MonkeyPatch, open_question: Recommender, store: VisitStore
) -> None:
    measured = measure(monkeypatch, open_question, store, 1)
    assert measured.shortlist.size is None
    assert measured.shortlist.agreement.anywhere[1] < 0.99
    assert type(measured._answerer.scorer) is PlaceScorer
    store.close()


def test_what_is_decided_is_not_measured(recommender: Recommender, store: VisitStore) -> None:
    assert with_measured_shortlist(recommender, store) is recommender
    store.close()


def test_a_model_without_a_reader_needs_no_shortlist(tmp_path: Path) -> None:
    run = small_run(tmp_path, candidate_conditioning=False)
    assert load(run, exact_up_to=0, shortlist="auto").shortlist == EXACT


def test_the_service_measures_when_it_begins_and_its_card_tells(
    run_folder: Path, tmp_path: Path
) -> None:
    from castpoi.serving.served_run import ServedRun

    service = service_of(load(run_folder), tmp_path)
    service.run = ServedRun(lambda: load(run_folder, exact_up_to=0, shortlist="auto"))
    with living(service) as live:
        first = live.ask("GET", "/v1/model").json()["shortlist"]
        answer = live.recommend(history=MORNING)
        live.post(user="ann", place="cafe", at="2012-04-03T08:30:00-04:00")
        again = live.ask("POST", "/v1/model/reload").json()["shortlist"]
    # five places are fewer than the smallest size that is tried
    assert first == {
        **{"size": None, "size_new": None, "why": "measured", "histories": 4, "of": "city"},
        **{"agreement": {}, "agreement_new": {}},
    }
    assert (again["histories"], again["of"]) == (1, "stored")
    assert len(answer["recommendations"]) == 5
