"""A reader of HTML, and a real browser without a screen."""

from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

_CHROMIUM = Path("/usr/bin/chromium")
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Balance(HTMLParser):
    """Checks that every tag is closed in turn, and collects text, anchors and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        words = dict(attrs)
        self.anchors |= {words["id"] or ""} if "id" in words else set()
        self.links += [words["href"] or ""] if tag == "a" else []
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; skips where there is none."""
    if not _CHROMIUM.exists():
        pytest.skip(f"there is no {_CHROMIUM}")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(_CHROMIUM), args=list(_QUIET))
        try:
            yield browser
        finally:
            browser.close()


def problems_of(file: Path, theme: str) -> list[str]:
    """What overlaps, is cut or excludes people on a page, on a desk and on a phone."""
    from tests.looks import DESK, PHONE, barriers_of, flaws_of

    with chromium() as browser:
        tab = browser.new_page(viewport=DESK, color_scheme=theme)
        tab.goto(file.as_uri())
        problems = flaws_of(tab) + barriers_of(tab)
        tab.set_viewport_size(PHONE)
        return problems + flaws_of(tab) + barriers_of(tab)
