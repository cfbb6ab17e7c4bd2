"""The page of a report: whole, alone, safe with any text, and a pleasure on any screen."""

import base64
import hashlib
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from castpoi.reports.report import Report
from castpoi.reports.report_folder import write_report
from tests.reports.browser import chromium
from tests.reports.result_folders import result_of, write_suite


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("page") / "evidence"
    write_suite(root, unfinished={"oldtown/caser/1": "failed: no memory"})
    return write_report(root, root / "report", draws=50, command="castpoi report evidence")


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return (report.out / "report.html").read_text(encoding="utf-8")


class Balance(HTMLParser):
    """Checks that every tag is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.anchors: set[str] = set()
        self.links: list[str] = []

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


def test_the_page_asks_the_network_for_nothing(page: str) -> None:
    outside = re.findall(r"""(?:src|href|url\()\s*=?\s*["']?(?:https?:)?//[^"')]*""", page)
    assert outside == []
    assert "default-src 'none'" in page


def test_the_browser_may_run_the_one_script_and_no_other(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_text_of_others_is_escaped(page: str) -> None:
    assert "Revisit &lt;heuristic&gt; &amp; co_1" in page
    assert "<heuristic>" not in page


def test_every_line_has_a_head_and_every_table_a_name(page: str) -> None:
    assert '<th class="word" title="' in page
    lines = re.findall(r"<tr[^>]*><(\w+)[^>]*scope=\"(\w+)\"", page)
    assert len(lines) == page.count("<tr")
    assert {tag for tag, _ in lines} == {"th"}
    names = re.findall(r'class="scroll" tabindex="0" role="region" aria-label="([^"]+)"', page)
    assert len(names) == page.count("<table")
    assert names[0] == "Main table, oldtown"


def _contrast(share: float, ink: str, ground: str, card: str) -> float:
    """Of a colour of which the rest is another, on a card (WCAG 2)."""

    def light(channels: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    one, other, back = (
        [int(hue[at : at + 2], 16) / 255 for at in (1, 3, 5)] for hue in (ink, ground, card)
    )
    mixed = light([share * a + (1 - share) * b for a, b in zip(one, other, strict=True)])
    return max(mixed, light(back)) / min(mixed, light(back))


def test_stars_and_small_strata_can_be_read_by_light_and_by_dark(page: str) -> None:
    faint = float(re.findall(r"\.faint \{ opacity: ([\d.]+)", page)[0])
    star = int(re.findall(r"sup \{.*?var\(--star\) (\d+)%, var\(--ink\)", page)[0]) / 100
    looks = {name: re.findall(rf"--{name}: (#\w{{6}})", page) for name in ("ink", "card", "star")}
    for ink, card, hue in zip(looks["ink"], looks["card"], looks["star"], strict=True):
        assert _contrast(faint, ink, card, card) > 4.5
        assert _contrast(star, hue, ink, card) > 4.5


def test_the_page_tells_protocol_fingerprints_commands_versions_and_gaps(page: str) -> None:
    for words in (
        "0" * 64,
        "castpoi report evidence",
        "castpoi train oldtown --model sasrec --seed 2",
        "castpoi 0.1.0; python 3.11.7",
        "Ties share the mid-rank",
        "Failed, so without a result: oldtown/caser/1.",
        "CaST-POI has ",
        "next places among its first ten (p\u00a0&lt;\u00a00.001); SASRec, the strongest baseline",
        "Next places, oldtown",
    ):
        assert words in page


def test_the_best_of_ours_is_told_first_each_with_its_p(tmp_path: Path) -> None:
    town = tmp_path / "town"
    result_of([1.0] * 30 + [50.0] * 10, method="castpoi", seed=1).save(town / "a")
    result_of([1.0] * 36 + [50.0] * 4, method="castpoi-next", seed=1).save(town / "b")
    result_of([50.0] * 36 + [1.0] * 4, method="revisit").save(town / "c")
    write_report(town, tmp_path / "report", draws=50)
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert re.search(
        r"CaST-POI next has 90.0\xa0%</strong> of 40 next places among its first ten \(p[^)]*\), "
        r"CaST-POI 75.0\xa0% \(p[^)]*\); Revisit heuristic, the strongest baseline, has 10.0",
        page,
    )


def test_the_first_words_know_tuned_baselines_and_which_were_run(tmp_path: Path) -> None:
    hits = {"castpoi": 36, "sasrec": 10, "esasrec": 20}
    for city, methods in (("a", ("castpoi", "sasrec", "esasrec")), ("b", ("castpoi", "revisit"))):
        for method in methods:
            good = hits.get(method, 4)
            ranks = [1.0] * good + [50.0] * (40 - good)
            result = result_of(ranks, method=method, fingerprint=city * 64, seed=1)
            result.save(tmp_path / "towns" / city / method)
    write_report(tmp_path / "towns", tmp_path / "report", draws=50)
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "eSASRec, the strongest of those run here, has 50.0" in page
    words = "Revisit heuristic, the strongest of those run here (no learned one was), has 10.0"
    assert words in page


def test_a_report_is_whole_on_disk(report: Report) -> None:
    below = {path.relative_to(report.out).as_posix() for path in report.out.rglob("*.*")}
    assert {"report.html", "manifest.json", "cards/castpoi.md", "cards/revisit.md"} <= below
    for table in report.tables:
        assert {f"tables/{table.name}.{ending}" for ending in ("md", "csv", "tex")} <= below
    for picture in report.pictures:
        assert {f"figures/{picture.name}.{ending}" for ending in ("svg", "png")} <= below


def test_one_result_without_anything_beside_it_has_a_page(tmp_path: Path) -> None:
    result_of([1.0, 30.5], method="revisit").save(tmp_path / "t" / "a")
    report = write_report(tmp_path / "t", tmp_path / "report", draws=50)
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "Revisit heuristic has 50.0\u00a0%" in page
    assert report.significance is None
    assert "What is missing" in page


def test_links_lead_to_results_and_cards_whatever_these_are_called(tmp_path: Path) -> None:
    result_of([1.0, 9.0], method="../<b>mine</b>").save(tmp_path / "t" / "100 % #1?")
    write_report(tmp_path / "t", tmp_path / "report", draws=50)
    reader = Balance()
    reader.feed((tmp_path / "report" / "report.html").read_text(encoding="utf-8"))
    linked = [unquote(link) for link in reader.links if not link.startswith("#")]
    assert {"../t/100 % #1?/manifest.json", "cards/..-b-mine-b-.md"} <= set(linked)
    assert "../t/100%20%25%20%231%3F/manifest.json" in reader.links
    for link in linked:
        assert (tmp_path / "report" / link).exists(), link


def test_two_parts_of_a_split_are_one_city(tmp_path: Path) -> None:
    for part in ("test", "validation"):
        result_of([1.0, 30.5], method="revisit", part=part).save(tmp_path / "town" / part)
    write_report(tmp_path / "town", tmp_path / "report", draws=50)
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<h1>Next places, town and town (validation)</h1>" in page
    assert "<dt>city</dt><dd>1</dd>" in page


def test_without_matplotlib_there_is_a_report_without_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result_of([1.0, 30.5], method="revisit").save(tmp_path / "t" / "a")
    report = write_report(tmp_path / "t", tmp_path / "report", draws=50)
    assert report.pictures == []
    assert report.missing[0] == "No figures: they need matplotlib (castpoi[report])."
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "Strata of t" in page


def test_variants_alone_have_a_page(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", targets=4)
    for name in ("castpoi", "sasrec", "revisit"):
        shutil.rmtree(root / "oldtown" / name)
    write_report(root, root / "report", draws=50)
    assert "w/o spatial bias has " in (root / "report" / "report.html").read_text(encoding="utf-8")


def _first_words(tab: Any) -> list[str]:
    words: list[str] = tab.locator("table").first.locator("tbody th").all_inner_texts()
    return words


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
            shot = tmp_path / f"{width}.png"
            tab.screenshot(path=str(shot), full_page=True)
            assert shot.stat().st_size > 50_000
            assert _first_words(tab)[0] == "SASRec"
            tab.get_by_role("button", name="MRR").first.click()
            assert _first_words(tab)[0] == "CaST-POI"
            tab.get_by_role("button", name="MRR").first.click()
            assert _first_words(tab)[0].startswith("Revisit")
            assert said == []
