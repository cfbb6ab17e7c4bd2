"""The page of the API: every route with its nested fields, examples and a request to try."""

from playwright.sync_api import Browser, expect

from tests.serving.live import Live


def test_the_api_page_shows_every_route_and_sends_its_example(browser: Browser, live: Live) -> None:
    paths = live.ask("GET", "/openapi.json").json()["paths"]
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.goto(f"{live.address}/docs/#recommend")
    expect(page.locator("details")).to_have_count(sum(map(len, paths.values())))
    route = page.locator("#recommend")
    expect(route).to_contain_text("score_without")  # a field of a list within a list
    expect(route).to_contain_text("curl ")
    expect(route).to_contain_text("castpoi.Client(")
    route.get_by_role("button", name="Send").click()
    expect(route.locator("[aria-live]")).to_contain_text('"recommendations"')
    page.get_by_role("link", name="Map").click()
    expect(page).to_have_url(f"{live.address}/")
    assert not problems
    page.close()
