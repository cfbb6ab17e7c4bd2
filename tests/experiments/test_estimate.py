"""How long experiments may take, worked by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.experiments.estimate import Estimate, Estimator, PastRun, remaining
from castpoi.experiments.experiment import CityFolder, Experiment
from castpoi.methods.outline import Row

RESULTS = Path(__file__).parents[2] / "results" / "nyc"
NOT_KNOWN = Estimate(None, "not known")
ROW = Row(name="mine", label="Mine", method="castpoi", role="ours", preset="fast")


def past_run(city: CityFolder, seconds: float, *, threads: int = 2, row: Row = ROW) -> PastRun:
    return PastRun(
        recipe=row.recipe,
        fingerprint=city.fingerprint,
        train_checkins=city.train_checkins,
        threads=threads,
        seconds=seconds,
    )


def test_other_seeds_of_the_row_come_first(village: CityFolder) -> None:
    town = replace(village, fingerprint="town", train_checkins=800)
    wanted = Experiment(city=village, row=ROW, seed=3)
    estimator = Estimator([past_run(town, 9.0), past_run(village, 100.0)], threads=2)
    assert estimator.estimate(wanted) == Estimate(100.0, "measured")
    estimator.learn(past_run(village, 300.0))
    assert estimator.estimate(wanted).seconds == 200.0  # the median of two


def test_half_the_cores_take_twice_the_time(village: CityFolder) -> None:
    estimator = Estimator([past_run(village, 100.0, threads=2)], threads=1)
    assert estimator.estimate(Experiment(city=village, row=ROW, seed=3)).seconds == 200.0


def test_another_city_counts_in_proportion_to_its_checkins(village: CityFolder) -> None:
    town = replace(village, fingerprint="town", train_checkins=10 * village.train_checkins)
    estimator = Estimator([past_run(town, 100.0)], threads=2)
    guess = estimator.estimate(Experiment(city=village, row=ROW, seed=3))
    assert guess == Estimate(10.0, "other cities")


def test_without_measurements_the_rates_of_castpoi_are_used(village: CityFolder) -> None:
    city = replace(village, train_checkins=100_000)
    estimator = Estimator([], threads=2)
    plain = estimator.estimate(Experiment(city=city, row=ROW, seed=3))
    assert plain == Estimate(pytest.approx(560.0), "rates")  # type: ignore[arg-type]
    changed = replace(ROW, settings={"width": "64"})
    rough = estimator.estimate(Experiment(city=city, row=changed, seed=3))
    assert (rough.seconds, rough.source) == (plain.seconds, "rough rates")


def test_the_rates_of_the_baselines_are_those_of_the_committed_results(village: CityFolder) -> None:
    estimator = Estimator([], threads=1)
    for name in ("sasrec", "bert4rec", "caser", "narm", "srgnn", "stamp", "core"):
        row = replace(ROW, name=name, method=name, preset="paper")
        city = replace(village, train_checkins=99_907)
        guess = estimator.estimate(Experiment(city=city, row=row, seed=42))
        measured = [
            json.loads(path.read_text(encoding="utf-8"))["experiment"]["seconds"]
            for path in RESULTS.glob(f"{name}-4?/manifest.json")
            if '"experiment"' in path.read_text(encoding="utf-8")
        ]
        assert guess.source == "rates"
        assert guess.seconds is not None
        assert min(measured) / 3 < guess.seconds < 3 * max(measured)  # machines are busy or not


def test_other_settings_on_the_same_city_are_better_than_rough_rates(village: CityFolder) -> None:
    wide = replace(ROW, settings={"width": "256"})
    narrow = Experiment(city=village, row=replace(ROW, settings={"width": "64"}), seed=3)
    estimator = Estimator([past_run(village, 100.0, row=wide)], threads=2)
    assert estimator.estimate(narrow) == Estimate(100.0, "other settings")
    plain = Experiment(city=village, row=ROW, seed=3)
    assert estimator.estimate(plain).source == "rates"
    town = replace(village, fingerprint="town")
    assert estimator.estimate(replace(narrow, city=town)).source == "rough rates"
    paper = replace(narrow, row=replace(narrow.row, preset="paper"))
    assert estimator.estimate(paper).source == "rough rates"


def test_counting_takes_seconds_and_an_unmeasured_method_is_not_known(village: CityFolder) -> None:
    estimator = Estimator([], threads=2)
    counted = replace(ROW, method="revisit", preset=None)
    assert estimator.estimate(Experiment(city=village, row=counted, seed=0)).seconds == 3.0
    unknown = replace(ROW, method="caser", preset="tuned")
    assert estimator.estimate(Experiment(city=village, row=unknown, seed=0)) == NOT_KNOWN


def test_the_time_left_is_shared_among_jobs_but_never_below_the_longest() -> None:
    ten, hundred = Estimate(10.0, ""), Estimate(100.0, "")
    assert remaining([ten] * 4, [], jobs=2).seconds == 20.0
    assert remaining([ten, ten, hundred], [], jobs=2).seconds == 100.0
    assert remaining([ten], [(hundred, 70.0)], jobs=1).seconds == 40.0
    assert remaining([], [(hundred, 500.0)], jobs=1).seconds == 5.0  # overdue, not done


def test_an_unknown_time_makes_it_at_least() -> None:
    assert remaining([Estimate(90.0, "")], [], jobs=1).words == "about 2 min"
    assert remaining([Estimate(90.0, ""), NOT_KNOWN], [], jobs=1).words == "at least 2 min"
    assert remaining([NOT_KNOWN], [], jobs=1).words == "an unknown time"
