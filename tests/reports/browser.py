"""A real browser without a screen, for tests that must see a page."""

from collections.abc import Iterator
from contextlib import contextmanager
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
