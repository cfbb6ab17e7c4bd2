"""How a page looks, without a picture: texts and controls that overlap or are cut, and axe-core.

`vendor/axe.min.js` is axe-core 4.10.2 (Mozilla Public License 2.0) as published.
"""

from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, ViewportSize

DESK: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}

_AXE: Final = Path(__file__).parent / "vendor" / "axe.min.js"
_LOOKS: Final = 10
_BETWEEN_MS: Final = 200
_FLAWS: Final = Path(__file__).with_suffix(".js")


def flaws_of(page: Page, *, within: str = "body", without: str = ".unseen") -> list[str]:
    """Texts and controls that overlap or are cut, within some elements (CSS selectors).

    A list may still be scrolling, so only flaws that last are returned.
    """
    found: list[str] = []
    for _ in range(_LOOKS):
        found = page.evaluate(_FLAWS.read_text(encoding="utf-8"), [within, without])
        if not found:
            break
        page.wait_for_timeout(_BETWEEN_MS)
    return found


def barriers_of(page: Page) -> list[str]:
    """What keeps people from using the page, by axe-core: rule, impact and the first element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("() => axe.run({ resultTypes: ['violations'] })")
    return [
        f"{each['id']} ({each['impact']}): {each['nodes'][0]['html'][:120]}"
        for each in found["violations"]
    ]
