"""Steps of the tests of the map page: open it, choose a person, wait."""

from dataclasses import dataclass, field
from typing import Final

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect

from tests.serving.live import Live

DESKTOP: Final[ViewportSize] = {"width": 960, "height": 560}
PHONE: Final[ViewportSize] = {"width": 390, "height": 700}
PATIENCE_MS: Final = 30_000
DAYS = [("cafe", 8), ("office", 9), ("park", 19), ("cafe", 32), ("office", 33)]


@dataclass
class PageLog:
    """The requests and the errors of a page."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> None:
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda problem: self.errors.append(str(problem)))
        page.on("console", self._note_console)

    def _note_console(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self.errors.append(line.text)


def new_page(browser: Browser, live: Live, *, script: str = "", log: PageLog | None = None) -> Page:
    context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    if script:
        context.add_init_script(script)
    page = context.new_page()
    if log is not None:
        log.attach(page)
    page.goto(live.address)
    return page


def remember(live: Live, user: str) -> None:
    visits = [
        {"user": user, "place": place, "at": f"2012-04-{2 + hour // 24:02}T{hour % 24:02}:00:00"}
        for place, hour in DAYS
    ]
    live.post(visits=visits)


def choose(page: Page, user: str) -> None:
    page.fill("#user", user)
    with page.expect_response("**/v1/recommend"):
        page.press("#user", "Enter")
    until_answered(page)


def until(page: Page, claim: str) -> None:
    """Wait until a claim in JavaScript holds; the page's policy forbids Playwright's own way."""
    for _ in range(PATIENCE_MS // 50):
        if page.evaluate(claim):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"it never became true: {claim}")


def until_answered(page: Page) -> None:
    expect(page.locator("#answers")).not_to_have_attribute("aria-busy", "true")


def ranking(page: Page) -> list[str]:
    return [str(row.get_attribute("data-place")) for row in page.locator("#ranking > li").all()]
