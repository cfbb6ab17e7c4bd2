"""Preparation with a ceiling of memory: the same city, from files that are read in parts."""

import errno
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import castpoi
from castpoi.checkins import prepare as preparing
from castpoi.checkins.city import City, dropped_path
from castpoi.checkins.cleaning import TKY, Recipe
from castpoi.checkins.prepare import Preparation, prepare, prepare_within
from castpoi.checkins.tables import Tables
from castpoi.core.errors import BadInput
from tests.conftest import CommandLine
from tests.messages import refused

GB = 10**9
STEPS = Recipe(
    repeat_minutes=60, core="iterate", min_place_checkins=3, drop_isolated_hours=72, min_session=2
)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of five parquet files with check-ins in any order; one without categories."""
    folder = tmp_path_factory.mktemp("parts") / "visits"
    folder.mkdir()
    rows = castpoi.synthesize(users=60, places=150, days=40, seed=5)
    rows = pl.concat([rows, rows.head(40)]).sample(fraction=1.0, shuffle=True, seed=3)
    size = rows.height // 5 + 1
    for number, part in enumerate(rows.iter_slices(size)):
        if number == 3:
            part = part.drop("category")
        part.write_parquet(folder / f"part-{number}.parquet")
    return folder


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "_FIXED_MEMORY", 0)
    monkeypatch.setattr(preparing, "_ROW_MEMORY", GB // 1000)  # 1,000 rows in a GB


def same(folder: Path, source: Path, **options: Any) -> City:
    """The city that is prepared in memory, after a comparison with that of a ceiling."""
    preparation = Preparation(accept_rhythm=True, **options)
    city = prepare([source], folder / "whole", preparation)
    manifest = prepare_within(GB, [source], folder / "within", preparation)
    within = City.load(folder / "within")
    for name in ("checkins", "users", "places", "split"):
        assert getattr(within, name).equals(getattr(city, name))
    times = {"prepared_at_utc"}
    assert {k: v for k, v in manifest.items() if k not in times} == {
        k: v for k, v in city.manifest.items() if k not in times
    }
    assert sorted(each.name for each in folder.iterdir() if each.suffix != ".csv") == [
        "whole",
        "within",
    ]
    return city


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"recipe": STEPS},
        {"recipe": TKY, "split": "chronological"},
        {"naive_times": "local", "zone": "Asia/Tokyo", "clock_shift_hours": 2.5},
    ],
    ids=["plain", "steps", "tky", "zone"],
)
def test_the_city_is_the_same_as_in_memory(
    parts: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    city = same(tmp_path, parts, **options)
    assert city.checkins.height > 1000


def test_the_split_of_the_source_is_the_same(parts: Path, tmp_path: Path) -> None:
    rows = pl.concat([pl.read_parquet(each) for each in parts.iterdir()], how="diagonal")
    hour = pl.col("time").rank("ordinal") * 10 // pl.len()
    word = pl.when(hour < 8).then(pl.lit("train")).when(hour < 9).then(pl.lit("validation"))
    named = rows.with_columns(word.otherwise(pl.lit("test")).alias("split"))
    (tmp_path / "in").mkdir()
    for number, some in enumerate(named.iter_slices(900)):
        some.write_parquet(tmp_path / "in" / f"{number}.parquet")
    (tmp_path / "out").mkdir()
    assert same(tmp_path / "out", tmp_path / "in", split="given").manifest["test"] > 50


def test_rows_that_break_a_rule_are_the_same(parts: Path, tmp_path: Path) -> None:
    source = tmp_path / "source" / "visits"
    source.mkdir(parents=True)
    for part in parts.iterdir():
        rows = pl.read_parquet(part)
        wrong = (pl.int_range(pl.len()) % 97 == 5).alias("wrong")
        lat = pl.when(wrong).then(200.0).otherwise("lat").alias("lat")
        rows.with_columns(lat).write_parquet(source / part.name)
    (tmp_path / "out").mkdir()
    city = same(tmp_path / "out", source, on_bad_rows="drop")
    assert city.manifest["dropped_rows"]["coordinates out of range"] > 5
    dropped = [dropped_path(tmp_path / "out" / name) for name in ("whole", "within")]
    assert dropped[0].read_bytes() == dropped[1].read_bytes()
    with refused(BadInput):
        prepare_within(GB, [source], tmp_path / "fails", Preparation())
    assert not (tmp_path / "fails").exists()


def test_a_user_with_more_rows_than_a_part_is_kept_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "_ROW_MEMORY", GB // 200)
    rows = castpoi.synthesize(users=3, places=60, days=400, seed=2)
    assert rows["user"].value_counts()["count"].max() > 200  # type: ignore[operator]
    (tmp_path / "in").mkdir()
    for number, some in enumerate(rows.iter_slices(190)):
        some.write_parquet(tmp_path / "in" / f"{number}.parquet")
    (tmp_path / "out").mkdir()
    same(tmp_path / "out", tmp_path / "in")


def test_a_ceiling_that_is_too_low_is_refused(parts: Path, tmp_path: Path) -> None:
    with refused(BadInput):
        prepare_within(GB // 2, [parts], tmp_path / "city", Preparation())


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    castpoi.synthesize(users=60, places=100, seed=1).write_parquet(tmp_path / "visits.parquet")
    with refused(BadInput):
        prepare_within(GB, [tmp_path / "visits.parquet"], tmp_path / "city", Preparation())


def test_a_damaged_part_is_named_and_leaves_nothing(parts: Path, tmp_path: Path) -> None:
    source = tmp_path / "visits"
    source.mkdir()
    for part in parts.iterdir():
        (source / part.name).write_bytes(part.read_bytes())
    damaged = source / "part-2.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-300])
    with pytest.raises(BadInput, match=r"part-2\.parquet is not a complete parquet file"):
        prepare_within(GB, [source], tmp_path / "city", Preparation())
    assert [each.name for each in tmp_path.iterdir()] == ["visits"]


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def write(self: pl.DataFrame, path: Path) -> None:
        written.append(path)
        if len(written) == 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(self, path)

    original = pl.DataFrame.write_ipc
    monkeypatch.setattr(pl.DataFrame, "write_ipc", write)
    with pytest.raises(BadInput, match="cannot be written: No space left on device"):
        prepare_within(GB, [parts], tmp_path / "city", Preparation())
    assert list(tmp_path.iterdir()) == []


def test_files_of_visits_are_private_and_removed(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: set[int] = set()

    def counted(self: Tables, column: str) -> Any:
        modes.update(p.stat().st_mode & 0o777 for p in self.parts if isinstance(p, Path))
        return original(self, column)

    original = Tables.codes_in
    monkeypatch.setattr(Tables, "codes_in", counted)
    prepare_within(GB, [parts], tmp_path / "city", Preparation(accept_rhythm=True))
    assert modes == {0o600}
    assert [each.name for each in tmp_path.iterdir()] == ["city"]


def test_memory_is_an_option_of_the_command(
    castpoi: CommandLine, parts: Path, tmp_path: Path
) -> None:
    words = ("data", "prepare", parts, "--accept-rhythm", "--json")
    whole = castpoi(*words, "--out", tmp_path / "whole").json
    within = castpoi(*words, "--out", tmp_path / "within", "--memory", "1.5GB").json
    assert within["fingerprint"] == whole["fingerprint"]
    assert castpoi(*words, "--out", tmp_path / "no", "--memory", "plenty").code == 2
