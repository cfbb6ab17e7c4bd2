"""What pages of other sites can try with a service on this machine that has no keys."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from castpoi.recommend.recommender import Recommender
from castpoi.serving.settings import ServiceSettings
from tests.serving.live import Live, living, service_of

AT = "2012-04-09T08:00:00-04:00"
FAR = [
    "https://evil.example.org",
    "http://localhost.example.org",
    "http://192.168.1.4:8080",
    "http://[::1].example.org",
    "null",
]
HERE = ["http://localhost:5173", "http://LOCALHOST", "http://127.0.0.1:8080", "http://[::1]:8080"]


@pytest.fixture(scope="module")
def live(recommender: Recommender, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service on this machine, without keys; tests use users of their own."""
    with living(service_of(recommender, tmp_path_factory.mktemp("store"))) as service:
        yield service


def loads_of(live: Live) -> float:
    """How often the service has loaded its run."""
    loaded = 'castpoi_model_loads_total{outcome="loaded"} '
    lines = live.ask("GET", "/metrics").text.splitlines()
    return sum(float(line.removeprefix(loaded)) for line in lines if line.startswith(loaded))


def test_a_page_of_another_site_cannot_ask_without_a_key(live: Live) -> None:
    rebound = live.ask("GET", "/v1/model", headers={"Host": "evil.example.org:8080"})
    assert rebound.status_code == 403
    assert "only requests to localhost are accepted" in rebound.json()["error"]
    foreign = live.ask("GET", "/v1/model", headers={"Origin": "https://evil.example.org"})
    assert "access-control-allow-origin" not in foreign.headers


@pytest.mark.parametrize(
    "host",
    ["[::1].example.org", "[::1]8080", "[::1", "::1]", "localhost.example.org", "[localhost", ""],
)
def test_a_host_that_only_begins_like_this_machine_is_refused(live: Live, host: str) -> None:
    assert live.ask("GET", "/v1/model", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize(
    "host", ["LOCALHOST", "LocalHost:8080", "127.0.0.1", "[::1]", "[::1]:8080", "[0:0:0::1]:80"]
)
def test_a_host_is_this_machine_in_any_case_and_with_or_without_a_port(
    live: Live, host: str
) -> None:
    assert live.ask("GET", "/v1/model", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("kind", [{"Content-Type": "text/plain"}, {}])
def test_a_body_that_does_not_call_itself_json_is_refused(live: Live, kind: dict[str, str]) -> None:
    visit = json.dumps({"user": "eve", "place": "cafe", "at": AT})
    assert live.ask("POST", "/v1/visits", content=visit, headers=kind).status_code == 422
    assert live.ask("GET", "/v1/users/eve/visits").json() == {"visits": []}


@pytest.mark.parametrize("origin", FAR)
def test_a_page_of_another_site_changes_nothing_without_a_key(live: Live, origin: str) -> None:
    before = loads_of(live)
    visit = {"user": "fay", "place": "cafe", "at": AT}
    live.post(**visit)
    for method, path, body in (
        ("POST", "/v1/model/reload", None),
        ("POST", "/v1/visits", {**visit, "place": "park"}),
        ("DELETE", "/v1/users/fay", None),
    ):
        refused = live.ask(method, path, json=body, headers={"Origin": origin})
        assert refused.status_code == 403
        assert "start the service with --cors-origin" in refused.json()["error"]
    assert loads_of(live) == before
    told = live.ask("GET", "/v1/users/fay/visits").json()["visits"]
    assert [each["place"] for each in told] == ["cafe"]


@pytest.mark.parametrize("origin", HERE)
def test_a_page_of_this_machine_may_ask_without_a_key(live: Live, origin: str) -> None:
    before = loads_of(live)
    assert live.ask("POST", "/v1/model/reload", headers={"Origin": origin}).status_code == 200
    assert loads_of(live) == before + 1


def test_a_page_of_a_site_that_was_named_may_ask_without_a_key(
    recommender: Recommender, tmp_path: Path
) -> None:
    named = ServiceSettings(origins=("https://app.example.org",))
    with living(service_of(recommender, tmp_path, named)) as live:
        for origin, status in (("https://app.example.org", 200), ("https://evil.example.org", 403)):
            answer = live.ask("POST", "/v1/model/reload", headers={"Origin": origin})
            assert answer.status_code == status
