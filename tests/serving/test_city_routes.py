"""What a service has about its city: the page, the outline of land, its name and zone."""

from pathlib import Path

from castpoi.cli.serve import page_maker
from castpoi.core.errors import BrokenFolder
from castpoi.methods.run import Run
from castpoi.recommend.recommender import Recommender
from castpoi.serving.service import model_card
from tests.messages import refused
from tests.serving.live import Live, living, service_of


def test_the_page_of_the_city_is_made_once_for_a_run(
    recommender: Recommender, tmp_path: Path
) -> None:
    made: list[str] = []

    def page_of(run: Run) -> str:
        made.append(run.method)
        return "<!doctype html>a city"

    service = service_of(recommender, tmp_path)
    service.page_of = page_of
    with living(service) as live:
        for _ in range(2):
            answer = live.ask("GET", "/v1/city")
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.text == "<!doctype html>a city"
    assert made == ["castpoi"]


def test_without_the_packages_for_it_the_page_of_the_city_is_refused(
    recommender: Recommender, tmp_path: Path
) -> None:
    service = service_of(recommender, tmp_path)
    service.load_run()
    with refused(BrokenFolder):
        service.city_page()


def test_the_command_makes_the_page_of_the_city_of_a_run(recommender: Recommender) -> None:
    page_of = page_maker(None)
    assert page_of is not None
    page = page_of(recommender.run)
    assert page.startswith("<!doctype html>")
    assert f"<h1>{model_card(recommender).city}</h1>" in page


def test_the_card_has_the_name_of_the_city_and_its_main_zone(recommender: Recommender) -> None:
    card = model_card(recommender)
    assert recommender.run.city is not None
    assert card.city == recommender.run.city.parent.name  # the folder of the city is called city
    assert card.zone == "America/New_York"


def test_the_outline_is_a_box_of_sea_below_the_land_around_the_places(live: Live) -> None:
    outline = live.ask("GET", "/v1/land").json()
    kinds = [feature["properties"]["kind"] for feature in outline["features"]]
    assert kinds[0] == "sea"
    assert set(kinds[1:]) == {"land"}
    box = outline["features"][0]["geometry"]["coordinates"][0]
    (west, south), (east, north) = box[0], box[2]
    places = live.ask("GET", "/v1/places").json()["places"]
    assert all(west < place["lon"] < east for place in places)
    assert all(south < place["lat"] < north for place in places)
    for feature in outline["features"]:
        (ring,) = feature["geometry"]["coordinates"]
        assert ring[0] == ring[-1]
        assert all(west <= lon <= east and south <= lat <= north for lon, lat in ring)
