"""What the panel answers: for whom, when, where and why; its texts agree and nothing is cut."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from castpoi.recommend.recommender import Recommender
from castpoi.serving.service import Service
from castpoi.serving.settings import ServiceSettings
from castpoi.serving.store import VisitStore
from tests.serving.live import Live, living, service_of
from tests.serving.map.conftest import NO_WEBGL
from tests.serving.map.page import PHONE, choose, new_page, ranking, remember, until_answered

HOME: Final = "Residence"
CUT: Final = """(elements) => elements.filter((each) =>
    each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1
).map((each) => each.textContent)"""
"""Texts of elements that are larger than their boxes."""
OVERLAPS: Final = """(elements) => {
    const boxes = elements.map((each) => each.getBoundingClientRect());
    const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
        && one.top < other.bottom - 1 && other.top < one.bottom - 1;
    return elements.flatMap((each, index) => elements.slice(index + 1)
        .filter((_, after) => meet(boxes[index], boxes[index + 1 + after]))
        .map((other) => [each.textContent, other.textContent]));
}"""
"""Pairs of texts whose boxes overlap."""


@pytest.fixture(scope="module")
def panel(browser: Browser, live: Live) -> Iterator[Page]:
    """One page without a map for all tests of this file; it is faster."""
    page = new_page(browser, live, script=NO_WEBGL)
    page.wait_for_selector("#card:has-text('5 places')")
    yield page
    page.context.close()


@pytest.fixture
def ann(panel: Page) -> Page:
    """The page with Ann's recommendations, without filters and a moment."""
    panel.check("input[value=user]")
    panel.select_option("#moment", "")
    choose(panel, "ann")
    return panel


def opened(page: Page, live: Live, place: str) -> dict[str, Any]:
    """Open the row of a place; returns its explanation."""
    answer = live.ask("POST", "/v1/explain", json={"user": "ann", "candidates": [place], "k": 1})
    page.click(f"#ranking > [data-place={place}] .row-button")
    expect(page.locator(".explanation")).to_be_visible()
    found: dict[str, Any] = answer.json()["recommendations"][0]
    return found


def test_visits_that_explain_a_place_are_grouped_by_their_place(live: Live, ann: Page) -> None:
    visits = opened(ann, live, "cafe")["visits"]
    groups = ann.locator(".contributions > li")
    assert groups.count() == len({visit["place"] for visit in visits}) < len(visits)
    here = [visit["weight"] for visit in visits if visit["place"] == "cafe"]
    expect(groups.filter(has_text="here")).to_contain_text("1 of 2 visits here")
    assert len(here) == 1
    office = [visit["weight"] for visit in visits if visit["place"] == "office"]
    row = groups.filter(has_text="2 visits to Office")
    expect(row.locator(".weight")).to_have_text(f"{round(100 * sum(office))}\u202f%")
    assert row.locator("details li").count() == len(office) == 2
    ann.keyboard.press("Escape")


def test_the_sentence_and_the_list_agree_on_hours_and_are_about_somebody_else(
    live: Live, ann: Page
) -> None:
    sentence = opened(ann, live, "cafe")["sentence"]
    assert sentence.startswith("You were here 2 times, last 1 hour ago")
    shown = ann.locator(".explanation .sentence").inner_text()
    assert shown.startswith("They were here 2 times, last 1 hour ago")
    assert "you" not in shown.lower().split()
    here = ann.locator(".contributions > li").filter(has_text="here")
    expect(here.locator("small")).to_contain_text("1 hour ago")
    ann.keyboard.press("Escape")


def test_hours_are_cut_like_those_of_the_sentence(panel: Page) -> None:
    words = panel.evaluate(
        "import('/map/words.js').then(({ago}) => [20.9, 23.99, 47.9, 13 * 24, 3 - 1e-9].map(ago))"
    )
    assert words == ["20 hours ago", "23 hours ago", "1 day ago", "13 days ago", "3 hours ago"]


def test_the_bar_of_a_place_is_as_long_as_its_probability(live: Live, ann: Page) -> None:
    shares = ann.locator("#ranking .bar").evaluate_all(
        "(bars) => bars.map((bar) => bar.firstChild.offsetWidth / bar.offsetWidth)"
    )
    expected = [each["probability"] for each in live.recommend(user="ann")["recommendations"]]
    assert shares == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("width", [1280, PHONE["width"]], ids=["desktop", "phone"])
def test_no_text_of_the_list_is_cut_and_no_boxes_overlap(live: Live, ann: Page, width: int) -> None:
    ann.set_viewport_size({"width": width, "height": 800})
    opened(ann, live, "cafe")
    texts = "#ranking .title, #ranking .detail, .probability, .contributions small, #who"
    assert ann.locator(texts).evaluate_all(CUT) == []
    parts = "#who, #compare, #share summary, #ranking .title, #ranking .detail, .probability"
    ann.evaluate("document.querySelector('#sheet').scrollTo(0, 0)")
    assert ann.locator(parts).evaluate_all(OVERLAPS) == []
    ann.keyboard.press("Escape")


def test_the_person_stays_in_view_beside_an_explanation(live: Live, ann: Page) -> None:
    ann.set_viewport_size({"width": 1280, "height": 500})
    opened(ann, live, "theatre")
    ann.evaluate("document.querySelector('#sheet').scrollTo(0, 9999)")
    expect(ann.locator("#who")).to_be_in_viewport(ratio=1)
    expect(ann.locator("#who")).to_have_text("ann, after the last visit")
    ann.keyboard.press("Escape")


def test_a_history_of_ones_own_begins_where_the_data_end(ann: Page) -> None:
    ann.check("input[value=history]")
    for _ in range(2):
        ann.fill("#place", "park")
        ann.locator("#place-options li").first.click()
        expect(ann.locator("#visit-at")).not_to_have_value("")
        with ann.expect_response("**/v1/recommend"):
            ann.click("#visit button")
        until_answered(ann)
    times = ann.locator("#history input")
    assert [times.nth(number).input_value() for number in (1, 0)] == [
        *("2012-04-03T09:00", "2012-04-03T10:00"),
    ]
    expect(ann.locator("#who")).to_have_text("your history, after the last visit")
    ann.locator("#ranking > [data-place=park] .row-button").click()
    expect(ann.locator(".explanation .sentence")).to_contain_text("You were here")
    ann.keyboard.press("Escape")


def test_the_moment_is_a_local_time_of_the_city(ann: Page) -> None:
    with ann.expect_response("**/v1/recommend"):
        ann.select_option("#moment", "at")
    expect(ann.locator("#moment-at")).to_have_value("2012-04-03T10:00")
    expect(ann.locator("#moment-note")).to_contain_text("does not use the time of the request")
    with ann.expect_request(lambda sent: "2012-04-02" in (sent.post_data or "")) as request:
        ann.fill("#moment-at", "2012-04-02T20:00")
        ann.dispatch_event("#moment-at", "change")
    assert json.loads(request.value.post_data or "{}")["at"] == "2012-04-02T20:00:00-04:00"
    until_answered(ann)
    expect(ann.locator("#who")).to_have_text("ann, Mon, 2 Apr 2012, 20:00")
    expect(ann.locator("#notice")).to_contain_text("2 visits were left out")


def test_offsets_of_local_times_follow_summer_time(panel: Page) -> None:
    times = panel.evaluate(
        """import('/map/moment.js').then(({ instantOf }) => [
            ["2012-01-03T18:00", "America/New_York"], ["2012-07-03T18:00", "America/New_York"],
            ["2012-07-03T18:00", "Asia/Kathmandu"], ["2012-07-03T18:00", "UTC"],
        ].map(([wall, zone]) => instantOf(wall, zone)))"""
    )
    assert [each[16:] for each in times] == [":00-05:00", ":00-04:00", ":00+05:45", ":00+00:00"]


def test_why_not_here_has_the_rank_the_terms_and_what_is_missing(live: Live, ann: Page) -> None:
    listed = live.recommend(user="ann")["recommendations"]
    last = listed[-1]
    ann.fill("#place", last["name"])
    ann.locator("#place-options li").first.click()
    expect(ann.locator("#why-here strong")).to_have_text("No. 5")
    gap = abs(last["score"] - listed[0]["score"])
    expect(ann.locator("#why-here")).to_contain_text(f"differs by −{gap:.2f} from no. 1")
    columns = ann.locator(".beside thead th").all_inner_texts()
    assert columns == ["Term", "Here", "No. 1"]
    ann.click("#filters summary")
    with ann.expect_response("**/v1/explain"):
        ann.fill("#within", "0.1")
    expect(ann.locator("#why-here")).to_contain_text("It cannot be in this list")
    ann.click("#clear-filters")
    expect(ann.locator("#why-here strong")).to_have_text("No. 5")
    ann.click("#filters summary")
    ann.click("#place-close")
    expect(ann.locator("#place-card")).to_be_hidden()


def test_a_term_shows_its_meaning_when_it_is_pressed(live: Live, ann: Page) -> None:
    meaning = live.ask("GET", "/v1/model").json()["terms"]["base"]
    opened(ann, live, "cafe")
    expect(ann.locator(".meaning").first).to_be_hidden()
    ann.click(".terms .term >> nth=0")
    expect(ann.locator(".meaning").first).to_have_text(meaning)
    ann.keyboard.press("Escape")


def test_two_lists_are_side_by_side_with_the_ranks_of_each_other(ann: Page) -> None:
    ann.set_viewport_size({"width": 1280, "height": 800})
    first = ranking(ann)
    ann.click("#compare")
    with ann.expect_response("**/v1/recommend"):
        ann.click("#filters summary")
        ann.check("#new-only")
    until_answered(ann)
    second = ranking(ann)
    assert second != first
    expect(ann.locator("#kept-title")).to_have_text("ann, after the last visit")
    details = ann.locator("#kept-ranking .detail").all_inner_texts()
    assert details == [
        "not in the other list"
        if place not in second
        else "the same in the other list"
        if second.index(place) == rank
        else f"no. {second.index(place) + 1} in the other list"
        for rank, place in enumerate(first)
    ]
    kept, shown = ann.locator("#kept").bounding_box(), ann.locator("#ranking").bounding_box()
    assert kept is not None
    assert shown is not None
    assert shown["x"] + shown["width"] <= kept["x"]
    ann.click("#clear-filters")
    ann.click("#compare")
    expect(ann.locator("#kept")).to_be_hidden()
    ann.click("#filters summary")


def test_two_runs_are_side_by_side(
    recommender: Recommender,
    near_sighted: Recommender,
    tmp_path: Path,
    open_page: Callable[..., Page],
) -> None:
    service = Service(
        settings=ServiceSettings(port=0),
        load=lambda: recommender,
        store=VisitStore(f"sqlite:///{tmp_path}/visits.sqlite"),
        name="a",
        others={"b": lambda: near_sighted},
        shares={"a": 1.0, "b": 1.0},
    )
    with living(service) as several:
        remember(several, "ann")
        page = open_page(several)
        page.wait_for_selector("#card:has-text('5 places')")
        page.select_option("#run", "a")
        choose(page, "ann")
        page.click("#compare")
        with page.expect_response("**/v1/recommend"):
            page.select_option("#run", "b")
        until_answered(page)
        expect(page.locator("#kept-title")).to_have_text("ann, after the last visit, run a")
        expect(page.locator("#who")).to_have_text("ann, after the last visit, run b")
        for run, selector in (("a", "#kept-ranking"), ("b", "#ranking")):
            listed = several.recommend(user="ann", run=run)["recommendations"]
            names = page.locator(f"{selector} .title").all_inner_texts()
            assert names == [each["name"] for each in listed]
        page.locator("#ranking .row-button").first.click()
        page.click(".terms .term:has-text('Distance')")  # a term that only run b has
        meaning = several.ask("GET", "/v1/model?run=b").json()["terms"]["distance"]
        expect(page.locator(".meaning:visible")).to_have_text(meaning)
        page.context.close()


def test_a_link_opens_the_same_view_and_has_no_id_unless_asked(
    live: Live, ann: Page, open_page: Callable[..., Page]
) -> None:
    link = """(withIds) => import('/map/share.js').then(({ linkOf }) => linkOf({
        filters: { k: 2, new_only: true }, when: "2012-04-03T20:00", user: withIds && "ann" }))"""
    assert "ann" not in ann.evaluate(link, False)
    other = open_page(live)
    other.goto("about:blank")
    other.goto(ann.evaluate(link, True))
    expect(other.locator("#who")).to_have_text("ann, Tue, 3 Apr 2012, 20:00")
    assert ranking(other) == [
        each["place"]
        for each in live.recommend(user="ann", k=2, new_only=True, at="2012-04-03T20:00:00-04:00")[
            "recommendations"
        ]
    ]
    assert other.url == live.address + "/"  # the id does not stay in the address


def test_the_list_is_saved_as_csv_and_geojson(live: Live, ann: Page) -> None:
    listed = live.recommend(user="ann")["recommendations"]
    files = {}
    for kind in ("csv", "geojson"):
        ann.click("#share summary")
        with ann.expect_download() as saved:
            ann.click(f"#save-{kind}")
        files[kind] = Path(saved.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(files["csv"])))
    assert [row["place"] for row in rows] == [each["place"] for each in listed]
    assert float(rows[0]["probability"]) == listed[0]["probability"]
    features = json.loads(files["geojson"])["features"]
    assert features[0]["geometry"]["coordinates"] == [listed[0]["lon"], listed[0]["lat"]]
    assert "lat" not in features[0]["properties"]


def test_private_places_are_never_shown_to_strangers(
    recommender: Recommender, tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    private = Recommender(recommender.run, recommender.places, private_categories=["Arts"])
    with living(service_of(private, tmp_path)) as discreet:
        assert "theatre" not in discreet.ask("GET", "/v1/places").text
        page = open_page(discreet)
        page.wait_for_selector("#card:has-text('5 places')")
        page.fill("#place", "theatre")
        page.wait_for_timeout(400)
        expect(page.locator("#place-options")).to_be_hidden()
        page.check("input[value=history]")
        expect(page.locator("#ranking > li")).to_have_count(4)
        assert "theatre" not in ranking(page)
        page.context.close()


def test_homes_of_the_synthetic_city_are_private_by_default(recommender: Recommender) -> None:
    assert HOME in recommender.places.private_categories


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element with the selector has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"Tab does not reach {selector}")


def test_the_keyboard_alone_is_enough(live: Live, open_page: Callable[..., Page]) -> None:
    remember(live, "kim")
    page = open_page(live)
    page.wait_for_selector("#card:has-text('5 places')")
    tab_to(page, "#user")
    page.keyboard.type("kim")
    page.keyboard.press("Enter")
    expect(page.locator("#who")).to_have_text("kim, after the last visit")
    tab_to(page, "#place")
    page.keyboard.type("theatre")
    page.keyboard.press("Enter")
    expect(page.locator("#place-title")).to_have_text("Theatre")
    expect(page.locator("#why-here strong")).to_contain_text("No. ")
    tab_to(page, "#visit button")
    page.keyboard.press("Enter")
    expect(page.locator("#trajectory-summary")).to_contain_text("6 visits")
    until_answered(page)
    tab_to(page, "#share summary")
    page.keyboard.press("Enter")
    tab_to(page, "#save-csv")
    with page.expect_download():
        page.keyboard.press("Enter")
    tab_to(page, ".row-button")
    page.keyboard.press("Enter")
    tab_to(page, ".term")
    page.keyboard.press("Enter")
    expect(page.locator(".meaning").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".explanation")).to_have_count(0)
