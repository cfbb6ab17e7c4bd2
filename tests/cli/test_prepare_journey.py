"""`castpoi data prepare` from end to end: options, bad rows left out, whole or not at all."""

import stat
from pathlib import Path
from typing import Final

import polars as pl
import pytest

from castpoi.checkins.city import City
from tests.conftest import CommandLine, documented_keys
from tests.sources import (
    NEW_YORK,
    checkins_in,
    checkins_of,
    table,
    table_rows,
    tsmc2014,
    visits_in,
)

VISITS: Final = visits_in(NEW_YORK)
ROWS: Final = table_rows(VISITS)
TIME: Final = "2012-04-03T18:00:09Z"


def with_row(*cells: str) -> str:
    """The week in New York, and one row more: row 16, line 17."""
    return table([*ROWS, cells])


def swapped(rows: list[list[str]]) -> str:
    return table([[user, place, lon, lat, at] for user, place, lat, lon, at in rows])


def fails(castpoi: CommandLine, source: Path, *options: object) -> str:
    """The sentence with which a preparation fails, which leaves nothing behind."""
    before = sorted(source.parent.iterdir())
    words = ("data", "prepare", source, "--out", source.parent / "city", *options)
    ended = castpoi(*words)
    assert (ended.code, ended.out) == (1, "")
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("castpoi: ")
    sentence = lines[0].removeprefix("castpoi: ")
    as_json = castpoi(*words, "--json")
    assert as_json.code == 1
    assert as_json.json == {"error": sentence}
    assert sorted(source.parent.iterdir()) == before
    return sentence


@pytest.mark.parametrize(
    ("given", "by"), [(";", ";"), ("tab", "\t"), ("\\t", "\t"), ("';'", ";"), ("|", "|")]
)
def test_a_delimiter_and_a_shift_of_the_clock_can_be_given(
    castpoi: CommandLine, tmp_path: Path, given: str, by: str
) -> None:
    source = tmp_path / "visits.csv"
    source.write_text(table([[f" {row[0]}", *row[1:]] for row in ROWS], by=by))
    words = ("--delimiter", given, "--clock-shift", "-5.5h", "--out", tmp_path / "city", "--json")
    ended = castpoi("data", "prepare", source, *words)
    remark = "blanks around 3 user ids were trimmed, in 15 rows"
    assert ended.json["remarks"] == [remark]
    assert f"Note: {remark}." in ended.err
    instants = {at[11:16] for _, _, at in checkins_in(City.load(tmp_path / "city"))}
    assert instants == {"12:30", "12:31", "12:32"}


BAD_OPTIONS: Final = {
    "unknown word": (("--columns", "who=user"), "--columns: 'who' is not one of user, place, lat"),
    "no pair": (("--columns", "user"), "--columns: 'user' is not of the form word=column"),
    "unknown column": (
        ("--columns", "user=nobody"),
        "{source}, row 1: no column 'nobody' for the user; its columns are user, place, lat, lon",
    ),
    "unknown zone": (
        ("--zone", "Mars/Olympus"),
        "--zone: 'Mars/Olympus' is not an IANA time zone; write it like America/New_York",
    ),
    "unknown encoding": (
        ("--encoding", "klingon"),
        "--encoding 'klingon' is not an encoding such as utf-8 or latin-1",
    ),
    "a recipe without its published split": (
        ("--recipe", "nyc"),
        "the recipe 'nyc' needs the published split and trajectory of every row, but this source "
        "has no complete column 'trajectory_id'; use the GETNext or STHGCN",
    ),
    "another layout": (
        ("--format", "getnext"),
        "{source}, row 1: the getnext layout has a column 'user_id', this file has user, place, "
        "lat, lon, time; read it with --format table",
    ),
    "a clock wrong by years": (
        ("--clock-shift", "+50000"),
        "--clock-shift is +50000 hours; no clock is wrong by more than 48 hours",
    ),
    "nothing left": (
        ("--core", "once"),
        "no check-in is left after the step 'core once, places >= 10, users >= 10' (15 before it)",
    ),
    "a limit of zero": (
        ("--min-user-checkins", "0"),
        "min_user_checkins=0 is not valid; it must be a whole number of at least 1",
    ),
    "a gap of nothing": (
        ("--session-gap-hours", "0"),
        "session_gap_hours=0.0 is not valid; it must be a number above 0",
    ),
}


@pytest.mark.parametrize(("options", "words"), BAD_OPTIONS.values(), ids=BAD_OPTIONS.keys())
def test_a_bad_option_gets_one_sentence(
    castpoi: CommandLine, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    source = tmp_path / "v.csv"
    source.write_text(table(ROWS))
    assert fails(castpoi, source, *options).startswith(words.format(source=source))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--clock-shift", "soon"), "'soon' is not a number of hours such as +8"),
        (("--format", "excel"), "'excel' is not one of 'auto', 'table', 'tsmc2014'"),
        (("--delimiter", "::"), "'::' must be one character, or 'tab'"),
        (("--recipe", "nyc", "--core", "once"), "--recipe nyc fixes every cleaning step"),
        (("--on-bad-rows", "skip"), "'skip' is not one of 'fail', 'drop'"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_wrong_usage_ends_with_exit_code_2(
    castpoi: CommandLine, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    source = tmp_path / "v.csv"
    source.write_text(table(ROWS))
    ended = castpoi("data", "prepare", source, "--out", tmp_path / "city", *options)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    as_json = castpoi("data", "prepare", source, "--out", tmp_path / "city", "--json", *options)
    assert as_json.code == 2
    assert words in as_json.json["error"]
    assert list(tmp_path.iterdir()) == [source]


# Leaving bad rows out


def test_bad_rows_are_left_out_counted_and_written_beside_the_city(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.txt"
    bad = [
        ["", "bar", "40.7", "-74", TIME],
        ["7", "bar", "0", "0", TIME],
        ["7", "bar", "40.7", "-74", "soon"],
        ["7", "bar", "40.7", "-74", TIME, "more"],
        ["7", NEW_YORK.places[0].id, "42", "-74", TIME],
        ["7", "bar", "-74", "40.7", TIME],
    ]
    first.write_text(table([bad[0], *ROWS[:8], *bad[1:]]))
    second.write_bytes(tsmc2014(VISITS[8:], offset_minutes=0) + b"1\tbar\tx\tBar\t\t\t0\tnow\n")
    words = ("data", "prepare", first, second, "--out", tmp_path / "city")
    ended = castpoi(*words, "--on-bad-rows", "drop")
    assert ended.code == 0, ended.err
    counts = {
        "too many columns": 1,
        "no user": 1,
        "no coordinates": 1,
        "swapped coordinates": 1,
        "null island": 1,
        "unreadable time": 1,
        "far-apart coordinates": 1,
    }
    listed = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    dropped = tmp_path / "city.dropped.csv"
    assert f"bad rows dropped: {listed}; written to {dropped}" in ended.out.replace("\n", " ")
    assert stat.S_IMODE(dropped.stat().st_mode) == 0o600
    rows = pl.read_csv(dropped, infer_schema=False).select("file", "row", "reason").rows()
    assert rows == [
        ("a.csv", "1", "no user"),
        ("a.csv", "10", "null island"),
        ("a.csv", "11", "unreadable time"),
        ("a.csv", "12", "too many columns"),
        ("a.csv", "13", "far-apart coordinates"),
        ("a.csv", "14", "swapped coordinates"),
        ("b.txt", "8", "no coordinates"),
    ]
    city = City.load(tmp_path / "city")
    assert checkins_in(city) == checkins_of(VISITS)
    assert city.manifest["dropped_rows"] == counts
    again = castpoi(*words, "--on-bad-rows", "drop", "--overwrite", "--json")
    assert again.json.keys() == documented_keys("data prepare")
    assert again.json["dropped_rows"] == counts
    assert again.json["steps"][0]["checkins_before"] == len(VISITS) + len(bad) + 1


def test_dropped_rows_of_a_former_city_do_not_outlive_it(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source = tmp_path / "v.csv"
    source.write_text(with_row("7", "bar", "0", "0", TIME))
    words = ("data", "prepare", source, "--out", tmp_path / "city", "--on-bad-rows", "drop")
    assert castpoi(*words).code == 0
    assert (tmp_path / "city.dropped.csv").exists()
    source.write_text(table(ROWS))
    assert castpoi(*words, "--overwrite").code == 0
    assert not (tmp_path / "city.dropped.csv").exists()


def test_a_file_with_the_name_of_the_dropped_rows_is_not_replaced(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source, notes = tmp_path / "v.csv", tmp_path / "city.dropped.csv"
    source.write_text(table(ROWS))
    notes.write_text("my own notes")
    ended = castpoi("data", "prepare", source, "--out", tmp_path / "city")
    assert ended.code == 1
    assert "already exists, and dropped rows would be written to it" in ended.err
    assert notes.read_text() == "my own notes"


def test_a_file_of_bad_rows_only_is_refused_even_when_they_may_be_dropped(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source = tmp_path / "v.csv"
    source.write_text(swapped(ROWS))
    assert fails(castpoi, source, "--on-bad-rows", "drop") == (
        f"{source}: every row breaks a rule (15 swapped coordinates); use --on-bad-rows fail to "
        "see what is wrong with the first one"
    )


# Whole or not at all


def test_the_steps_and_the_city_are_shown(castpoi: CommandLine, tmp_path: Path) -> None:
    source = tmp_path / "v.csv"
    source.write_text(table(ROWS))
    out = tmp_path / "deep" / "er" / "city"
    ended = castpoi("data", "prepare", source, "--out", out)
    assert (ended.code, ended.err) == (0, "")
    assert "step: drop" in ended.out
    fingerprint = City.load(out).fingerprint
    *_, summary, following = ended.out.splitlines()
    assert following == f"Next: castpoi train {out} --out RUN"
    assert summary == (
        f"{out}: 9 train, 3 validation and 3 test check-ins (0 left out), "
        "100.0% of the test targets are "
        f"revisits; fingerprint {fingerprint[:12]}"
    )
    assert {path.name for path in out.iterdir()} == {
        "checkins.parquet",
        "users.parquet",
        "places.parquet",
        "split.parquet",
        "manifest.json",
    }
