"""Access with and without API keys, checks of settings, and pages of other sites."""

import json
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.recommender import Recommender
from castpoi.serving.middleware import KeyRing
from castpoi.serving.settings import ServiceSettings, is_loopback, read_api_keys
from tests.messages import refused
from tests.serving.live import Live, living, service_of

KEY = "k" * 40
AT = "2012-04-09T08:00:00-04:00"
FAR = [
    "https://evil.example.org",
    "http://localhost.example.org",
    "http://192.168.1.4:8080",
    "http://[::1].example.org",
    "null",
]
HERE = ["http://localhost:5173", "http://LOCALHOST", "http://127.0.0.1:8080", "http://[::1]:8080"]


def test_keys_come_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# of the app\n{KEY}\n\n  other-key-of-the-app  \n")
    found = read_api_keys(file, {"CASTPOI_API_KEYS": "one-from-outside,, two-from-outside "})
    assert found == ["one-from-outside", "two-from-outside", KEY, "other-key-of-the-app"]
    assert read_api_keys(None, {}) == []


def test_a_key_file_without_keys_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# none yet\n")
    with refused(BadInput):
        read_api_keys(tmp_path / "keys", {})
    with refused(BadInput):
        read_api_keys(tmp_path / "missing", {})
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    with refused(BadInput):
        read_api_keys(tmp_path / "picture", {})


def test_only_a_whole_key_is_accepted() -> None:
    ring = KeyRing([KEY, "another key of ours"])
    assert ring.admits(KEY)
    assert ring.admits("another key of ours")
    for wrong in ("", KEY[:-1], KEY + "k", KEY.upper(), "another key", "é"):
        assert not ring.admits(wrong)
    assert not KeyRing([]).admits("")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.9.1"])
def test_no_key_is_needed_on_loopback(host: str) -> None:
    assert is_loopback(host)
    ServiceSettings(host=host)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example.org", ""])
def test_other_hosts_need_a_key(host: str) -> None:
    with refused(BadInput):
        ServiceSettings(host=host)
    ServiceSettings(host=host, api_keys=(KEY,))


@pytest.mark.parametrize("key", ["swordfish", "ключ" * 10])
def test_a_weak_key_is_rejected_and_not_shown(key: str) -> None:
    with refused(BadInput) as error:
        ServiceSettings(api_keys=(KEY, key))
    assert key not in str(error.value)


@pytest.mark.parametrize("origin", ["*", "https://*", "app.example.org", "https://a.org/path"])
def test_an_origin_must_be_complete(origin: str) -> None:
    with refused(BadInput):
        ServiceSettings(origins=(origin,))


@pytest.mark.parametrize("tiles", ["tiles.png", "https://t.org/1.png", "https://t.org/{z}.png' x"])
def test_tiles_must_be_a_url_with_a_zoom(tiles: str) -> None:
    with refused(BadInput):
        ServiceSettings(tiles=tiles)


def loads_of(live: Live) -> float:
    """How often the service has loaded its run."""
    loaded = 'castpoi_model_loads_total{outcome="loaded"} '
    lines = live.ask("GET", "/metrics").text.splitlines()
    return sum(float(line.removeprefix(loaded)) for line in lines if line.startswith(loaded))


def test_a_page_of_another_site_cannot_read_without_a_key(live: Live) -> None:
    rebound = live.ask("GET", "/v1/model", headers={"Host": "evil.example.org:8080"})
    assert rebound.status_code == 403
    assert "only requests to localhost are accepted" in rebound.json()["error"]
    foreign = live.ask("GET", "/v1/model", headers={"Origin": "https://evil.example.org"})
    assert "access-control-allow-origin" not in foreign.headers


@pytest.mark.parametrize(
    ("status", "hosts"),
    [
        (200, ["LOCALHOST", "LocalHost:8080", "127.0.0.1", "[::1]", "[::1]:8080", "[0:0:0::1]:80"]),
        (403, ["[::1].example.org", "[::1]8080", "[::1", "::1]", "localhost.example.org", ""]),
    ],
)
def test_only_loopback_hosts_are_accepted_without_a_key(
    live: Live, status: int, hosts: list[str]
) -> None:
    found = [live.ask("GET", "/v1/model", headers={"Host": host}).status_code for host in hosts]
    assert found == [status] * len(hosts)


@pytest.mark.parametrize("kind", [{"Content-Type": "text/plain"}, {}])
def test_a_body_without_the_content_type_of_json_is_rejected(
    live: Live, kind: dict[str, str]
) -> None:
    visit = json.dumps({"user": "eve", "place": "cafe", "at": AT})
    assert live.ask("POST", "/v1/visits", content=visit, headers=kind).status_code == 422
    assert live.ask("GET", "/v1/users/eve/visits").json()["visits"] == []


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
    visits = live.ask("GET", "/v1/users/fay/visits").json()["visits"]
    assert [each["place"] for each in visits] == ["cafe"]


@pytest.mark.parametrize("origin", HERE)
def test_a_page_of_this_machine_has_access_without_a_key(live: Live, origin: str) -> None:
    before = loads_of(live)
    assert live.ask("POST", "/v1/model/reload", headers={"Origin": origin}).status_code == 200
    assert loads_of(live) == before + 1


def test_a_page_of_a_configured_origin_has_access_without_a_key(
    recommender: Recommender, tmp_path: Path
) -> None:
    named = ServiceSettings(origins=("https://app.example.org",))
    with living(service_of(recommender, tmp_path, named)) as live:
        for origin, status in (("https://app.example.org", 200), ("https://evil.example.org", 403)):
            answer = live.ask("POST", "/v1/model/reload", headers={"Origin": origin})
            assert answer.status_code == status
