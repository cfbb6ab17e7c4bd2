from pathlib import Path

import polars as pl
import pytest

from tests.conftest import CommandLine, documented_keys
from tests.serving.small_run import small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("small"))


@pytest.fixture
def day(tmp_path: Path) -> Path:
    table = tmp_path / "day.csv"
    table.write_text(
        "place,at\ncafe,2012-04-03T08:30:00-04:00\noffice,2012-04-03 09:00\n"
        "moon,2012-04-03T10:00:00-04:00\npark,2012-04-03T19:00:00-04:00\n"
    )
    return table


def test_a_person_sees_a_table_and_a_sentence_for_each_place(
    castpoi: CommandLine, run: Path
) -> None:
    ended = castpoi("recommend", run, "--user", "user 0", "--k", 2)
    assert ended.code == 0
    assert "Where next (castpoi " in ended.out
    assert "1. " in ended.out
    assert "2. " in ended.out
    assert "3. " not in ended.out
    assert "score without it" not in ended.out


def test_reasons_show_the_sum_and_the_visits(castpoi: CommandLine, run: Path, day: Path) -> None:
    ended = castpoi("recommend", run, "--history", day, "--explain")
    assert ended.code == 0
    assert ended.out.count("= base ") == 5
    assert ended.out.count("score without it") == 3 * 5
    assert "% of the attention to Park, here, a moment ago" in ended.out
    assert ended.err == "Note: 1 visit was skipped: not at a place of the run.\n"


def test_a_script_reads_the_words_of_the_api(castpoi: CommandLine, run: Path, day: Path) -> None:
    ended = castpoi("recommend", run, "--history", day, "--explain", "--json", "--k", 3)
    assert ended.json.keys() == documented_keys("recommend")
    assert len(ended.json["recommendations"]) == 3
    for each in ended.json["recommendations"]:
        assert sum(each["terms"].values()) == pytest.approx(each["score"], abs=1e-5)
        assert sum(visit["weight"] for visit in each["visits"]) == pytest.approx(1.0, abs=1e-5)


def test_the_filters_of_a_request_are_options(castpoi: CommandLine, run: Path, day: Path) -> None:
    def left(*words: object) -> set[str]:
        ended = castpoi("recommend", run, "--history", day, "--json", *words)
        return {each["place"] for each in ended.json["recommendations"]}

    assert left("--category", "food", "--category", "Arts") == {"cafe", "theatre"}
    assert left("--near", "40.70,-74.0", "--within-km", 1) == {"cafe", "office"}
    assert left("--exclude-visited") == {"station", "theatre"}
    assert left("--new-only", "--within-km", 3) == {"station"}
    assert left("--at", "2012-04-03T09:30-04:00", "--exclude-visited") == {
        *("park", "station", "theatre")
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--user", "Mallory"], "this user has no check-ins in the run's city"),
        (["--user", "user 0", "--at", "soon"], "at: 'soon' is not a time; write it as"),
        (["--user", "user 0", "--at", "2012-04-03T12:00"], "has no offset from UTC"),
        (["--user", "user 0", "--within-km", "0"], "within_km=0.0 is not valid"),
        (["--user", "user 0", "--near", "95,10"], "near: the latitude is not a number from -90"),
        (["--user", "user 0", "--category", "Fod"], "no place has the category 'Fod'; did you"),
        (
            ["--user", "user 0", "--category", "Food", "--new-only"],
            "no place is left to recommend: none of 1 is new",
        ),
        (["--history", "no.csv"], "no.csv cannot be read: No such file"),
        (["--user", "user 0", "--city", "nowhere"], "a city that is not at nowhere; give its"),
    ],
)
def test_a_request_that_is_not_valid_is_refused_in_one_sentence(
    castpoi: CommandLine, run: Path, words: list[str], sentence: str
) -> None:
    ended = castpoi("recommend", run, *words)
    assert ended.code == 1
    assert sentence in ended.err
    assert "Mallory" not in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Give one of --user, --history, --all-users"),
        (
            ["--user", "user 0", "--history", "day.csv"],
            "Give one of --user, --history, --all-users",
        ),
        (["--user", "user 0", "--k", "0"], "0 is not in the range x>=1"),
        (
            ["--user", "user 0", "--near", "40.123"],
            "a latitude and a longitude in degrees: LAT,LON",
        ),
    ],
)
def test_wrong_usage_ends_with_two(
    castpoi: CommandLine, run: Path, words: list[str], sentence: str
) -> None:
    ended = castpoi("recommend", run, *words)
    assert ended.code == 2
    assert sentence in ended.err
    assert "40.123" not in ended.err


def test_the_users_of_a_table_have_filters_of_their_own(
    castpoi: CommandLine, run: Path, tmp_path: Path
) -> None:
    people, out = tmp_path / "people.csv", tmp_path / "recs.jsonl"
    people.write_text("user,category,within_km\nuser 0,Food,\nuser 1,,0.5\nnobody,,\n")
    ended = castpoi("recommend", run, "--users", people, "--out", out)
    assert ended.code == 0
    assert "1 people have no recommendations" in ended.err
    table = pl.read_ndjson(out)
    assert set(table.filter(user="user 0")["category"]) == {"Food"}
    assert max(table.filter(user="user 1")["distance_km"]) <= 0.5
    people.write_text("user,within_km\nuser 0,near\n")
    assert "row 1 of the table of people has 'near' as within_km" in (
        castpoi("recommend", run, "--users", people, "--out", out, "--overwrite").err
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--all-users"],
        ["--user", "user 0", "--out", "recs.csv"],
        [],
        ["--all-users", "--user", "x"],
    ],
)
def test_one_person_is_printed_and_many_are_written(
    castpoi: CommandLine, run: Path, words: list[str]
) -> None:
    assert castpoi("recommend", run, *words).code == 2
