"""Whom the service lets in, and which settings it refuses."""

from pathlib import Path

import pytest

from castpoi.core.errors import BadInput
from castpoi.serving.middleware import KeyRing
from castpoi.serving.settings import Limits, ServiceSettings, is_loopback, read_api_keys
from tests.messages import refused

KEY = "k" * 40


def test_keys_come_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# of the app\n{KEY}\n\n  other-key-of-the-app  \n")
    found = read_api_keys(file, {"CASTPOI_API_KEYS": "one-from-outside,, two-from-outside "})
    assert found == ["one-from-outside", "two-from-outside", KEY, "other-key-of-the-app"]
    assert read_api_keys(None, {}) == []


def test_a_key_file_without_keys_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# none yet\n")
    with refused(BadInput):
        read_api_keys(tmp_path / "keys", {})
    with refused(BadInput):
        read_api_keys(tmp_path / "missing", {})
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    with refused(BadInput):
        read_api_keys(tmp_path / "picture", {})


def test_only_a_whole_key_opens_the_door() -> None:
    ring = KeyRing([KEY, "another key of ours"])
    assert ring.admits(KEY)
    assert ring.admits("another key of ours")
    for wrong in ("", KEY[:-1], KEY + "k", KEY.upper(), "another key", "é"):
        assert not ring.admits(wrong)
    assert not KeyRing([]).admits("")


def test_keys_are_not_kept_as_they_are() -> None:
    assert KEY not in repr(vars(KeyRing([KEY])))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.9.1"])
def test_on_this_machine_no_key_is_needed(host: str) -> None:
    assert is_loopback(host)
    ServiceSettings(host=host)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example.org", ""])
def test_elsewhere_a_key_is_needed(host: str) -> None:
    with refused(BadInput):
        ServiceSettings(host=host)
    ServiceSettings(host=host, api_keys=(KEY,))


@pytest.mark.parametrize("key", ["swordfish", "ключ" * 10])
def test_a_key_that_can_be_guessed_is_refused_and_not_shown(key: str) -> None:
    with refused(BadInput) as told:
        ServiceSettings(api_keys=(KEY, key))
    assert key not in str(told.value)


@pytest.mark.parametrize("origin", ["*", "https://*", "app.example.org", "https://a.org/path"])
def test_an_origin_is_named_in_full(origin: str) -> None:
    with refused(BadInput):
        ServiceSettings(origins=(origin,))


@pytest.mark.parametrize("tiles", ["tiles.png", "https://t.org/1.png", "https://t.org/{z}.png' x"])
def test_tiles_are_an_address_with_a_zoom(tiles: str) -> None:
    with refused(BadInput):
        ServiceSettings(tiles=tiles)


def test_a_limit_of_nothing_is_refused() -> None:
    with refused(BadInput):
        Limits(waiting=0)
