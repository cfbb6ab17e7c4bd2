"""The real check-ins give the counts of the paper and of their own description."""

from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.cleaning import NYC, TKY, Recipe
from castpoi.checkins.prepare import Preparation, make_city
from tests.conftest import CommandLine

pytestmark = pytest.mark.realdata

COUNTS = ("checkins", "users", "places")


def source(shared_data: Path, name: str) -> Path:
    path = shared_data / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"the real check-ins {path} are not there")
    return path


def test_new_york_by_the_recipe_of_the_paper(
    castpoi: CommandLine, shared_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "nyc"
    words = ("data", "prepare", source(shared_data, "nyc"), "--recipe", "nyc", "--out", out)
    result = castpoi(*words, "--json").json
    assert [result[key] for key in COUNTS] == [102_001, 1_047, 4_980]
    assert (result["train"], result["validation"], result["test"]) == (99_907, 1_043, 1_044)
    city = City.load(out)
    revisits = city.trajectories.is_revisit(city.targets("test"), window=REVISIT_WINDOW)
    assert revisits.sum() == 672
    assert result["revisit_share"] == pytest.approx(672 / 1_044, abs=1e-6)  # 64.4 % of the targets
    assert round(100 * 672 / result["users"], 1) == 64.2  # of the users, as the paper counts
    assert result["rhythm"]["trough_hour"] == 3


def test_the_rules_for_the_raw_file_of_new_york_keep_all_its_test_targets(
    shared_data: Path,
) -> None:
    def targets(recipe: Recipe) -> tuple[list[int], set[tuple[str, str, int]]]:
        city = make_city([source(shared_data, "nyc")], Preparation(recipe=recipe))
        visits, rows = city.trajectories, city.targets("test")
        users = city.users["user_id"].gather(visits.user[rows])
        places = city.places["place_id"].gather(visits.place[rows])
        at_us = visits.at_us[rows].tolist()
        counts = [city.checkins.height, city.users.height, city.places.height]
        return counts, set(zip(users, places, at_us, strict=True))

    published, ours = targets(NYC)
    by_rules, same = targets(replace(TKY, core=None))  # places below ten are already out
    assert published == [102_001, 1_047, 4_980]
    assert by_rules == [101_990, 1_047, 4_979]
    assert ours == same


def test_the_recipe_on_the_tails_of_tokyo(shared_data: Path) -> None:
    city = make_city([source(shared_data, "tokyo-tails")], Preparation(recipe=TKY))
    assert [city.checkins.height, city.users.height, city.places.height] == [93_502, 2_042, 1_898]
    assert city.revisit_share == pytest.approx(0.687, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "counts"),
    [("gowalla-ca", [204_607, 3_596, 6_968]), ("gowalla-nyc", [69_340, 1_803, 3_011])],
)
def test_the_core_of_a_gowalla_city(
    castpoi: CommandLine, shared_data: Path, tmp_path: Path, name: str, counts: list[int]
) -> None:
    words = ("data", "prepare", source(shared_data, name), "--core", "once")
    result = castpoi(*words, "--out", tmp_path / name, "--json").json
    assert [result[key] for key in COUNTS] == counts
    assert result["rhythm"]["is_human"] is True


def test_the_wrong_clock_of_foursquare_us_is_found_and_corrected(
    castpoi: CommandLine, shared_data: Path, tmp_path: Path
) -> None:
    raw = source(shared_data, "foursquare-us")
    words = ("data", "prepare", raw, "--core", "once", "--out", tmp_path / "us")
    refused = castpoi(*words)
    assert refused.code == 1
    assert "+8 h" in refused.err
    assert "--clock-shift +8" in refused.err
    assert list(tmp_path.iterdir()) == []
    corrected = castpoi(*words, "--clock-shift", "+8", "--json").json
    assert [corrected[key] for key in COUNTS] == [160_030, 3_897, 4_441]
    assert corrected["rhythm"]["trough_hour"] == 3
    accepted = castpoi(*words, "--accept-rhythm", "--overwrite", "--json").json
    assert accepted["rhythm"]["trough_hour"] == 19
    assert accepted["fingerprint"] != corrected["fingerprint"]


def test_a_city_of_the_tails_of_tokyo(
    castpoi: CommandLine, shared_data: Path, tmp_path: Path
) -> None:
    words = ("data", "prepare", source(shared_data, "tokyo-tails"), "--out", tmp_path / "tokyo")
    result = castpoi(*words, "--json").json
    assert [result[key] for key in COUNTS] == [108_338, 2_108, 4_388]
    assert result["rhythm"]["is_human"] is True
    assert set(City.load(tmp_path / "tokyo").places["zone"]) == {"Asia/Tokyo"}
