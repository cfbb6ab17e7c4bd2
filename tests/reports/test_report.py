"""A report: complete on disk, safe with any text, without network, on any screen."""

import base64
import hashlib
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from castpoi.reports.report import SECTIONS, Report, write_report
from tests.reports.pages import Balance, chromium, problems_of
from tests.reports.result_folders import result_of


def page_of(folder: Path, out: Path) -> tuple[Report, str]:
    """A report and its page."""
    report = write_report(folder, out, draws=50)
    return report, (out / "report.html").read_text(encoding="utf-8")


def test_every_tag_is_closed_and_every_link_leads_somewhere(report: Report, page: str) -> None:
    reader = Balance()
    reader.feed(page)
    assert reader.open == []
    assert "#main-table" in reader.links
    for link in reader.links:
        if link.startswith("#"):
            assert link[1:] in reader.anchors
        else:
            assert (report.out / link).exists(), link


def test_the_page_loads_nothing_and_runs_no_other_script(page: str) -> None:
    outside = re.findall(r"""(?:src|href|url\()\s*=?\s*["']?(?:https?:)?//[^"')]*""", page)
    assert outside == []
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page


def test_text_of_others_is_escaped(page: str) -> None:
    assert "Revisit &lt;heuristic&gt; &amp; co_1" in page
    assert "<heuristic>" not in page


def _contrast(share: float, ink: str, ground: str, card: str) -> float:
    """Contrast of a mixed colour on a card (WCAG 2)."""

    def light(channels: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    one, other, back = (
        [int(hue[at : at + 2], 16) / 255 for at in (1, 3, 5)] for hue in (ink, ground, card)
    )
    mixed = light([share * a + (1 - share) * b for a, b in zip(one, other, strict=True)])
    return max(mixed, light(back)) / min(mixed, light(back))


def test_stars_and_small_strata_are_legible_in_both_themes(page: str) -> None:
    faint = float(re.findall(r"\.faint \{ opacity: ([\d.]+)", page)[0])
    star = int(re.findall(r"sup \{.*?var\(--star\) (\d+)%, var\(--ink\)", page)[0]) / 100
    looks = {name: re.findall(rf"--{name}: (#\w{{6}})", page) for name in ("ink", "card", "star")}
    for ink, card, hue in zip(looks["ink"], looks["card"], looks["star"], strict=True):
        assert _contrast(faint, ink, card, card) > 4.5
        assert _contrast(star, hue, ink, card) > 4.5


def test_the_page_has_protocol_fingerprints_commands_versions_and_gaps(page: str) -> None:
    for words in (
        "0" * 64,
        "castpoi report evidence",
        "castpoi train oldtown --model sasrec --seed 2",
        "castpoi 0.1.0; python 3.11.7",
        "Ties get the mid-rank",
        "Failed, so without a result: oldtown/caser/1.",
        ")</strong>; the best baseline run here, SASRec ",
        "@software{castpoi,",
        "Next places, oldtown",
    ):
        assert words in page


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without matplotlib, which takes less time."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("no_figures")
def test_the_best_of_ours_is_first_each_with_its_p_value(tmp_path: Path) -> None:
    town = tmp_path / "town"
    for seed in (1, 2):
        castpoi = result_of([1.0] * 30 + [50.0] * 10, method="castpoi", seed=seed)
        castpoi.save(town / f"a-{seed}")
    result_of([1.0] * 36 + [50.0] * 4, method="castpoi-next", seed=1).save(town / "b")
    result_of([50.0] * 36 + [1.0] * 4, method="revisit").save(town / "c")
    _, page = page_of(town, tmp_path / "report")
    assert re.search(
        r"<strong>CaST-POI next 90.0\xa0% \(not\xa0tested:\xa0one\xa0seed\)</strong>, "
        r"CaST-POI 75.0\xa0% \(p\xa0[^)]*\); the best baseline run here, Revisit heuristic 10.0",
        page,
    )


@pytest.mark.usefixtures("no_figures")
def test_the_best_baseline_of_the_first_lines_may_be_a_tuned_one(tmp_path: Path) -> None:
    hits = {"castpoi": 36, "sasrec": 10, "esasrec": 20}
    for city, methods in (("a", ("castpoi", "sasrec", "esasrec")), ("b", ("castpoi", "revisit"))):
        for method in methods:
            good = hits.get(method, 4)
            ranks = [1.0] * good + [50.0] * (40 - good)
            result = result_of(ranks, method=method, fingerprint=city * 64, seed=1)
            result.save(tmp_path / "towns" / city / method)
    _, page = page_of(tmp_path / "towns", tmp_path / "report")
    assert "the best baseline run here, eSASRec 50.0" in page
    assert "the best baseline run here, Revisit heuristic 10.0" in page


@pytest.mark.usefixtures("no_figures")
def test_a_baseline_that_is_ahead_of_ours_is_named_so(tmp_path: Path) -> None:
    for method, good in (("castpoi", 10), ("revisit", 20)):
        ranks = [1.0] * good + [50.0] * (40 - good)
        result_of(ranks, method=method, seed=1).save(tmp_path / "town" / method)
    _, page = page_of(tmp_path / "town", tmp_path / "report")
    ahead = "<strong>ahead of ours</strong>, the best baseline run here, Revisit heuristic 50.0"
    assert ahead in page


def test_a_report_is_complete_on_disk(report: Report) -> None:
    below = {path.relative_to(report.out).as_posix() for path in report.out.rglob("*.*")}
    assert {"report.html", "manifest.json", "cards/castpoi.md", "cards/revisit.md"} <= below
    for table in report.tables:
        assert {f"tables/{table.name}.{ending}" for ending in ("md", "csv", "tex")} <= below
    for chart in report.charts:
        assert {f"figures/{chart.name}.{ending}" for ending in ("svg", "png")} <= below


def test_the_sections_are_the_tables_of_the_suite_and_all_others_with_content(
    report: Report,
) -> None:
    titles = [section.title for section in report.sections]
    left_out = ("Compared with the paper", "Order of methods", "Costs")  # need more files
    others = [section.title for section in SECTIONS if section.title not in left_out]
    assert titles == ["Main table", "Ablation", *others]


@pytest.mark.usefixtures("no_figures")
def test_links_lead_to_results_and_cards_of_any_name(tmp_path: Path) -> None:
    result_of([1.0, 9.0], method="../<b>mine</b>").save(tmp_path / "t" / "100 % #1?")
    _, page = page_of(tmp_path / "t", tmp_path / "report")
    reader = Balance()
    reader.feed(page)
    linked = [unquote(link) for link in reader.links if not link.startswith("#")]
    assert {"../t/100 % #1?/manifest.json", "cards/..-b-mine-b-.md"} <= set(linked)
    assert "../t/100%20%25%20%231%3F/manifest.json" in reader.links
    for link in linked:
        assert (tmp_path / "report" / link).exists(), link


@pytest.mark.usefixtures("no_figures")
def test_without_matplotlib_there_is_a_report_without_figures(tmp_path: Path) -> None:
    result_of([1.0, 30.5], method="revisit").save(tmp_path / "t" / "a")
    report, page = page_of(tmp_path / "t", tmp_path / "report")
    assert report.charts == []
    assert report.missing[0].startswith("No figures: they need matplotlib")
    assert "Strata of t" in page


def _first_head(tab: Any) -> str:
    words: list[str] = tab.locator("table").first.locator("tbody th").all_inner_texts()
    return words[0]


def test_a_real_browser_shows_it_on_a_desk_and_on_a_phone_and_sorts(
    report: Report, tmp_path: Path
) -> None:
    with chromium() as browser:
        for width, height in ((1280, 900), (390, 844)):
            tab = browser.new_page(viewport={"width": width, "height": height})
            said: list[str] = []
            tab.on("console", lambda message, said=said: said.append(message.text))
            tab.on("pageerror", lambda problem, said=said: said.append(str(problem)))
            tab.goto((report.out / "report.html").as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") == width
            assert _first_head(tab) == "CaST-POI"  # the best first
            tab.get_by_role("button", name="MRR").first.click()
            assert _first_head(tab).startswith("Revisit")
            tab.get_by_role("button", name="MRR").first.click()
            assert _first_head(tab) == "CaST-POI"
            assert said == []
        table = tab.locator(".scroll").first
        table.evaluate("each => each.scrollLeft = 200")
        assert table.locator("tbody th").first.bounding_box()["x"] < 40  # methods stay in view


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_on_the_page_overlaps_is_cut_or_excludes_anybody(
    report: Report, theme: str
) -> None:
    assert problems_of(report.out / "report.html", theme) == []


def test_the_tables_of_the_committed_report_fit_a_desk() -> None:
    report = Path(__file__).parents[2] / "results" / "report" / "report.html"
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(report.as_uri())
        too_wide = tab.evaluate(
            "[...document.querySelectorAll('.scroll')].filter((each) => !each.closest('details'))"
            ".filter((each) => each.scrollWidth > each.clientWidth)"
            ".map((each) => each.closest('section').id)"
        )
    assert too_wide == []
