"""The map in a real browser: headless Chromium, driven over the real service.

The browser is closed after each module: while it is open, its event loop runs in this thread, and
other tests could not run theirs.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from castpoi.recommend.recommender import Recommender
from tests.serving.live import Live, living, service_of
from tests.serving.map.page import PATIENCE_MS, new_page, remember

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
NO_WEBGL: Final = "HTMLCanvasElement.prototype.getContext = () => null;"
FLAGS: Final = [
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-quic", "--no-first-run"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),  # WebGL without a screen
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("the map is tested in Chromium: apt-get install chromium")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS + as_root)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def live(recommender: Recommender, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service with visits of Ann; tests that change visits use another user."""
    with living(service_of(recommender, tmp_path_factory.mktemp("store"))) as service:
        remember(service, "ann")
        yield service


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the page of a service; it is faster without WebGL."""
    contexts = []

    def opened(live: Live, *, has_webgl: bool = False, script: str = "") -> Page:
        page = new_page(browser, live, script=script + ("" if has_webgl else NO_WEBGL))
        contexts.append(page.context)
        return page

    yield opened
    for context in contexts:
        context.close()
