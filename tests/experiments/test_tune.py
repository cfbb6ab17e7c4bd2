"""Trials of settings, with a stand-in for the worker: what is run, skipped and ranked."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, TooFewCheckins
from castpoi.core.files import read_json
from castpoi.core.progress import SILENCE
from castpoi.experiments.experiment import CityFolder
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.runner import Failure, Pace, run_plan, spec_of
from castpoi.experiments.tune import TuneStatus, Tuning, name_of, trials_of, tuning_of
from castpoi.experiments.worker import make
from castpoi.methods.registry import METHODS
from tests.cities import CAFE, OFFICE, small_city
from tests.contract import odd_city
from tests.messages import refused

pytestmark = pytest.mark.usefixtures("quick")

VALUES = {"dropout": ["0.2", "0.5"], "width": ["64", "128", "256"]}


def dropouts(*values: str) -> list[Mapping[str, str]]:
    return [{"dropout": value} for value in values]


class Bench:
    """Trials in a folder, run as often as a test likes."""

    def __init__(self, village: CityFolder, root: Path) -> None:
        self.tuning = Tuning(
            city=village,
            method="sasrec",
            preset="tuned",
            settings={"epochs": "3"},
            seed=1,
            metric="MRR",
            trials=(),
        )
        self.folder = SuiteFolder(root)
        self.reported: list[str] = []

    def status(
        self, trials: Sequence[Mapping[str, str]] = (), *, any_code: bool = False
    ) -> TuneStatus:
        return TuneStatus(self.folder, replace(self.tuning, trials=trials), any_code=any_code)

    def run(self, trials: Sequence[Mapping[str, str]], *, any_code: bool = False) -> list[Failure]:
        status = self.status(trials, any_code=any_code)
        self.reported.clear()
        return run_plan(
            status.plan,
            self.folder,
            status=status.save,
            past_runs=status.past_runs(),
            pace=Pace(threads=1, any_code=any_code),
            progress=SILENCE,
            report=self.reported.append,
            name="trials",
        )

    @property
    def content(self) -> dict[str, Any]:
        return read_json(self.folder.root / "tune.json")

    def trials(self, *parts: str) -> list[Any]:
        return [tuple(trial[part] for part in parts) for trial in self.content["trials"]]

    def log(self, trial: str) -> str:
        return (self.folder.root / "logs" / "village" / trial / "1.log").read_text()


@pytest.fixture
def bench(village: CityFolder, tmp_path: Path) -> Bench:
    return Bench(village, tmp_path / "out")


def test_trials_are_ranked_from_best_to_worst_with_their_outcome(bench: Bench) -> None:
    assert bench.run(dropouts("0.5", "0.25", "0.75")) == []
    content = bench.content
    assert content["best"] == "dropout=0.25"
    best, *others = content.pop("trials")
    assert [trial["name"] for trial in others] == ["dropout=0.5", "dropout=0.75"]
    assert best == {
        "name": "dropout=0.25",
        "settings": {"dropout": "0.25"},
        "state": "done",
        "why": "",
        "validation": {"MRR": 0.75, "HR@10": 0.75},
        "best_epoch": 2,
        "epochs": 3,
        "seconds": 1000,
        "threads": 1,
        "commit": "c0",
        "code": METHODS.named("sasrec").version,
    }
    assert "the test part was never ranked" in content.pop("rule")
    assert content == {
        "kind": "tune",
        "city": str(bench.tuning.city.folder),
        "fingerprint": bench.tuning.city.fingerprint,
        "method": "sasrec",
        "preset": "tuned",
        "settings": {"epochs": "3"},
        "seed": 1,
        "metric": "MRR",
        "best": "dropout=0.25",
    }


def test_a_trial_that_is_done_is_never_trained_again_and_leaves_no_weights(bench: Bench) -> None:
    bench.run(dropouts("0.5"))
    bench.run(dropouts("0.5", "0.25"))
    assert bench.reported[0] == "village/dropout=0.25/1 has started"
    assert bench.log("dropout=0.5").count("trained") == 1
    bench.run(dropouts("0.25", "0.5"))
    assert bench.reported == []
    assert not any(path.is_file() for path in (bench.folder.root / "runs" / "village").rglob("*"))
    assert bench.trials("name", "state") == [("dropout=0.25", "done"), ("dropout=0.5", "done")]


def test_a_failing_trial_does_not_stop_the_others_and_is_tried_again(bench: Bench) -> None:
    trials = [{"learning_rate": "13"}, *dropouts("0.5")]
    (failure,) = bench.run(trials)
    assert failure.experiment.name == "village/learning_rate=13/1"
    assert failure.problem == "the loss of epoch 1 is no number"
    assert bench.trials("name", "state", "why", "validation") == [
        ("dropout=0.5", "done", "", {"MRR": 0.5, "HR@10": 0.5}),
        ("learning_rate=13", "failed", "the loss of epoch 1 is no number", None),
    ]
    bench.run(trials)
    assert bench.reported[0] == "village/learning_rate=13/1 has started"
    bench.run(dropouts("0.5"))
    assert bench.trials("state") == [("done",), ("waiting",)]


def test_trials_of_other_code_count_only_on_request(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(dropouts("0.25", "0.5"))
    changed = replace(METHODS.named("sasrec"), version=99)
    monkeypatch.setitem(METHODS._by_name, "sasrec", changed)
    bench.run(dropouts("0.5"))
    assert bench.log("dropout=0.5").count("trained") == 2
    assert bench.trials("name", "state") == [
        ("dropout=0.5", "done"), ("dropout=0.25", "other code"),
    ]  # fmt: skip
    bench.run(dropouts("0.5"), any_code=True)
    assert bench.trials("name", "state") == [("dropout=0.25", "done"), ("dropout=0.5", "done")]


@pytest.mark.parametrize(
    "damaged", [{"name": "dropout=0.9"}, {"name": "dropout=0.9", "state": "done"}, "dropout=0.9"]
)
def test_damaged_entries_are_left_out_of_the_next_file(bench: Bench, damaged: object) -> None:
    bench.run(dropouts("0.5"))
    content = bench.content
    content["trials"].append(damaged)
    (bench.folder.root / "tune.json").write_text(json.dumps(content))
    assert bench.run(dropouts("0.5")) == []
    assert bench.trials("name") == [("dropout=0.5",)]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"method": "narm"}, "out holds trials with method sasrec, not narm; choose another --out"),
        ({"settings": {}}, "with settings epochs=3, not unchanged"),
        ({"settings": {"width": "8", "epochs": "3"}}, "settings epochs=3, not epochs=3 width=8"),
        ({"seed": 2}, "with seed 1, not 2"),
        ({"metric": "HR@10"}, "with metric MRR, not HR@10"),
    ],
)
def test_the_trials_of_a_folder_differ_in_nothing_else(
    bench: Bench, change: dict[str, Any], sentence: str
) -> None:
    bench.run(dropouts("0.5"))
    bench.tuning = replace(bench.tuning, **change)
    with pytest.raises(BadInput, match=sentence):
        bench.status()


def test_a_city_of_another_fingerprint_is_refused(bench: Bench) -> None:
    bench.run(dropouts("0.5"))
    town = replace(bench.tuning.city, folder=Path("town"), fingerprint="0123456789abcdef0123456")
    bench.tuning = replace(bench.tuning, city=town)
    with refused(BadInput):
        bench.status()


def test_a_committed_tune_json_can_be_read(bench: Bench) -> None:
    path = Path(__file__).parents[2] / "results" / "tune" / "nyc" / "sasrec" / "tune.json"
    content = read_json(path)
    bench.folder.root.mkdir()
    (bench.folder.root / "tune.json").write_text(json.dumps(content))
    about = {name: content[name] for name in ("method", "preset", "settings", "seed", "metric")}
    city = replace(bench.tuning.city, fingerprint=content["fingerprint"])
    bench.tuning = replace(bench.tuning, city=city, **about)
    found = bench.status(any_code=True).content
    assert found["best"] == content["best"]
    assert [each["name"] for each in found["trials"]] == [
        each["name"] for each in content["trials"]
    ]


def asked(village: CityFolder, **changes: Any) -> Tuning:
    wanted: dict[str, Any] = {
        "method": "sasrec",
        "preset": "tuned",
        "settings": {"epochs": "3"},
        "tries": ["dropout=0.2, 0.5"],
        "seed": 1,
    }
    return tuning_of(village, **(wanted | changes))


def test_a_tuning_has_a_metric_a_preset_and_trials(village: CityFolder) -> None:
    tuning = asked(village)
    assert (tuning.metric, tuning.preset) == ("MRR", "tuned")
    assert [tuning.experiment(trial).row.recipe for trial in tuning.trials] == [
        ("sasrec", "tuned", {"epochs": "3", "dropout": "0.2"}),
        ("sasrec", "tuned", {"epochs": "3", "dropout": "0.5"}),
    ]
    assert asked(village, preset=None).preset == "paper"
    assert asked(village, settings={"select_by": "HR@10"}).metric == "HR@10"
    assert len(asked(village, at_most=1).trials) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tries": ["drpout=1"]}, "there is no setting 'drpout'; did you mean 'dropout'?"),
        ({"tries": ["dropout=0.2,x"]}, "dropout='x' is not valid; it must be a number"),
        ({"settings": {"width": "x"}}, "width='x' is not valid; it must be a whole number"),
        ({"tries": ["heads=4,3"]}, "heads=3 must divide width=128"),
        ({"preset": "fast"}, "sasrec has no preset 'fast'; choose paper or tuned"),
        ({"settings": {"dropout": "0.1"}}, "dropout is both set and tried; leave out one"),
        ({"tries": ["select_by=MRR"]}, "select_by is the metric that trials are compared by, so"),
        (
            {"method": "revisit", "preset": None},
            "revisit is counted, not learned, so it has no settings to try; choose one of castpoi-",
        ),
        (
            {"method": "target-attention", "preset": "fast", "tries": ["revisit_gate=true,false"]},
            "target-attention is defined by revisit_gate=false, which cannot be changed; leave out",
        ),
        ({"tries": ["dropout"]}, "setting 'dropout' is not of the form name=value"),
        ({"tries": ["dropout="]}, "'dropout=' lacks a value; give values .* as dropout=A,B"),
        ({"tries": ["dropout=0.2,,0.5"]}, "'dropout=0.2,,0.5' lacks a value"),
        ({"tries": ["dropout=0.2,0.3,0.2"]}, "'dropout=0.2,0.3,0.2' has 0.2 twice; leave one out"),
        ({"tries": []}, "there is nothing to try; name a setting and values, as dropout=0.2,0.5"),
    ],
)
def test_wrong_trials_are_refused_before_any_training(
    village: CityFolder, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence.replace("?", r"\?")):
        asked(village, **changes)


def test_a_city_without_validation_targets_is_refused(tmp_path: Path) -> None:
    visits = [(0, CAFE, "2012-04-02 12:00"), (0, OFFICE, "2012-04-02 13:00")]
    city = small_city(visits, [record.TRAIN, record.TRAIN])
    replace(city, manifest={**city.manifest, "train": 2}).save(tmp_path / "hamlet")
    with refused(TooFewCheckins):
        asked(CityFolder.at(tmp_path / "hamlet"))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_the_combinations_are_those_of_nested_loops(counts: list[int]) -> None:
    values = {f"s{place}": [str(value) for value in range(n)] for place, n in enumerate(counts)}
    loops = [dict(zip(values, each, strict=True)) for each in product(*values.values())]
    assert trials_of(values) == loops


def test_a_larger_number_of_drawn_trials_only_adds_some() -> None:
    four = trials_of(VALUES, at_most=4, seed=3)
    assert len({name_of(trial) for trial in four}) == 4
    assert all(trial in trials_of(VALUES) for trial in four)
    assert trials_of(VALUES, at_most=4, seed=3) == four
    assert trials_of(VALUES, at_most=5, seed=3)[:4] == four
    assert any(trials_of(VALUES, at_most=4, seed=seed) != four for seed in range(5))
    assert trials_of(VALUES, at_most=6, seed=3) == trials_of(VALUES)
    many = {f"s{place}": [str(value) for value in range(10)] for place in range(30)}
    assert len(trials_of(many, at_most=3)) == 3  # of more than can be listed


def trained(city: City, folder: Path) -> dict[str, Any]:
    """The record of a trial that the worker trains in this process."""
    replace(city, manifest={**city.manifest, "train": 8}).save(folder / "village")
    tiny = {"epochs": "2", "width": "8", "heads": "2", "feed_forward_width": "8", "threads": "1"}
    tuning = asked(CityFolder.at(folder / "village"), settings=tiny, tries=["dropout=0.2"])
    experiment = tuning.experiment(tuning.trials[0])
    spec = spec_of(experiment, SuiteFolder(folder / "out"), Pace(threads=1)) | {"started": 0}
    (command,) = spec["record"]["commands"]
    assert command.startswith("castpoi train")
    assert command.endswith("--holdout validation")
    record = make(spec)
    assert (Path(spec["result"]) / "run" / "log.jsonl").is_file()
    return {name: record[name] for name in ("validation", "best_epoch", "epochs")}


def test_a_trial_never_reads_the_test_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    targets = City.targets

    def watched(city: City, part: str) -> Any:
        read.append(part)
        return targets(city, part)

    monkeypatch.setattr(City, "targets", watched)
    once = trained(odd_city(), tmp_path / "once")
    moved = trained(odd_city(test_place=CAFE), tmp_path / "moved")
    assert set(read) == {record.VALIDATION}
    assert once == moved  # wherever people went in the test split
    assert once["validation"]["MRR"] > 0
