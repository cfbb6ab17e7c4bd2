"""The docs site builds without a warning, and its generated pages follow the code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import castpoi
from castpoi.cli.main import GROUPS, VERBS
from tools import docs_site


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    found: dict[str, str] = docs_site.pages()
    return found


def test_every_public_name_and_every_verb_has_a_reference(pages: dict[str, str]) -> None:
    for name in set(castpoi.__all__) - {"__version__"}:
        assert f".{name}\n" in pages["reference/python.md"]
    verbs = [*(set(VERBS) - set(GROUPS))]
    verbs += [f"{group} {verb}" for group, own in GROUPS.items() for verb in own]
    assert all(f"## castpoi {verb}\n" in pages["reference/cli.md"] for verb in verbs)


def test_the_reference_of_http_shows_bodies_and_the_one_of_settings_defaults(
    pages: dict[str, str],
) -> None:
    assert "## POST /v1/recommend" in pages["reference/http.md"]
    assert "| `within_km` | number or null |" in pages["reference/http.md"]
    for route in ("POST /v1/recommend/batch", "GET /v1/places/{place}", "GET /v1/popular"):
        assert f"## {route}\n" in pages["reference/http.md"]
    assert "| `width` | `128` |" in pages["reference/settings.md"]
    assert "## Model: `ppm`\n" in pages["reference/settings.md"]


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", tmp_path],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text, page
        assert 'rel="stylesheet" href="http' not in text, page
