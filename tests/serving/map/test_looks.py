"""The look of the map page at both sizes, light and dark: nothing overlaps, is cut or excludes."""

from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.looks import DESK, PHONE, barriers_of, flaws_of
from tests.serving.live import Live
from tests.serving.map.page import choose, new_page, until

PARTS = "#panel, dialog[open], .maplibregl-control-container"


@pytest.fixture(scope="module")
def drawn(browser: Browser, live: Live) -> Iterator[Page]:
    page = new_page(browser, live)
    until(page, "!document.getElementById('sketch')")  # the map has been drawn
    yield page
    page.context.close()


@pytest.fixture(
    params=[(DESK, "light"), (DESK, "dark"), (PHONE, "light"), (PHONE, "dark")],
    ids=["desk light", "desk dark", "phone light", "phone dark"],
)
def page(drawn: Page, request: pytest.FixtureRequest) -> Page:
    """The page with Ann's list, at one size and in one theme."""
    size: ViewportSize
    theme: Literal["light", "dark"]
    size, theme = request.param
    drawn.set_viewport_size(size)
    drawn.emulate_media(color_scheme=theme)
    choose(drawn, "ann")
    return drawn


def test_nothing_overlaps_is_cut_or_excludes_anybody(page: Page) -> None:
    assert (flaws_of(page, within=PARTS), barriers_of(page)) == ([], [])
    page.click("#ranking > [data-place=theatre] .row-button")
    expect(page.locator(".explanation")).to_be_visible()
    # the list scrolls to the reasons, under the head of the panel, which stays: look from the top
    page.evaluate("document.querySelector('#sheet').scrollTo({ top: 0, behavior: 'instant' })")
    assert (flaws_of(page, within=PARTS), barriers_of(page)) == ([], [])
    page.keyboard.press("Escape")


def test_nor_does_a_place_with_its_reasons_and_a_visit_to_add(page: Page) -> None:
    page.fill("#place", "park")
    page.locator("#place-options li").first.click()
    expect(page.locator("#why-here strong")).to_be_visible()
    assert (flaws_of(page, within=PARTS), barriers_of(page)) == ([], [])
    page.click("#place-close")


def test_nor_do_filters_and_two_lists_beside_each_other(page: Page) -> None:
    page.click("#compare")
    page.click("#filters summary")
    assert (flaws_of(page, within=PARTS), barriers_of(page)) == ([], [])
    page.click("#filters summary")
    page.click("#compare")


def test_nor_does_the_menu_or_the_model_card(page: Page) -> None:
    page.click("#share summary")
    assert (flaws_of(page, within="#share-menu"), barriers_of(page)) == ([], [])
    page.click("#share summary")
    page.click("#model-link")
    assert (flaws_of(page, within="dialog[open]"), barriers_of(page)) == ([], [])
    page.keyboard.press("Escape")


def test_suggestions_are_in_view_also_on_a_phone(page: Page) -> None:
    page.fill("#place", "o")
    expect(page.locator("#place-options li").last).to_be_in_viewport()
    page.keyboard.press("Escape")
    page.fill("#place", "")


def test_the_sketch_has_the_places_where_the_map_has_them(drawn: Page) -> None:
    drawn.set_viewport_size(DESK)
    apart = drawn.evaluate(
        """async () => {
            const { projection } = await import("/map/sketch.js");
            const { roomIn } = await import("/map/atlas.js");
            const { map } = castpoi.atlas;
            const [box, container] = [[[-74.3, 40.5], [-73.7, 40.9]], map.getContainer()];
            const room = roomIn(container, document.getElementById("panel"));
            map.resize();
            map.fitBounds(box, { padding: room, duration: 0 });
            const pixelOf = projection(box, container, room);
            return [[-74.3, 40.5], [-73.9, 40.8], [-74, 41.5]].map((spot) => {
                const { x, y } = map.project(spot);
                const [left, top] = pixelOf(...spot);
                return Math.hypot(x - left, y - top);
            });
        }"""
    )
    assert max(apart) < 1
