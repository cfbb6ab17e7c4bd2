"""Trials of settings, with a stand-in for the trainings: what is run, skipped, ranked and told."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, TooFewCheckins, UnknownMethod
from castpoi.core.files import read_json
from castpoi.core.progress import SILENCE
from castpoi.experiments import key, tune_record
from castpoi.experiments.experiment import CityFolder
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.job import commands_of
from castpoi.experiments.plan import plan_of
from castpoi.experiments.runner import Failure, Pace, run_plan
from castpoi.experiments.tune import Tune, tune_of
from castpoi.experiments.tune_record import Setup, TuneRecord, check_setup, read_tune
from castpoi.training.train import checkpoint_dir_of
from tests.cities import CAFE, OFFICE, small_city
from tests.conftest import CommandLine
from tests.contract import odd_city
from tests.messages import refused

pytestmark = pytest.mark.usefixtures("quick")


def dropouts(*values: str) -> list[Mapping[str, str]]:
    return [{"dropout": value} for value in values]


class Bench:
    """Trials in a folder, run as often as a test likes."""

    def __init__(self, village: CityFolder, root: Path) -> None:
        self.setup = Setup(
            city=village,
            method="sasrec",
            preset="tuned",
            settings={"epochs": "3"},
            seed=1,
            metric="MRR",
        )
        self.folder = SuiteFolder(root)
        self.told: list[str] = []

    def tune(self, trials: Sequence[Mapping[str, str]]) -> Tune:
        return Tune(setup=self.setup, trials=trials)

    def run(self, trials: Sequence[Mapping[str, str]], *, any_code: bool = False) -> list[Failure]:
        plan = plan_of(self.tune(trials).experiments, self.folder, any_code=any_code)
        self.told.clear()
        return run_plan(
            plan,
            self.folder,
            record=lambda: TuneRecord(self.folder, self.setup, plan, any_code=any_code),
            pace=Pace(threads=1, any_code=any_code),
            progress=SILENCE,
            say=self.told.append,
            name="trials",
        )

    def trials(self, *parts: str) -> list[Any]:
        trials = read_tune(self.folder)["trials"]
        return [tuple(trial[part] for part in parts) for trial in trials]

    def log(self, trial: str) -> str:
        return (self.folder.root / "logs" / "village" / trial / "1.log").read_text()


@pytest.fixture
def bench(village: CityFolder, tmp_path: Path) -> Bench:
    return Bench(village, tmp_path / "out")


def test_trials_stand_from_best_to_worst_with_all_that_is_known_of_them(bench: Bench) -> None:
    assert bench.run(dropouts("0.5", "0.25", "0.75")) == []
    content = read_tune(bench.folder)
    assert content["best"] == "dropout=0.25"
    assert [trial["name"] for trial in content["trials"]] == [
        "dropout=0.25", "dropout=0.5", "dropout=0.75",
    ]  # fmt: skip
    best = content.pop("trials")[0]
    seconds, code = best.pop("seconds"), best.pop("code")
    assert best == {
        "name": "dropout=0.25",
        "settings": {"dropout": "0.25"},
        "state": "done",
        "why": "",
        "validation": {"MRR": 0.75, "HR@10": 0.75},
        "best_epoch": 2,
        "epochs": 3,
        "commit": "c0",
    }
    assert 1000 < seconds < 2000  # with the epoch before the training was resumed
    assert code == key.key_of(bench.tune(dropouts("0.25")).experiments[0]).code
    assert "the test part was never ranked" in content.pop("rule")
    assert content == {
        "kind": "tune",
        "city": str(bench.setup.city.folder),
        "fingerprint": bench.setup.city.fingerprint,
        "method": "sasrec",
        "preset": "tuned",
        "settings": {"epochs": "3"},
        "seed": 1,
        "metric": "MRR",
        "best": "dropout=0.25",
    }


def test_a_tie_goes_to_what_was_asked_for_first(bench: Bench) -> None:
    bench.run([{"dropout": "0.5", "width": "64"}, {"dropout": "0.5", "width": "32"}])
    assert read_tune(bench.folder)["best"] == "dropout=0.5,width=64"


def test_what_is_there_is_never_trained_again_and_no_weights_stay(bench: Bench) -> None:
    bench.run(dropouts("0.5"))
    bench.run(dropouts("0.5", "0.25"))
    assert bench.told[0] == "village/dropout=0.25/1 has begun"
    assert bench.log("dropout=0.5").count("castpoi train") == 1
    bench.run(dropouts("0.25", "0.5"))
    assert bench.told == []
    assert not any(path.is_file() for path in (bench.folder.root / "runs" / "village").rglob("*"))
    assert bench.trials("name", "state") == [("dropout=0.25", "done"), ("dropout=0.5", "done")]


def test_earlier_trials_stay_in_the_ranking(bench: Bench) -> None:
    bench.run(dropouts("0.25"))
    bench.run(dropouts("0.5"))
    assert bench.trials("name") == [("dropout=0.25",), ("dropout=0.5",)]


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
    assert bench.told[0] == "village/learning_rate=13/1 has begun"
    bench.run(dropouts("0.5"))
    assert bench.trials("state") == [("done",), ("waiting",)]


def test_a_city_prepared_anew_on_the_way_is_told(bench: Bench) -> None:
    bench.setup = replace(bench.setup, city=replace(bench.setup.city, fingerprint="earlier"))
    (failure,) = bench.run(dropouts("0.5"))
    assert "was prepared anew while village/dropout=0.5/1 was under way" in failure.problem


def test_a_disk_that_refuses_is_told_with_the_way_out(bench: Bench) -> None:
    (bench.folder.root / "tune.json").mkdir(parents=True)
    with refused(BadInput):
        bench.run(dropouts("0.5"))


def test_where_all_fail_nothing_is_best(bench: Bench) -> None:
    bench.run([{"crash": "true"}])
    assert read_tune(bench.folder)["best"] is None


def test_trials_of_other_code_count_only_if_asked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(dropouts("0.25", "0.5"))
    monkeypatch.setattr(key, "code_version", lambda method: "later")
    monkeypatch.setattr(tune_record, "code_version", lambda method: "later")
    bench.run(dropouts("0.5"))
    assert bench.log("dropout=0.5").count("castpoi train") == 2
    assert bench.trials("name", "state") == [
        ("dropout=0.5", "done"), ("dropout=0.25", "other code"),
    ]  # fmt: skip
    bench.run(dropouts("0.5"), any_code=True)
    assert bench.trials("name", "state") == [("dropout=0.25", "done"), ("dropout=0.5", "done")]


def test_a_training_that_was_killed_goes_on(bench: Bench) -> None:
    (experiment,) = bench.tune(dropouts("0.5")).experiments
    begun = checkpoint_dir_of(bench.folder.run(experiment))
    bench.folder.begin(experiment, key.key_of(experiment), any_code=False)
    begun.mkdir(parents=True)
    (begun / "manifest.json").write_text(json.dumps({"kind": "training"}))
    (begun / "checkpoint.json").write_text("{}")
    other = replace(experiment, row=replace(experiment.row, settings={"dropout": "0.6"}))
    kept = bench.folder.begin(experiment, key.key_of(experiment), any_code=False)
    assert (begun / "checkpoint.json").exists()
    assert kept["settings"] == {"epochs": "3", "dropout": "0.5"}
    bench.folder.begin(experiment, key.key_of(other), any_code=False)
    assert not begun.exists()  # it is of another training


def test_a_command_killed_after_a_training_only_notes_it(bench: Bench) -> None:
    bench.run(dropouts("0.5"))
    (experiment,) = bench.tune(dropouts("0.5")).experiments
    bench.folder.begin(experiment, key.key_of(experiment), any_code=False)
    papers = bench.folder.papers(experiment)
    run = bench.folder.run(experiment)
    papers.rename(run)  # whole, and its proof is not written
    (run / "model.safetensors").write_bytes(b"weights")
    (bench.folder.result(experiment) / "experiment.json").unlink()
    assert bench.run(dropouts("0.5")) == []
    assert bench.log("dropout=0.5").count("castpoi train") == 1
    assert bench.trials("name", "state") == [("dropout=0.5", "done")]
    assert 5000 < bench.trials("seconds")[0][0] < 6000  # with all that the run took


@pytest.mark.parametrize("file", ["manifest.json", "config.json"])
def test_a_trial_whose_papers_are_torn_is_trained_again(bench: Bench, file: str) -> None:
    bench.run(dropouts("0.5", "0.25"))
    (experiment,) = bench.tune(dropouts("0.5")).experiments
    (bench.folder.papers(experiment) / file).write_text("{ torn")
    (planned,) = plan_of([experiment], bench.folder)
    assert planned.why == "damaged"
    assert bench.run(dropouts("0.25", "0.5")) == []
    assert bench.told[0] == "village/dropout=0.5/1 has begun"
    assert bench.trials("state") == [("done",), ("done",)]


@pytest.mark.parametrize(
    "damaged", [{"name": "dropout=0.9"}, {"name": "dropout=0.9", "state": "done"}, "dropout=0.9"]
)
def test_what_is_damaged_in_a_record_is_left_out_of_the_next(bench: Bench, damaged: object) -> None:
    bench.run(dropouts("0.5"))
    content = read_tune(bench.folder)
    content["trials"].append(damaged)
    (bench.folder.root / "tune.json").write_text(json.dumps(content))
    assert bench.run(dropouts("0.5")) == []
    assert bench.trials("name") == [("dropout=0.5",)]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"method": "narm"}, "out holds trials with method sasrec, not narm; choose another --out"),
        ({"preset": "paper"}, "with preset tuned, not paper"),
        ({"settings": {}}, "with settings epochs=3, not unchanged"),
        ({"settings": {"width": "8", "epochs": "3"}}, "settings epochs=3, not epochs=3 width=8"),
        ({"seed": 2}, "with seed 1, not 2"),
        ({"metric": "HR@10"}, "with metric MRR, not HR@10"),
    ],
)
def test_a_folder_holds_trials_that_differ_in_nothing_else(
    bench: Bench, change: dict[str, Any], sentence: str
) -> None:
    check_setup(bench.folder, bench.setup)  # nothing is there yet
    bench.run(dropouts("0.5"))
    check_setup(bench.folder, bench.setup)
    with pytest.raises(BadInput, match=sentence):
        check_setup(bench.folder, replace(bench.setup, **change))


def test_a_city_of_another_fingerprint_is_refused(bench: Bench) -> None:
    bench.run(dropouts("0.5"))
    town = replace(bench.setup.city, folder=Path("town"), fingerprint="0123456789abcdef0123456")
    with refused(BadInput):
        check_setup(bench.folder, replace(bench.setup, city=town))


def asked(village: CityFolder, **changes: Any) -> Tune:
    wanted: dict[str, Any] = {
        "method": "sasrec",
        "preset": "tuned",
        "settings": {"epochs": "3"},
        "tried": {"dropout": ["0.2", "0.5"]},
        "seed": 1,
    }
    return tune_of(village, **(wanted | changes))


def test_a_tune_knows_its_metric_preset_and_trials(village: CityFolder) -> None:
    tune = asked(village)
    assert (tune.setup.metric, tune.setup.preset) == ("MRR", "tuned")
    assert [each.row.recipe for each in tune.experiments] == [
        ("sasrec", "tuned", {"epochs": "3", "dropout": "0.2"}),
        ("sasrec", "tuned", {"epochs": "3", "dropout": "0.5"}),
    ]
    assert asked(village, preset=None).setup.preset == "paper"
    by_hits = asked(village, settings={"select_by": "HR@10"})
    assert by_hits.setup.metric == "HR@10"
    assert len(asked(village, at_most=1).trials) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tried": {"drpout": ["1"]}}, "there is no setting 'drpout'; did you mean 'dropout'?"),
        ({"tried": {"dropout": ["0.2", "x"]}}, "dropout='x' is not valid; it must be a number"),
        ({"tried": {"dropout": ["2"]}}, "dropout='2' is not valid; it must be"),
        ({"settings": {"width": "x"}}, "width='x' is not valid; it must be a whole number"),
        ({"tried": {"heads": ["4", "3"]}}, "heads=3 must divide width=128"),
        ({"preset": "fast"}, "sasrec has no preset 'fast'; choose paper or tuned"),
        ({"settings": {"dropout": "0.1"}}, "dropout is both set and tried; leave out one"),
        ({"tried": {"select_by": ["MRR"]}}, "select_by is what trials are judged by, so it cannot"),
        (
            {"method": "revisit", "preset": None},
            "revisit is counted, not learned, so it has no settings to try; choose one of castpoi-",
        ),
        (
            {
                "method": "target-attention",
                "preset": "fast",
                "tried": {"revisit_gate": ["true", "false"]},
            },
            "target-attention is defined by revisit_gate=false, which cannot be changed; leave out",
        ),
    ],
)
def test_what_cannot_be_tried_is_told_before_anything_is_trained(
    village: CityFolder, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence.replace("?", r"\?")):
        asked(village, **changes)


def test_an_unknown_method_is_told(village: CityFolder) -> None:
    with refused(UnknownMethod):
        asked(village, method="sasrek")


def test_a_city_without_validation_judges_nothing(tmp_path: Path) -> None:
    visits = [(0, CAFE, "2012-04-02 12:00"), (0, OFFICE, "2012-04-02 13:00")]
    city = small_city(visits, [record.TRAIN, record.TRAIN])
    replace(city, manifest={**city.manifest, "train": 2}).save(tmp_path / "hamlet")
    with refused(TooFewCheckins):
        asked(CityFolder.at(tmp_path / "hamlet"))


def trained(castpoi: CommandLine, city: City, folder: Path) -> dict[str, Any]:
    """What the only command of a trial tells, trained for real in this process."""
    replace(city, manifest={**city.manifest, "train": 8}).save(folder / "village")
    tiny = {"epochs": "2", "width": "8", "heads": "2", "feed_forward_width": "8", "threads": "1"}
    tune = asked(CityFolder.at(folder / "village"), settings=tiny, tried={"dropout": ["0.2"]})
    (experiment,) = tune.experiments
    (command,) = commands_of(experiment, SuiteFolder(folder / "out"))
    assert castpoi(*command).code == 0
    training: dict[str, Any] = read_json(
        SuiteFolder(folder / "out").run(experiment) / "config.json"
    )["training"]
    return {name: training[name] for name in ("validation", "best_epoch", "epochs")}


def test_a_trial_never_looks_at_the_test_part(
    castpoi: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    targets = City.targets

    def watched(city: City, part: str) -> Any:
        looked_at.append(part)
        return targets(city, part)

    monkeypatch.setattr(City, "targets", watched)
    once = trained(castpoi, odd_city(), tmp_path / "once")
    moved = trained(castpoi, odd_city(test_place=CAFE), tmp_path / "moved")
    assert set(looked_at) == {record.VALIDATION}
    assert once == moved  # wherever people went in the test part
    assert once["validation"]["MRR"] > 0


def test_the_commands_of_a_trial_end_with_its_training(bench: Bench) -> None:
    (experiment,) = bench.tune(dropouts("0.5")).experiments
    ((verb, *words),) = commands_of(experiment, bench.folder)
    assert verb == "train"
    assert words[-2:] == ["--part", "validation"]
    bench.run(dropouts("0.5"))
    assert "castpoi evaluate" not in bench.log("dropout=0.5")
