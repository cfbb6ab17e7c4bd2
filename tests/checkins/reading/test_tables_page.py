"""The recipes of docs/tables.md run as they are written, and their tables can be prepared."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from castpoi.checkins import record
from castpoi.checkins.prepare import Preparation, make_city
from tests.sources import NEW_YORK, Visit, checkins_in, checkins_of, visits_in

PAGE: Final = (Path(__file__).parents[3] / "docs" / "tables.md").read_text("utf-8")
VISITS: Final = visits_in(NEW_YORK)
TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


def recipe(title: str) -> str:
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```", section, re.S)
    assert len(found) == 1
    return str(found[0])


def gpx(visits: list[Visit]) -> str:
    points = "".join(
        f'<wpt lat="{v.place.lat}" lon="{v.place.lon}"><time>{v.at.strftime(TIME)}</time>'
        f"<name>{v.place.id}</name></wpt>"
        for v in visits
    )
    return f'<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">{points}</gpx>'


def timeline(visits: list[Visit]) -> str:
    segments: list[object] = [{"startTime": "2012-04-01T10:00:00.000-04:00", "timelinePath": []}]
    for v in visits:
        point = {"latLng": f"{v.place.lat}°, {v.place.lon}°"}
        found = {"placeId": v.place.id, "semanticType": "UNKNOWN", "placeLocation": point}
        visit = {"hierarchyLevel": 0, "topCandidate": found}
        segments.append({"startTime": v.at.strftime(TIME), "visit": visit})
    return json.dumps({"semanticSegments": segments}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("title", "folder", "suffix", "content"),
    [("GPX", "gpx", "gpx", gpx), ("Google Timeline", "timelines", "json", timeline)],
)
def test_a_recipe_makes_a_table_for_prepare(
    title: str,
    folder: str,
    suffix: str,
    content: Callable[[list[Visit]], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / folder).mkdir()
    for user in {visit.user for visit in VISITS}:
        path = tmp_path / folder / f"{user}.{suffix}"
        path.write_text(content([visit for visit in VISITS if visit.user == user]), "utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(recipe(title), title, "exec"), {})  # our own page
    city = make_city([tmp_path / "visits.parquet"], Preparation())
    assert checkins_in(city) == checkins_of(VISITS)
    assert city.places[record.LAT].to_list() == sorted_by_id()


def sorted_by_id() -> list[float]:
    return [place.lat for place in sorted(NEW_YORK.places, key=lambda place: place.id)]
