"""The HTTP service over a real socket."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.request import instant_us
from castpoi.serving.settings import ServiceSettings
from castpoi.serving.store_visits import StoredVisit
from tests.serving.live import (
    MORNING,
    Live,
    living,
    service_of,
    wait_until,
)

KEY = "a key for the tests only"
AT = "2012-04-09T08:00:00-04:00"

PAPER_TERMS = ["base", "popularity", "reader", "revisit"]


def places(answer: dict[str, Any]) -> list[str]:
    return [each["place"] for each in answer["recommendations"]]


def test_the_service_returns_the_answer_of_the_recommender(
    live: Live, recommender: Recommender
) -> None:
    answer = live.recommend(history=MORNING, k=3, explain=True)
    wanted = recommender.recommend(MORNING, k=3, explain=True).to_dict()
    assert answer.keys() == {"recommendations", "model", "seconds", "remarks", "visits_by"} | {
        "user_known"
    }
    assert answer["recommendations"] == wanted["recommendations"]
    assert answer["model"] == wanted["model"]
    first = answer["recommendations"][0]
    assert sum(first["terms"].values()) == pytest.approx(first["score"], abs=1e-5)


def test_an_answer_has_the_terms_of_its_model_and_the_card_explains_them(
    live: Live, near_sighted: Recommender, tmp_path: Path
) -> None:
    with living(service_of(near_sighted, tmp_path)) as ours:
        answer = ours.recommend(history=MORNING, explain=True)
        card = ours.ask("GET", "/v1/model").json()
    TypeAdapter(Recommendations).validate_python(answer)
    for each in answer["recommendations"]:
        assert list(each["terms"]) == [*PAPER_TERMS, "distance"]
        assert sum(each["terms"].values()) == pytest.approx(each["score"], abs=1e-5)
    assert list(card["terms"]) == [*PAPER_TERMS, "distance"]
    assert all(card["terms"].values())
    papers = live.recommend(history=MORNING, explain=True)["recommendations"]
    assert [list(each["terms"]) for each in papers] == [PAPER_TERMS] * len(papers)


def test_filters_reach_the_recommender(live: Live) -> None:
    assert places(live.recommend(history=MORNING, categories=["arts"])) == ["theatre"]
    assert set(places(live.recommend(history=MORNING, exclude_visited=True))) == {
        *("park", "station", "theatre")
    }
    near = {"lat": 40.8079, "lon": -74.0}
    assert places(live.recommend(history=[], near=near, within_km=1)) == ["theatre"]
    assert places(live.recommend(history=MORNING, candidates=["park"], new_only=True)) == ["park"]
    box = {"south": 40.702, "west": -75, "north": 40.75, "east": -73}
    assert set(places(live.recommend(history=MORNING, box=box))) == {"office", "park", "station"}
    corners = [{"lat": lat, "lon": lon} for lat, lon in [(40.7, -75), (40.7, -73), (40.72, -74)]]
    only = live.recommend(history=MORNING, polygon=corners, exclude=["cafe"], max_per_category=1)
    assert set(places(only)) == {"office", "park"}
    early = live.recommend(history=MORNING, at="2012-04-02T08:30:00-04:00")
    assert "1 visit was left out: later than the time of the request" in early["remarks"]


def test_the_explain_route_always_explains_also_a_candidate(live: Live) -> None:
    body = {"history": MORNING, "candidates": ["theatre"]}
    answer = live.ask("POST", "/v1/explain", json=body).json()
    (only,) = answer["recommendations"]
    assert only["place"] == "theatre"
    assert only["terms"] is not None
    assert only["visits"][0].keys() >= {*("place", "at", "weight", "distance_km", "score_without")}


def test_a_posted_visit_changes_the_next_recommendation(live: Live) -> None:
    visit = {"user": "ann/1", "place": "cafe", "at": "2012-04-02T08:00:00-04:00"}
    before = live.recommend(user="ann/1")
    assert "the history is empty" in before["remarks"][0]
    assert live.post(**visit) == {"stored": 1, "repeated": 0, "unknown_places": []}
    after = live.recommend(user="ann/1")
    same = {"place": visit["place"], "at": visit["at"]}
    assert after["recommendations"] == live.recommend(history=[same])["recommendations"]
    assert after["recommendations"] != before["recommendations"]
    assert live.post(**visit) == {"stored": 0, "repeated": 1, "unknown_places": []}
    assert live.recommend(user="ann/1")["recommendations"] == after["recommendations"]


def test_a_user_reads_and_erases_their_visits(live: Live) -> None:
    visits = [
        {"user": "bob/ü", "place": "park", "at": "2012-04-03T21:00:00Z", "key": "2"},
        {"user": "bob/ü", "place": "cafe", "at": "2012-04-03T08:00:00", "key": "1"},
        {"user": "bob/ü", "place": "a new bar", "at": "2012-04-03T23:00:00Z", "key": "3"},
    ]
    assert live.post(visits=visits) == {
        **{"stored": 3, "repeated": 0},
        "unknown_places": ["a new bar"],
    }
    listed = live.ask("GET", "/v1/users/bob%2F%C3%BC/visits").json()["visits"]
    assert [(each["place"], each["at"], each["name"]) for each in listed] == [
        ("cafe", "2012-04-03T08:00:00-04:00", "Café"),  # the local time of the café
        ("park", "2012-04-03T17:00:00-04:00", "Park"),
        ("a new bar", "2012-04-03T23:00:00+00:00", None),
    ]
    last = live.ask("GET", "/v1/users/bob/ü/visits", params={"limit": 1}).json()["visits"]
    assert [each["place"] for each in last] == ["a new bar"]
    assert {"user": "bob/ü", "visits": 3} in live.ask("GET", "/v1/users").json()["users"]
    assert live.ask("GET", "/v1/users", params={"q": "bo"}).json()["users"][0]["visits"] == 3
    assert live.ask("DELETE", "/v1/users/bob%2Fü").json() == {"erased": 3}
    assert live.ask("DELETE", "/v1/users/bob%2Fü").json() == {"erased": 0}
    assert live.ask("GET", "/v1/users/bob%2Fü/visits").json()["visits"] == []


def test_a_key_for_two_visits_is_a_conflict_and_the_batch_is_not_stored(live: Live) -> None:
    one = {"user": "cat", "place": "cafe", "at": AT, "key": "x"}
    answer = live.ask("POST", "/v1/visits", json={"visits": [one, {**one, "place": "park"}]})
    assert answer.status_code == 409
    assert "a key identifies one visit" in answer.json()["error"]
    assert live.ask("GET", "/v1/users/cat/visits").json()["visits"] == []


def test_places_are_found_by_box_and_by_name(live: Live) -> None:
    def found(**query: Any) -> list[str]:
        answer = live.ask("GET", "/v1/places", params=query)
        assert answer.status_code == 200, answer.text
        return [each["place"] for each in answer.json()["places"]]

    assert sorted(found()) == ["cafe", "office", "park", "station", "theatre"]
    assert found(limit=1) == ["cafe"]
    assert found(q="THEAT") == ["theatre"]
    assert sorted(found(bbox="40.71,-75,40.75,-73")) == ["park", "station"]
    only = live.ask("GET", "/v1/places", params={"q": "café"}).json()["places"]
    assert only == [
        {"place": "cafe", "name": "Café", "category": "Food", "lat": 40.7, "lon": -74.0}
    ]


def test_the_card_describes_the_model(live: Live, recommender: Recommender) -> None:
    card = live.ask("GET", "/v1/model").json()
    assert card["method"] == "castpoi"
    assert card["fingerprint"] == recommender.run.fingerprint
    assert (card["seed"], card["places"], card["metrics"]) == (3, 5, None)
    assert card["visits_by"] == "attention"
    assert card["model"] == live.recommend(history=[])["model"]


@pytest.mark.parametrize(
    ("path", "body", "field", "problem"),
    [
        ("recommend", {}, "body", "give either 'user' or 'history'"),
        ("recommend", {"user": "a", "history": []}, "body", "and not both"),
        ("recommend", {"history": [], "k": 0}, "k", "greater than or equal to 1"),
        ("recommend", {"history": [], "k": 101}, "k", "less than or equal to 100"),
        ("recommend", {"history": [], "k": "10"}, "k", "valid integer"),
        ("recommend", {"history": [], "top": 3}, "top", "unknown field; "),
        ("recommend", {"usr": "ann"}, "usr", "unknown field; did you mean 'user'? "),
        ("recommend", {"history": [{"place": "cafe"}]}, "history[0].at", "Field required"),
        ("recommend", {"history": [{"place": "cafe", "at": "noon"}]}, "history[0].at", "a time"),
        (
            "recommend",
            {"history": [{"place": "cafe", "at": 7}]},
            "history[0].at",
            "between the years",
        ),
        (
            "recommend",
            {"history": [{"place": "cafe", "at": True}]},
            "history[0].at",
            "write a time",
        ),
        (
            *("recommend", {"history": [{"place": "cafe", "at": "1066-10-14T09:00:00Z"}]}),
            *("history[0].at", "not between the years 1980 and 2100"),
        ),
        ("recommend", {"history": MORNING * 501}, "history", "at most 1000 items"),
        ("recommend", {"history": [], "near": {"lat": 91, "lon": 0}}, "near.lat", "equal to 90"),
        ("recommend", {"history": [], "polygon": [{"lat": 0, "lon": 0}]}, "polygon", "at least 3"),
        (
            *("recommend", {"history": [], "box": {"south": 1, "west": 0, "north": 0, "east": 1}}),
            *("box", "south must not be above north"),
        ),
        ("recommend", {"history": [], "within_km": 0}, "within_km", "greater than 0"),
        ("recommend", {"history": [], "within_km": 20_017}, "within_km", "equal to 20016"),
        ("recommend", {"user": "a\u0000b"}, "user", "match pattern"),
        ("recommend", {"user": ".."}, "user", "not valid ids"),
        ("visits", {"user": "a", "place": "cafe"}, "at", "Field required"),
        ("visits", {"visits": [{"user": "a"}]}, "visits[0].place", "Field required"),
        ("visits", {"visits": []}, "visits", "at least 1 item"),
    ],
)
def test_a_wrong_field_is_named(
    live: Live, path: str, body: dict[str, Any], field: str, problem: str
) -> None:
    answer = live.ask("POST", f"/v1/{path}", json=body)
    assert answer.status_code == 422
    wrong = {each["field"]: each["problem"] for each in answer.json()["fields"]}
    assert problem in wrong[field]
    assert answer.json()["error"].startswith(next(iter(wrong)))


@pytest.mark.parametrize(
    ("request_line", "body", "status", "words"),
    [
        ("POST /v1/recommend", b"{", 400, "the body is not valid JSON: Expecting property name"),
        ("POST /v1/recommend", b'{\n "k": 3,\n "k" 4}', 400, "delimiter (line 3, column 6)"),
        ("POST /v1/recommend", b'{"user": "\\ud800"}', 422, "user"),
        ("POST /v1/recommend", b'{"history": [], "within_km": NaN}', 422, "within_km"),
        ("POST /v1/recommend", b"[" * 100_000, 400, "error parsing the body"),
        ("POST /v1/recommend", b'{"history": []}' + b" " * (1 << 20), 413, "larger than 1048576"),
        ("GET /v1/places?bbox=1,2,3", b"", 422, "bbox: write four numbers"),
        ("GET /v1/places?bbox=9,0,1,0", b"", 422, "bbox: south,west,north,east must be"),
        ("GET /v1/places?bbox=nan,0,1,0", b"", 422, "bbox: south,west,north,east must be"),
        ("GET /v1/nothing", b"", 404, "no such page or route"),
        ("PUT /v1/recommend", b"", 405, "does not take PUT; use POST"),
    ],
)
def test_an_unreadable_request_has_an_error_in_a_sentence(
    live: Live, request_line: str, body: bytes, status: int, words: str
) -> None:
    method, path = request_line.split()
    headers = {"Content-Type": "application/json"}
    answer = live.ask(method, path, content=body, headers=headers)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_a_large_body_without_a_content_length_is_rejected(live: Live) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * (1 << 16)

    headers = {"Content-Type": "application/json"}
    answer = live.ask("POST", "/v1/recommend", content=endless(), headers=headers)
    assert answer.status_code == 413


def test_a_local_time_needs_a_known_place(live: Live) -> None:
    body = {"user": "dan", "place": "a new bar", "at": "2012-04-03T08:00:00"}
    answer = live.ask("POST", "/v1/visits", json=body)
    assert answer.status_code == 422
    assert "visits[0].at: the time has no offset from UTC" in answer.json()["error"]


def test_a_visit_more_than_a_day_ahead_is_rejected_with_its_batch(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.service, "clock", lambda: instant_us(AT, what="now"))
    tomorrow = {"user": "ida", "place": "cafe", "at": "2012-04-10T08:00:00-04:00"}
    late = {**tomorrow, "at": "2012-04-10T08:00:01"}
    answer = live.ask("POST", "/v1/visits", json={"visits": [tomorrow, late]})
    assert answer.status_code == 422
    assert answer.json()["error"] == (
        "visits[1].at: 2012-04-10T12:00:01Z is more than a day after 2012-04-09T12:00:00Z, the "
        "current time of this machine; correct the time of the visit (or that clock)"
    )
    assert live.ask("GET", "/v1/users/ida/visits").json()["visits"] == []
    assert live.post(**tomorrow)["stored"] == 1


def test_a_stored_future_visit_changes_no_answer_and_can_be_deleted(live: Live) -> None:
    """An older castpoi may have kept one."""
    live.post(user="jan", place="park", at=AT)
    before = live.recommend(user="jan")["recommendations"]
    late = {"place": "cafe", "at": "2099-12-31T18:00:00+01:00"}
    future_us = instant_us(late["at"], what="at")
    live.service.store.add([StoredVisit(user="jan", place="cafe", at_us=future_us, key="7")])
    after = live.recommend(user="jan")
    assert after["recommendations"] == before
    assert after["remarks"] == ["1 visit was left out: more than a day later than now"]
    for deleted in (1, 0):
        answer = live.ask("DELETE", "/v1/visits", params={"user": "jan", **late})
        assert answer.json() == {"deleted": deleted}
    assert live.recommend(user="jan")["remarks"] == []


def test_one_visit_is_deleted_by_its_place_and_local_time(
    live: Live,
) -> None:
    live.post(user="kim", place="cafe", at="2012-04-03T12:00:00Z")
    visit = {"user": "kim", "place": "cafe", "at": "2012-04-03T08:00:00"}
    for other in ({"user": "jo"}, {"place": "park"}, {"at": "2012-04-03T08:00:01"}):
        answer = live.ask("DELETE", "/v1/visits", params={**visit, **other})
        assert answer.json() == {"deleted": 0}
    assert live.ask("DELETE", "/v1/visits", params=visit).json() == {"deleted": 1}
    assert live.ask("GET", "/v1/users/kim/visits").json()["visits"] == []
    nameless = live.ask("DELETE", "/v1/visits", params={"user": "kim"})
    assert [each["field"] for each in nameless.json()["fields"]] == ["place", "at"]


def test_pages_load_nothing_of_other_sites(live: Live) -> None:
    docs = live.ask("GET", "/docs/")
    assert "castpoi API" in docs.text
    assert "default-src 'self'" in docs.headers["content-security-policy"]
    for file in ("", "api.js", "api.css"):
        assert "//" not in live.ask("GET", f"/docs/{file}").text.replace("// ", "")
    paths = live.ask("GET", "/openapi.json").json()["paths"]
    assert {"/v1/recommend", "/v1/explain", "/v1/visits", "/v1/users/{user}/visits"} <= paths.keys()
    assert live.ask("GET", "/", follow_redirects=True).status_code == 200
    assert live.ask("GET", "/v1/model").headers["cache-control"] == "no-store"


def test_tiles_are_passed_to_the_map_and_allowed_by_its_policy(
    recommender: Recommender, tmp_path: Path
) -> None:
    tiles = "https://tiles.example.org/{z}/{x}/{y}.png"
    with living(service_of(recommender, tmp_path, ServiceSettings(tiles=tiles))) as live:
        page = live.ask("GET", "/")
    assert f'<meta name="castpoi-tiles" content="{tiles}" />' in page.text
    assert (
        "connect-src 'self' https://tiles.example.org;" in page.headers["content-security-policy"]
    )


def test_metrics_and_log_have_routes_and_no_personal_data(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="castpoi.serving"):
        live.post(user="the-secret-user", place="cafe", at=AT)
        live.ask("GET", "/v1/users/the-secret-user/visits")
        live.ask("GET", "/v1/places?bbox=40.7123,-75,41,-73")
        live.ask("GET", "/v1/the-secret-user")
        wait_until(lambda: len(caplog.records) == 4)
    assert "route=/v1/users/{user}/visits status=200" in caplog.text
    assert "route=(none) status=404" in caplog.text
    page = live.ask("GET", "/metrics").text
    assert 'castpoi_requests_total{method="POST",route="/v1/visits",status="200"}' in page
    for name in ("request_seconds_bucket", "model_seconds_count", "requests_waiting", "batch_size"):
        assert f"castpoi_{name}" in page
    for text in (caplog.text, page):
        assert "secret" not in text
        assert "40.7123" not in text


def test_an_unexpected_error_is_a_500_and_is_logged_without_its_text(
    live: Live, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object, **__: object) -> None:
        raise RuntimeError("the-secret-user broke it")

    monkeypatch.setattr(live.service.store, "users", mistaken)
    answer = live.ask("GET", "/v1/users")
    assert answer.status_code == 500
    assert answer.json() == {
        "error": "the service failed unexpectedly; its log has the lines of the error"
    }
    assert "request failed kind=RuntimeError lines=" in caplog.text
    assert "secret" not in caplog.text


def test_with_keys_every_request_needs_one(recommender: Recommender, tmp_path: Path) -> None:
    settings = ServiceSettings(
        host="0.0.0.0", api_keys=(KEY, "another key of ours"), origins=("https://app.example.org",)
    )
    with living(service_of(recommender, tmp_path, settings)) as live:
        for path in ("/v1/model", "/v1/nothing", "/metrics"):
            answer = live.ask("GET", path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        for wrong in ("Bearer wrong", KEY, f"Basic {KEY}", "Bearer"):
            assert live.ask("GET", "/v1/model", headers={"Authorization": wrong}).status_code == 401
        for key in (KEY, "another key of ours"):
            right = {"Authorization": f"Bearer {key}", "Host": "castpoi.example.org"}
            assert live.ask("GET", "/v1/model", headers=right).status_code == 200
            behind_a_proxy = {**right, "Origin": "https://maps.example.org"}
            answer = live.ask("POST", "/v1/model/reload", headers=behind_a_proxy)
            assert answer.status_code == 200
        for path in ("/healthz", "/readyz", "/docs/", "/openapi.json"):
            assert live.ask("GET", path).status_code == 200
        asks = {
            "Origin": "https://app.example.org",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "Authorization",
        }
        allowed = live.ask("OPTIONS", "/v1/recommend", headers=asks)
        assert allowed.headers["access-control-allow-origin"] == "https://app.example.org"
        refused = live.ask("OPTIONS", "/v1/recommend", headers={**asks, "Origin": "https://x.org"})
        assert refused.status_code == 400
