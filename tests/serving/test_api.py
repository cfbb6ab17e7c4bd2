"""What an engineer expects of the API: pages, GeoJSON, batches, plain ids and times, an OpenAPI."""

import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from castpoi.recommend.recommender import Recommender
from tests.serving.live import MORNING, Live, living, service_of

LOCAL = {"user": "ann", "place": "cafe", "at": "2012-04-02T08:00:00-04:00"}


def get(live: Live, path: str, **query: Any) -> Any:
    answer = live.ask("GET", f"/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_page_of_places_leads_to_the_next(live: Live) -> None:
    whole = [each["place"] for each in get(live, "places")["places"]]
    paged, after = [], ""
    while True:
        page = get(live, "places", limit=2, after=after)
        paged += [each["place"] for each in page["places"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert paged == whole


def test_a_page_after_no_place_is_documented_as_a_404(live: Live) -> None:
    assert live.ask("GET", "/v1/places", params={"after": "moon"}).status_code == 404
    documented = live.ask("GET", "/openapi.json").json()["paths"]["/v1/places"]["get"]
    assert "404" in documented["responses"]


def test_a_line_end_in_the_id_of_a_path_is_refused_like_one_in_a_body(live: Live) -> None:
    assert live.ask("GET", "/v1/users/a%0Ab/visits").status_code == 422
    assert live.ask("DELETE", "/v1/users/a%0Ab").status_code == 422


def test_a_page_of_users_leads_to_the_next(live: Live) -> None:
    for user in ("page-1", "page-2", "page-3"):
        live.post(**LOCAL | {"user": user})
    first = get(live, "users", q="page-", limit=2)
    rest = get(live, "users", q="page-", limit=2, after=first["next"])
    assert [each["user"] for each in first["users"] + rest["users"]] == [
        "page-1",
        "page-2",
        "page-3",
    ]
    assert rest["next"] is None


def test_a_page_of_visits_leads_to_the_visits_before(live: Live) -> None:
    times = [f"2012-04-0{day}T08:00:00-04:00" for day in range(1, 6)]
    same_time = [{"user": "pages", "place": "office", "at": times[2]}]
    live.post(visits=[{"user": "pages", "place": "cafe", "at": at} for at in times] + same_time)
    found: list[tuple[str, str]] = []
    after = ""
    while True:
        page = get(live, "users/pages/visits", limit=2, after=after)
        found = [(each["at"], each["place"]) for each in page["visits"]] + found
        if page["next"] is None:
            break
        after = page["next"]
    assert found == sorted([(at, "cafe") for at in times] + [(times[2], "office")])
    wrong = live.ask("GET", "/v1/users/pages/visits", params={"after": "yesterday"})
    assert wrong.status_code == 422
    assert "after: not the `next` of a previous page" in wrong.json()["error"]


def test_similar_places_are_those_of_the_recommender(live: Live) -> None:
    answer = get(live, "places/cafe/similar", k=2)
    assert answer == json.loads(json.dumps(live.service.recommender.similar("cafe", k=2).to_dict()))
    assert live.ask("GET", "/v1/places/moon/similar").status_code == 404


def test_categories_have_their_number_of_places(live: Live) -> None:
    count = {each["category"]: each["places"] for each in get(live, "categories")["categories"]}
    places = get(live, "places")["places"]
    assert count == {name: sum(each["category"] == name for each in places) for name in count}


def test_popular_places_are_those_of_somebody_without_visits(live: Live) -> None:
    popular = get(live, "popular", k=3)
    assert popular["recommendations"] == live.recommend(history=[], k=3)["recommendations"]
    assert [each["place"] for each in get(live, "popular", category="arts")["recommendations"]] == [
        "theatre"
    ]


def test_a_misspelt_query_parameter_is_refused_with_a_guess(live: Live) -> None:
    answer = live.ask("GET", "/v1/places", params={"limits": 2})
    assert answer.status_code == 422
    (wrong,) = answer.json()["fields"]
    assert wrong["field"] == "limits"
    assert wrong["problem"].startswith("unknown parameter; did you mean 'limit'?")
    none = live.ask("GET", "/v1/categories", params={"x": 1}).json()
    assert none["error"] == "x: unknown parameter; there are none"


def test_whole_numbers_are_ids_and_epochs_are_times(live: Live) -> None:
    at = 1_333_368_000  # 2012-04-02T08:00:00-04:00
    live.post(user=4711, place="cafe", at=at)
    live.post(user="4711", place="office", at=1000 * at + 3_600_000)
    visits = get(live, "users/4711/visits")["visits"]
    assert [each["at"] for each in visits] == [each["at"] for each in MORNING]
    answer = live.recommend(history=[{"place": "cafe", "at": at}], at=at + 60)
    text = live.recommend(
        history=[{"place": "cafe", "at": "2012-04-02T12:00:00Z"}], at="2012-04-02T12:01:00Z"
    )
    assert answer["recommendations"] == text["recommendations"]
    refused = live.ask("POST", "/v1/visits", json={"user": True, "place": "cafe", "at": at})
    assert refused.status_code == 422


def test_an_answer_says_whether_the_user_is_known(live: Live) -> None:
    live.post(**LOCAL | {"user": "known"})
    assert live.recommend(user="known")["user_known"] is True
    assert live.recommend(user="unknown")["user_known"] is False
    assert live.recommend(history=[])["user_known"] is None


def test_a_batch_is_answered_line_by_line_and_a_bad_request_spoils_no_other(live: Live) -> None:
    good = {"history": MORNING, "k": 2}
    bad = {"history": MORNING, "candidates": ["moon"]}
    body = {"requests": [good, bad] + [good] * 40}
    answer = live.ask("POST", "/v1/recommend/batch", json=body)
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert len(lines) == 42
    assert "no place is left" in lines[1]["error"]
    alone = [each["place"] for each in live.recommend(**good)["recommendations"]]
    assert all(
        [each["place"] for each in line["recommendations"]] == alone
        for line in lines[:1] + lines[2:]
    )
    wrong = live.ask("POST", "/v1/recommend/batch", json={"requests": [good, {"k": 0}]})
    assert wrong.json()["fields"][0]["field"] == "requests[1].k"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("recommend", {"history": MORNING, "k": 2}),
        ("places?limit=2", None),
        ("places/cafe/similar?k=2", None),
        ("popular?k=2", None),
    ],
)
def test_places_come_as_geojson_if_the_client_accepts_it(
    live: Live, path: str, body: dict[str, Any] | None
) -> None:
    def answer(accept: str) -> httpx.Response:
        method = "GET" if body is None else "POST"
        return live.ask(method, f"/v1/{path}", json=body, headers={"Accept": accept})

    found = answer("application/geo+json")
    assert found.headers["content-type"] == "application/geo+json"
    collection, plain = found.json(), answer("application/json").json()
    (rows,) = (
        value for value in plain.values() if isinstance(value, list) and value and "lat" in value[0]
    )
    assert collection["type"] == "FeatureCollection"
    for feature, row in zip(collection["features"], rows, strict=True):
        assert feature["geometry"] == {"type": "Point", "coordinates": [row["lon"], row["lat"]]}
        assert feature["properties"]["place"] == row["place"]


def test_the_id_of_a_request_is_returned_and_logged(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="castpoi.serving"):
        mine = live.ask("GET", "/healthz", headers={"X-Request-Id": "trace-7"})
        other = live.ask("GET", "/healthz", headers={"X-Request-Id": "somebody's name"})
    assert mine.headers["x-request-id"] == "trace-7"
    assert "request=trace-7" in caplog.text
    assert other.headers["x-request-id"] not in ("", "somebody's name")
    assert "somebody" not in caplog.text


def test_openapi_has_short_names_real_errors_and_examples_that_work(live: Live) -> None:
    api = live.ask("GET", "/openapi.json").json()
    operations = {
        each["operationId"]: each for methods in api["paths"].values() for each in methods.values()
    }
    assert {"recommend", "recommend_batch", "post_visits", "get_place", "model_card"} < set(
        operations
    )
    assert all(name.isidentifier() and len(name) < 25 for name in operations)
    assert "413" not in operations["model_card"]["responses"]
    assert "409" not in operations["recommend"]["responses"]
    for example in api["components"]["schemas"]["RecommendBody"]["examples"]:
        answer = live.ask("POST", "/v1/recommend", json=example | {"within_km": 9_000})
        assert answer.status_code == 200, answer.text


def test_no_route_shows_a_private_place_to_a_stranger(
    recommender: Recommender, tmp_path: Path
) -> None:
    private = Recommender(recommender.run, recommender.places, private_categories=("food",))
    with living(service_of(private, tmp_path)) as live:
        routes = ("places", "popular?k=100", "categories", "places/park/similar?k=100")
        shown = "".join(live.ask("GET", f"/v1/{route}").text for route in routes)
        shown += json.dumps(live.recommend(history=[], k=100))
        shown += json.dumps(live.recommend(user="nobody", k=100))
        shown += json.dumps(live.recommend(history=[], k=100, near={"lat": 40.7, "lon": -74.0}))
        assert "park" in shown
        assert "cafe" not in shown
        assert "Food" not in shown
        for route in ("places/cafe", "places/cafe/similar"):
            hidden = live.ask("GET", f"/v1/{route}")
            assert hidden.status_code == 404
            assert "the place is private" in hidden.json()["error"]
