"""JSON, GeoJSON, GeoParquet, the published tables of places, and the atomic files of RecBole."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, make_city
from castpoi.core.errors import BadInput, BadRows
from castpoi.geo import wkb
from tests.messages import refused
from tests.sources import NEW_YORK, checkins_in, checkins_of, visits_in

VISITS: Final = visits_in(NEW_YORK)
ROWS: Final = [
    {"user": int(v.user), "place": v.place.id, "time": v.at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    for v in VISITS
]
POINTS: Final = [{"lat": v.place.lat, "lon": v.place.lon} for v in VISITS]
TABLE: Final = [{**row, **point} for row, point in zip(ROWS, POINTS, strict=True)]


def feature(properties: dict[str, Any], lat: float, lon: float) -> dict[str, Any]:
    point = {"type": "Point", "coordinates": [lon, lat]}
    return {"type": "Feature", "properties": properties, "geometry": point}


FEATURES: Final = [feature(row, **point) for row, point in zip(ROWS, POINTS, strict=True)]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def with_points(rows: pl.DataFrame, lat: str, lon: str, name: str = "geometry") -> pl.DataFrame:
    """The rows with WKB points instead of two columns."""
    points = wkb.points(rows[lat].to_numpy(), rows[lon].to_numpy())
    return rows.drop(lat, lon).with_columns(points.alias(name))


FILES: Final[dict[str, Callable[[Path], object]]] = {
    "visits.jsonl": lambda path: path.write_text(lines(TABLE)),
    "visits[1].jsonl": lambda path: path.write_text(lines(TABLE)),
    "visits.ndjson.gz": lambda path: path.write_bytes(gzip.compress(lines(TABLE).encode())),
    "visits.json": lambda path: path.write_text(json.dumps(TABLE)),
    "visits.geojson": lambda path: path.write_text(
        json.dumps({"type": "FeatureCollection", "features": FEATURES}, indent=1)
    ),
    "visits.geojsonl": lambda path: path.write_text(lines(FEATURES)),
    "visits.parquet": lambda path: with_points(pl.DataFrame(TABLE), "lat", "lon").write_parquet(
        path, metadata=wkb.GEO_KEY
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_check_ins_are_read_from(name: str, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    city = make_city([tmp_path], Preparation())
    assert checkins_in(city) == checkins_of(VISITS)
    by_id = {p.id: (p.lat, p.lon) for p in NEW_YORK.places}
    rows = city.places.select(record.PLACE_ID, record.LAT, record.LON).iter_rows()
    assert {place: tuple(point) for place, *point in rows} == by_id
    assert city.manifest["sources"][0]["file"] == name


def test_a_geometry_that_is_no_point_is_a_bad_row(tmp_path: Path) -> None:
    line = {**FEATURES[0], "geometry": {"type": "Point", "coordinates": []}}
    (tmp_path / "visits.geojsonl").write_text(lines([*FEATURES, line]))
    with refused(BadRows):
        make_city([tmp_path / "visits.geojsonl"], Preparation())


def test_a_file_with_areas_beside_points_is_refused(tmp_path: Path) -> None:
    ring = [[[-74, 40.7], [-73.9, 40.7], [-73.9, 40.8], [-74, 40.7]]]
    area = {**FEATURES[0], "geometry": {"type": "Polygon", "coordinates": ring}}
    collection = {"type": "FeatureCollection", "features": [*FEATURES, area]}
    (tmp_path / "visits.geojson").write_text(json.dumps(collection))
    with refused(BadInput):
        make_city([tmp_path / "visits.geojson"], Preparation())


def test_json_that_ends_in_the_middle_is_refused(tmp_path: Path) -> None:
    for name in ("visits.jsonl", "visits.json"):
        (tmp_path / name).write_text(json.dumps(TABLE)[:-20])
        with refused(BadInput):
            make_city([tmp_path / name], Preparation())


PLACES: Final = pl.DataFrame([vars(place) for place in NEW_YORK.places])


def foursquare_places() -> pl.DataFrame:
    """The columns of Foursquare OS Places that name, place and describe a place."""
    label = pl.concat_str(pl.lit("Dining and Drinking > "), "category")
    return PLACES.select(
        pl.col("id").alias("fsq_place_id"),
        "name",
        pl.col("lat").alias("latitude"),
        pl.col("lon").alias("longitude"),
        pl.concat_list(pl.lit("4bf58dd8d48988d1e0931735")).alias("fsq_category_ids"),
        pl.concat_list(label, pl.lit("Retail")).alias("fsq_category_labels"),
        wkb.points(PLACES["lat"].to_numpy(), PLACES["lon"].to_numpy()).alias("geom"),
        pl.struct(xmin="lon", ymin="lat", xmax="lon", ymax="lat").alias("bbox"),
    )


def overture_places() -> pl.DataFrame:
    """The same of Overture Places."""
    label = pl.concat_str(pl.lit("Dining and Drinking > "), "category")
    return with_points(PLACES, "lat", "lon").select(
        "id",
        "geometry",
        pl.struct(primary="name", common=pl.lit(None)).alias("names"),
        pl.struct(primary=label, alternate=pl.concat_list("category")).alias("categories"),
        pl.lit(0.9).alias("confidence"),
    )


@pytest.mark.parametrize("published", [foursquare_places, overture_places])
def test_published_places_give_names_categories_and_coordinates(
    published: Callable[[], pl.DataFrame], tmp_path: Path
) -> None:
    (tmp_path / "visits.jsonl").write_text(lines(ROWS))
    published().write_parquet(tmp_path / "places.parquet")
    places = tmp_path / "places.parquet"
    city = make_city([tmp_path / "visits.jsonl"], Preparation(), places_table=places)
    assert checkins_in(city) == checkins_of(VISITS)
    columns = (record.PLACE_ID, record.NAME, record.CATEGORY, record.LAT, record.LON)
    assert sorted(city.places.select(columns).iter_rows()) == sorted(
        (p.id, p.name, f"Dining and Drinking > {p.category}", p.lat, p.lon) for p in NEW_YORK.places
    )


def test_a_point_is_the_same_after_well_known_binary() -> None:
    lat, lon = np.array([40.71981, -89.9]), np.array([-74.002581, 179.9])
    both = wkb.lat_of(pl.col("geometry")), wkb.lon_of(pl.col("geometry")).alias("lon")
    assert wkb.points(lat, lon).to_frame().select(both[0].alias("lat"), both[1]).rows() == [
        (40.71981, -74.002581),
        (-89.9, 179.9),
    ]
    line = pl.DataFrame({"geometry": [b"\x01\x02\x00\x00\x00" + bytes(36)]})
    assert line.select(wkb.lat_of(pl.col("geometry"))).item() is None


# RecBole: NAME.inter has the check-ins, NAME.item the places; the header has types

INTER: Final = "user_id:token\tvenue_id:token\ttimestamp:float\n" + "".join(
    f"{v.user}\t{v.place.id}\t{v.at.timestamp()}\n" for v in VISITS
)
ITEM: Final = (
    "venue_id:token\tvenue_category_name:token_seq\tlatitude:float\tlongitude:float\n"
    + "".join(f"{p.id}\t{p.category}\t{p.lat}\t{p.lon}\n" for p in NEW_YORK.places)
)


@pytest.fixture
def recbole(tmp_path: Path) -> Path:
    (tmp_path / "nyc.inter").write_text(INTER)
    (tmp_path / "nyc.item").write_text(ITEM)
    return tmp_path


def test_the_atomic_files_of_recbole_are_read_together(recbole: Path) -> None:
    for tables in ([recbole], [recbole / "nyc.inter"]):
        city = make_city(tables, Preparation())
        assert checkins_in(city) == checkins_of(VISITS)
        assert {each["file"] for each in city.manifest["sources"]} == {"nyc.inter", "nyc.item"}
        assert sorted(city.places[record.CATEGORY]) == sorted(p.category for p in NEW_YORK.places)


def test_interactions_without_coordinates_need_a_table_of_places(recbole: Path) -> None:
    (recbole / "nyc.item").unlink()
    with refused(BadInput):
        make_city([recbole / "nyc.inter"], Preparation())


# A split of one's own: a column, or a file for each part

PARTS: Final = ["train", "train", "train", "val", "TEST"] * 3


def parts_of(city: City) -> list[str]:
    return city.split[record.PART].to_list()


def test_a_column_can_give_the_split() -> None:
    rows = pl.DataFrame(TABLE).with_columns(pl.Series("split", PARTS))
    city = make_city([rows], Preparation(split="given"))
    assert parts_of(city) == ["train", "train", "train", "validation", "test"] * 3
    assert city.manifest["split"] == "given"
    named = rows.rename({"split": "fold"})
    assert make_city([named], Preparation(split="given", columns={"part": "fold"})).fingerprint == (
        city.fingerprint
    )


def test_a_file_for_each_part_can_give_the_split(tmp_path: Path) -> None:
    rows = pl.DataFrame(TABLE).with_columns(pl.Series("split", PARTS).str.to_lowercase())
    for (part,), table in rows.group_by("split"):
        table.drop("split").write_csv(tmp_path / f"nyc.{part}.csv")
    city = make_city([tmp_path], Preparation(split="given"))
    assert parts_of(city) == ["train", "train", "train", "validation", "test"] * 3


def test_check_ins_without_a_part_and_unseen_targets_are_left_out() -> None:
    parts = [None, "train", "train", "val", "test", *[None] * 10]  # 12 was at 0, 1, 0, 2, 1
    rows = pl.DataFrame(TABLE).with_columns(pl.Series("split", parts))
    city = make_city([rows], Preparation(split="given"))
    assert parts_of(city) == ["left out", "train", "train", "left out", "test", *["left out"] * 10]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(["train", "test", "train", "val", "test"] * 3, id="backwards"),
        pytest.param(["train", "train", "train", "holdout", "test"] * 3, id="unknown part"),
        pytest.param(None, id="no column"),
    ],
)
def test_a_split_that_cannot_be_used_is_refused(parts: list[str] | None) -> None:
    rows = pl.DataFrame(TABLE)
    rows = rows if parts is None else rows.with_columns(pl.Series("split", parts))
    with refused(BadInput):
        make_city([rows], Preparation(split="given"))
