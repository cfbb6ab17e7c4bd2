"""The map page if something is missing, late or rejected."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, Route, expect

from castpoi.recommend.recommender import Recommender
from castpoi.serving.settings import ServiceSettings
from tests.serving.live import Live, living, service_of
from tests.serving.map.page import PATIENCE_MS, choose, until

KEY: Final = "a key for the tests only"
ENDLESS_ANSWER: Final = """
    const fetched = window.fetch;
    window.requests = 0;
    window.fetch = (url, options) => {
        if (!String(url).endsWith("v1/recommend")) return fetched(url, options);
        window.requests += 1;
        const body = new ReadableStream({
            start: (stream) => options.signal.addEventListener(
                "abort", () => stream.error(options.signal.reason)),
        });
        return Promise.resolve(new Response(body));
    };
"""
"""Every request gets the beginning of an answer, the rest of which never comes."""


def test_without_webgl_the_page_shows_a_hint_and_the_list_works(
    live: Live, open_page: Callable[..., Page]
) -> None:
    page = open_page(live)
    expect(page.locator("#hint")).to_contain_text("cannot draw the map")
    choose(page, "ann")
    page.locator(".row-button").first.click()
    expect(page.locator(".terms")).to_be_visible()


def test_the_page_asks_for_a_key_and_keeps_it_in_memory_only(
    recommender: Recommender, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    settings = ServiceSettings(port=0, api_keys=(KEY,))
    with living(service_of(recommender, tmp_path, settings)) as locked:
        page = open_page(locked)
        page.fill("#key", "not the key at all")
        page.click("#key-dialog .main")
        expect(page.locator("#notice")).to_contain_text("This API key is not known")
        page.fill("#key", KEY)
        page.click("#key-dialog .main")
        page.wait_for_selector("#card:has-text('5 places')")
        page.click("#theme")
        kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert kept == '[{"castpoi-theme":"dark"},{}]'
        page.context.close()


def test_problems_are_shown_in_plain_words(live: Live, open_page: Callable[..., Page]) -> None:
    page = open_page(live)
    page.wait_for_selector("#card:has-text('5 places')")
    page.fill("#user", "nobody")
    page.press("#user", "Enter")
    expect(page.locator("#notice")).to_contain_text("Nobody with the id “nobody” has visits here")
    page.route("**/v1/recommend", lambda route: route.abort())
    page.fill("#user", "ann")
    page.press("#user", "Enter")
    expect(page.locator("#notice")).to_contain_text("The service does not answer")
    page.unroute("**/v1/recommend")
    page.click("text=Try again")
    expect(page.locator("#ranking > li")).to_have_count(5)


def test_tiles_come_from_the_configured_host_only(
    recommender: Recommender, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    settings = ServiceSettings(port=0, tiles="https://tiles.example.org/{z}/{x}/{y}.png")
    requested: list[str] = []
    referers: set[str | None] = set()

    def refuse(route: Route) -> None:
        requested.append(route.request.url)
        referers.add(route.request.headers.get("referer"))
        route.fulfill(status=404)

    with living(service_of(recommender, tmp_path, settings)) as tiled:
        page = open_page(tiled, has_webgl=True)
        page.context.route(re.compile("^https://"), refuse)
        expect(page.locator(".maplibregl-ctrl-attrib")).to_contain_text("tiles.example.org")
        for _ in range(PATIENCE_MS // 50):
            if requested:
                break
            page.wait_for_timeout(50)
        assert referers == {f"{tiled.address}/"}  # OpenStreetMap refuses requests without
        page.context.close()  # before its service, which waits for open connections
    assert requested
    assert all(url.startswith("https://tiles.example.org/") for url in requested)


def test_a_replaced_request_leaves_the_page_waiting_for_the_newer_one(
    live: Live, open_page: Callable[..., Page]
) -> None:
    page = open_page(live, script=ENDLESS_ANSWER)
    page.wait_for_selector("#card:has-text('5 places')")
    page.fill("#user", "ann")
    page.press("#user", "Enter")
    until(page, "window.requests === 1")
    page.evaluate("document.querySelector('#exclude-visited').click()")
    until(page, "window.requests === 2")
    page.wait_for_timeout(200)
    expect(page.locator("#answers")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#notice .problem")).to_have_count(0)
