"""The map page: what it shows, and what clicks and keys do."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, ViewportSize, expect

from castpoi.recommend.recommender import Recommender
from tests.serving.live import Live, living, service_of
from tests.serving.map.page import (
    DESKTOP,
    PHONE,
    PageLog,
    choose,
    new_page,
    ranking,
    remember,
    until,
    until_answered,
)

BARS = """(bars) => bars.map((bar) => {
  const { left, right } = bar.getBoundingClientRect();
  return bar.className === "less" ? [right, left] : [left, right];
})"""
"""Where every bar begins and ends, in pixels."""
MORE_PLACES = """
    const fetched = window.fetch;
    window.fetch = async (url, options) => {
        const answer = await fetched(url, options);
        if (!String(url).endsWith("v1/model")) return answer;
        return Response.json({ ...(await answer.json()), places: 30000 });
    };
"""
"""The card has more places than are listed at once."""


@pytest.fixture(scope="module")
def log() -> PageLog:
    return PageLog()


@pytest.fixture(scope="module")
def drawn_page(browser: Browser, live: Live, log: PageLog) -> Iterator[Page]:
    """One page with a map for many tests: compiling shaders without a graphics card is slow."""
    page = new_page(browser, live, log=log)
    until_drawn(page)
    yield page
    page.context.close()


@pytest.fixture
def page(drawn_page: Page) -> Page:
    """The page with a map at its desktop size, nothing filtered and nothing opened."""
    drawn_page.set_viewport_size(DESKTOP)
    drawn_page.check("input[value=user]")
    drawn_page.evaluate("document.querySelector('#clear-filters').click()")
    drawn_page.evaluate("document.querySelector('#filters').open = false")
    drawn_page.evaluate("document.querySelector('#panel.tall #grip')?.click()")
    drawn_page.keyboard.press("Escape")
    until_answered(drawn_page)
    return drawn_page


def until_drawn(page: Page) -> None:
    page.wait_for_selector("#card:has-text('places')")
    until(page, "window.castpoi && castpoi.atlas.map.loaded() && !castpoi.atlas.map.isMoving()")


def drawn(page: Page, layer: str) -> int:
    until_drawn(page)
    layers = {"layers": [layer]}
    return int(page.evaluate("(it) => castpoi.atlas.map.queryRenderedFeatures(it).length", layers))


def click_place(page: Page, live: Live, name: str) -> None:
    """Click a place on the map, so close that no other pin covers it."""
    place = live.ask("GET", f"/v1/places?q={name}").json()["places"][0]
    centre = {"center": [place["lon"], place["lat"]], "zoom": 16}
    page.evaluate("(centre) => castpoi.atlas.map.jumpTo(centre)", centre)
    until_drawn(page)
    x, y = page.evaluate(
        """(at) => {
            const { left, top } = document.querySelector("#map").getBoundingClientRect();
            const { x, y } = castpoi.atlas.map.project(at);
            return [left + x, top + y];
        }""",
        centre["center"],
    )
    page.mouse.click(x, y)


def pixels_that_differ(page: Page, one: bytes, other: bytes) -> int:
    """How many pixels of two pictures differ, as the browser reads them."""
    reader = page.context.new_page()  # a blank page: ours may not load pictures
    pictures = [b64encode(picture).decode() for picture in (one, other)]
    count = reader.evaluate(
        """async (pictures) => {
            const [one, other] = await Promise.all(pictures.map(async (picture) => {
                const image = new Image();
                image.src = `data:image/png;base64,${picture}`;
                await image.decode();
                const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
                canvas.drawImage(image, 0, 0);
                return new Uint32Array(
                    canvas.getImageData(0, 0, image.width, image.height).data.buffer);
            }));
            return one.filter((pixel, index) => pixel !== other[index]).length;
        }""",
        pictures,
    )
    reader.close()
    return int(count)


def test_the_page_draws_every_place_and_contacts_only_its_service(
    live: Live, page: Page, log: PageLog
) -> None:
    assert drawn(page, "places") == 5
    names = {url.rpartition("/")[2].partition("?")[0] for url in log.requests}
    assert names >= {"maplibre-gl.mjs", "maplibre-gl-worker.mjs", "map.css", "model", "places"}
    assert drawn(page, "sea") > 0
    assert drawn(page, "land") > 0
    assert [url for url in log.requests if not url.startswith(live.address)] == []
    assert log.errors == []


def test_choosing_a_person_shows_the_ranking_of_the_service_and_as_many_pins(
    live: Live, page: Page
) -> None:
    page.click("#filters summary")
    page.fill("#k", "3")
    choose(page, "ann")
    expected = live.recommend(user="ann", k=3)["recommendations"]
    assert ranking(page) == [each["place"] for each in expected]
    assert page.locator(".pin b").all_inner_texts() == ["1", "2", "3"]
    probability = round(100 * expected[0]["probability"])
    expect(page.locator(".probability").first).to_have_text(f"{probability}\u202f%")
    expect(page.locator(".pin").first).to_contain_text(f"{probability}\u202f%")
    expect(page.locator("#trajectory-summary")).to_contain_text("Tue, 3 Apr 2012, 09:00 at Office")
    assert drawn(page, "trajectory") > 0


def test_a_clicked_recommendation_shows_its_explanation_and_lines_to_visits(
    live: Live, page: Page
) -> None:
    choose(page, "ann")
    assert drawn(page, "explanation") == 0
    second = live.recommend(user="ann", explain=True)["recommendations"][1]
    page.locator(".row-button").nth(1).click()
    assert second["sentence"] == "New to you; 12 km from your last visit"
    theirs = "New to them; 12 km from their last visit"
    expect(page.locator(".explanation .sentence")).to_have_text(theirs)
    numbers = [
        float(text.replace("−", "-")) for text in page.locator(".terms .value").all_inner_texts()
    ]
    *terms, score = numbers
    shown = [value for value in second["terms"].values() if abs(value) >= 0.005]
    assert terms == pytest.approx(shown, abs=0.005)
    assert sum(terms) == pytest.approx(score, abs=0.025)
    assert score == pytest.approx(second["score"], abs=0.005)
    assert page.locator(".contributions details li").count() == len(second["visits"])
    until(page, "castpoi.atlas.map.queryRenderedFeatures({layers: ['explanation']}).length > 0")


def test_without_a_reader_the_lines_lead_to_visits_with_counterfactuals(
    unread: Recommender, tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    with living(service_of(unread, tmp_path)) as ours:
        remember(ours, "ann")
        first = ours.recommend(user="ann", explain=True)["recommendations"][0]
        page = open_page(ours, has_webgl=True)
        choose(page, "ann")
        page.locator(".row-button").first.click()
        expect(page.locator(".explanation h3").last).to_have_text(
            "Visits that matter most (share of the total effect)"
        )
        assert page.locator(".contributions details li").count() == len(first["visits"]) > 0
        until(page, "Boolean(globalThis.castpoi)")
        until(page, "castpoi.atlas.map.queryRenderedFeatures({layers: ['explanation']}).length > 0")


def test_the_bars_include_the_terms_that_the_paper_does_not_have(
    near_sighted: Recommender, tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    with living(service_of(near_sighted, tmp_path)) as ours:
        remember(ours, "ann")
        first = ours.recommend(user="ann", explain=True)["recommendations"][0]
        page = open_page(ours)
        choose(page, "ann")
        page.locator(".row-button").first.click()
        expect(page.locator(".terms .term")).to_have_text(
            ["Base", "Popularity", "Reader", "Distance", "= Score"]  # revisit is 0.00
        )
        numbers = page.locator(".terms .value").all_inner_texts()
        bars = page.locator(".terms .track i").evaluate_all(BARS)
    shown = [float(text.replace("−", "-")) for text in numbers]
    assert abs(first["terms"].pop("revisit")) < 0.005
    assert shown == pytest.approx([*first["terms"].values(), first["score"]], abs=0.005)
    # each bar begins where the one before it ended, and the last of them ends at the score
    ends = [end for _, end in bars]
    assert [begin for begin, _ in bars[1:-1]] == pytest.approx(ends[:-2], abs=3)
    assert ends[-1] == pytest.approx(ends[-2], abs=3)


def test_the_search_offers_only_known_users(live: Live, open_page: Callable[..., Page]) -> None:
    for user in ("zoe", "zoe/2"):
        remember(live, user)
    page = open_page(live)
    offered = page.locator("#user-options li")
    page.fill("#user", "zo")
    expect(offered).to_have_text(["zoe5 visits", "zoe/25 visits"])
    page.fill("#user", "zoe/")
    expect(offered).to_have_text(["zoe/25 visits"])
    page.fill("#user", "zoe")  # an exact match comes first
    expect(offered).to_have_text(["zoe5 visits", "zoe/25 visits"])
    choose(page, "zoe")
    assert page.input_value("#user") == "zoe"
    page.fill("#user", "zoey")
    expect(page.locator("#user-options")).to_be_hidden()
    page.press("#user", "Enter")
    expect(page.locator("#notice")).to_contain_text("Nobody with the id “zoey” has visits here")


def test_a_large_city_is_read_for_the_visible_area_across_the_date_line(
    live: Live, open_page: Callable[..., Page]
) -> None:
    page = open_page(live, has_webgl=True, script=MORE_PLACES)
    page.wait_for_selector("#card:has-text('30,000 places')")
    until(page, "Boolean(globalThis.castpoi)")

    def is_about_fiji(request: Request) -> bool:
        box = parse_qs(urlsplit(request.url).query).get("bbox", ["0"])[0]
        return float(box.partition(",")[0]) < -10

    with page.expect_request(is_about_fiji) as request, page.expect_response("**/v1/places*"):
        page.evaluate("castpoi.atlas.map.jumpTo({ center: [180, -17], zoom: 8 })")
    box = parse_qs(urlsplit(request.value.url).query)["bbox"][0]
    south, west, north, east = map(float, box.split(","))
    assert south < -17 < north
    assert 170 < west < 180
    assert -180 < east < -170


def test_a_point_clicked_beyond_the_date_line_is_sent_within_180_degrees(
    page: Page,
) -> None:
    choose(page, "ann")
    page.click("#filters summary")
    page.click("#near")
    page.evaluate("castpoi.atlas.map.jumpTo({ center: [179.9, -17], zoom: 8 })")
    until_drawn(page)
    with page.expect_request("**/v1/recommend") as request:
        page.mouse.click(DESKTOP["width"] - 100, DESKTOP["height"] / 2)
    near = json.loads(request.value.post_data or "{}")["near"]
    assert -180 < near["lon"] < -175
    until_answered(page)


def test_a_requested_box_is_within_180_degrees(live: Live, open_page: Callable[..., Page]) -> None:
    page = open_page(live)
    boxes = page.evaluate(
        """import('/map/shapes.js').then(({ visibleBox }) => [
            [40, -75, 41, -73], [-95, 176, 95, 184], [0, -184, 1, -176], [0, 530, 1, 550],
            [-80, -200, 80, 170],
        ].map(visibleBox))"""
    )
    assert boxes == [
        *([40, -75, 41, -73], [-90, 176, 90, -176], [0, 176, 1, -176], [0, 170, 1, -170]),
        [-80, -180, 80, 180],
    ]


def test_an_added_visit_is_stored_and_changes_the_list(live: Live, page: Page) -> None:
    remember(live, "bob")  # a user of its own: other tests use Ann
    choose(page, "bob")
    before = page.locator(".probability").all_inner_texts()
    click_place(page, live, "theatre")
    expect(page.locator("#place-title")).to_have_text("Theatre")
    expect(page.locator("#visit-at")).to_have_value("2012-04-03T10:00")
    page.click("#visit button[type=submit]")
    expect(page.locator("#trajectory-summary")).to_contain_text("6 visits, the last")
    expect(page.locator("#toast")).to_be_visible()
    assert page.locator(".probability").all_inner_texts() != before
    kept = live.ask("GET", "/v1/users/bob/visits").json()["visits"]
    assert kept[-1]["place"] == "theatre"
    assert kept[-1]["at"] == "2012-04-03T10:00:00-04:00"


def test_clicked_places_become_a_history_that_is_never_stored(live: Live, page: Page) -> None:
    users = live.ask("GET", "/v1/users").json()
    page.check("input[value=history]")
    expect(page.locator("#notice")).to_contain_text("Click places on the map")
    for name in ("park", "station"):
        click_place(page, live, name)
        expect(page.locator("#history li").first).to_contain_text(name.capitalize())
    expect(page.locator("#history li")).to_have_count(2)
    page.locator("#history button").first.click()
    expect(page.locator("#history li")).to_have_count(1)
    assert live.ask("GET", "/v1/users").json() == users


def test_filters_narrow_the_list_and_an_empty_list_has_a_message(page: Page) -> None:
    choose(page, "ann")
    page.click("#filters summary")
    page.select_option("#category", "Arts")
    expect(page.locator("#ranking .title")).to_have_text(["Theatre"])
    page.fill("#within", "0.1")
    expect(page.locator("#notice")).to_contain_text("No place is left to recommend")
    page.click("#notice button")
    expect(page.locator("#ranking > li")).to_have_count(5)
    expect(page.locator("#filter-count")).to_be_empty()


def test_a_phone_never_scrolls_sideways_and_keeps_the_list_in_a_sheet(
    page: Page,
) -> None:
    page.set_viewport_size(PHONE)
    choose(page, "ann")
    page.locator(".row-button").first.click()
    expect(page.locator(".explanation")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert page.evaluate("document.querySelector('#sheet').scrollWidth") <= PHONE["width"]
    sheet = page.locator("#panel").bounding_box()
    assert sheet is not None
    assert (sheet["x"], sheet["width"]) == (0, PHONE["width"])
    assert sheet["y"] > PHONE["height"] / 3
    page.click("#grip")
    until(page, "document.querySelector('#panel').getBoundingClientRect().top < 150")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_map_is_visible(page: Page, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    choose(page, "ann")
    until_drawn(page)
    with_map = page.screenshot()
    hiding = page.add_style_tag(content=".maplibregl-canvas { visibility: hidden }")
    without = page.screenshot()
    hiding.evaluate("(tag) => tag.remove()")
    assert pixels_that_differ(page, with_map, without) > 100  # 0 if the canvas is blank


def test_distances_probabilities_and_times_in_words(page: Page) -> None:
    words = page.evaluate(
        """import('/map/words.js').then((words) => [
            ...[0.003, 0.304, 2.34, 1234.5].map(words.kilometres),
            ...[0.0004, 0.0234, 0.5].map(words.percent),
            ...[-1.234, 0.001].map(words.signed),
            ...[0, 0.5, 1, 50, 2000].map(words.ago),
            words.counted(1, 'visit'),
            words.clock('2012-04-03T18:00:09-04:00'),
            words.hourAfter('2012-12-31T23:30:00+09:00'),
        ])"""
    )
    assert words == [
        *("under 10 m", "300 m", "2.3 km", "1,235 km"),
        *("<\u202f0.1\u202f%", "2.3\u202f%", "50\u202f%"),
        *("−1.23", "0.00"),
        *("a moment ago", "30 minutes ago", "1 hour ago", "2 days ago", "2 months ago"),
        *("1 visit", "Tue, 3 Apr 2012, 18:00", "2013-01-01T00:30"),
    ]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_best_places_are_beside_the_panel_and_the_controls(page: Page, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    page.check("input[value=history]")  # leaving it chooses the person again: the map is fitted
    page.check("input[value=user]")
    choose(page, "ann")
    until_drawn(page)
    covered = page.evaluate(
        """() => {
            const box = (each) => each.getBoundingClientRect();
            const controls = [...document.querySelectorAll(".maplibregl-ctrl-group, #panel")];
            const pins = [...document.querySelectorAll(".pin")].slice(0, 5);
            return pins.flatMap((pin) => controls.filter((control) =>
                box(pin).left < box(control).right && box(control).left < box(pin).right
                && box(pin).top < box(control).bottom && box(control).top < box(pin).bottom
            ).map((control) => [pin.textContent, control.className]));
        }"""
    )
    assert page.locator(".pin").count() == 5
    assert covered == []


def test_an_explanation_zooms_to_the_places_it_names(page: Page) -> None:
    choose(page, "ann")
    page.click("#ranking > [data-place=office] .row-button")
    expect(page.locator(".explanation")).to_be_visible()
    until_drawn(page)
    seen = page.evaluate(
        """() => {
            const { map } = castpoi.atlas;
            const shown = map.querySourceFeatures("contributions");
            const inView = ({ geometry }) => map.getBounds().contains(geometry.coordinates);
            return [shown.length > 0, shown.every(inView), map.getZoom()];
        }"""
    )
    assert seen[:2] == [True, True]
    assert seen[2] > 10


def test_a_hidden_kind_of_places_is_not_drawn(page: Page) -> None:
    before = drawn(page, "places")
    entry = page.locator("#legend button").first
    entry.click()
    expect(entry).to_have_attribute("aria-pressed", "false")
    assert drawn(page, "places") < before
    entry.click()
    assert drawn(page, "places") == before


def test_the_map_is_saved_as_a_picture_with_its_pins(page: Page) -> None:
    choose(page, "ann")
    page.click("#share summary")
    with page.expect_download() as saved:
        page.click("#save-png")
    picture = Path(saved.value.path()).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000  # a blank picture of this size has fewer bytes
