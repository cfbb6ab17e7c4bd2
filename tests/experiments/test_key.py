"""The key of an experiment: what makes two of them the same."""

from dataclasses import replace

import pytest

from castpoi.experiments import key as module
from castpoi.experiments.experiment import CityFolder, Experiment
from castpoi.experiments.key import key_of, keys_of
from castpoi.methods.outline import Row
from castpoi.methods.registry import Method

ROW = Row(name="mine", label="Mine", method="castpoi", role="ours", preset="fast",
          settings={"width": "64", "heads": "2"})  # fmt: skip


def experiment(village: CityFolder) -> Experiment:
    return Experiment(city=village, row=ROW, seed=42)


def test_city_method_preset_settings_and_seed_change_the_key(village: CityFolder) -> None:
    one = experiment(village)
    others = [
        replace(one, seed=43),
        replace(one, city=replace(village, fingerprint="another")),
        replace(one, row=replace(ROW, method="sasrec")),
        replace(one, row=replace(ROW, preset="paper")),
        replace(one, row=replace(ROW, settings={"width": "32", "heads": "2"})),
        replace(one, row=replace(ROW, settings={"width": "64"})),
    ]
    keys = [key_of(each) for each in (one, *others)]
    assert all(keys.count(key) == 1 for key in keys)
    changed = [key.changes_since(keys[0].to_dict()) for key in keys]
    assert changed[:3] == [[], ["seed"], ["fingerprint"]]


def test_the_code_changes_the_key(village: CityFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(experiment(village))
    monkeypatch.setattr(module, "code_version", lambda method: "another")
    after = key_of(experiment(village))
    assert after.changes_since(before.to_dict()) == ["code"]


def test_the_code_of_a_method_is_read_once_for_many_experiments(
    village: CityFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def watched(method: Method) -> str:
        read.append(method.name)
        return "code"

    monkeypatch.setattr(module, "code_version", watched)
    sasrec = replace(ROW, method="sasrec", settings={})
    many = [
        Experiment(city=village, row=row, seed=seed) for row in (ROW, sasrec) for seed in (1, 2)
    ]
    keys = keys_of(many)
    assert [(key.method, key.seed) for key in keys] == [
        ("castpoi", 1), ("castpoi", 2), ("sasrec", 1), ("sasrec", 2),
    ]  # fmt: skip
    assert sorted(read) == ["castpoi", "sasrec"]


def test_names_labels_and_the_order_of_settings_do_not(village: CityFolder) -> None:
    one = experiment(village)
    other = replace(
        ROW, name="other", label="Other", role="ablation", settings={"heads": "2", "width": "64"}
    )
    assert key_of(replace(one, row=other)) == key_of(one)


def test_what_defines_a_method_is_part_of_its_settings(village: CityFolder) -> None:
    row = replace(ROW, method="target-attention", settings={})
    assert key_of(replace(experiment(village), row=row)).settings["revisit_gate"] == "false"
