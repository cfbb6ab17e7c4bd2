"""Suites: those that come with castpoi, a person's own, and errors in them."""

import subprocess
import sys
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput, UnknownMethod
from castpoi.experiments.suite import Suite, read_suite, suite_names
from castpoi.methods.registry import METHODS, Method
from tests.messages import refused

ROW = """
[rows.mine]
label = "Mine"
method = "castpoi"
role = "ours"
"""


def read(folder: Path, content: str, *, name: str = "own.toml") -> Suite:
    (folder / name).write_text(content)
    return read_suite(str(folder / name))


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_of_castpoi_can_be_read(name: str) -> None:
    suite = read_suite(name)
    assert suite.name == name
    assert suite.rows


def test_the_main_table_is_that_of_the_paper() -> None:
    (table,) = read_suite("main").tables
    roles = [row.role for row in table.rows]
    assert [roles.count(role) for role in ("baseline", "heuristic", "ours")] == [7, 1, 1]
    (family,) = table.families
    assert (family.against, len(family.metrics), family.together) == (
        "strongest baseline", 5, "table",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["ablation", "baseline-differences"])
def test_variants_differ_in_one_setting(name: str) -> None:
    (table,) = read_suite(name).tables
    rows = {row.name: row for row in table.rows}
    for family in table.families:
        for changed in (rows[each] for each in family.against):
            assert changed.recipe[:2] == rows[family.row].recipe[:2]
            assert len(changed.settings) == 1


def test_known_time_shares_no_table(tmp_path: Path) -> None:
    given = ROW.replace("mine", "given") + "set = { known_time = true }"
    words = r"rows.given gets the time of a target .* and others do not"
    with pytest.raises(BadInput, match=words):
        read(tmp_path, f"title = 'x'\n{ROW}{given}")
    assert read(tmp_path, f"title = 'x'\n{given}").tables[0].known_time


def test_a_person_writes_rows_settings_cities_and_families(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        """
        title = "Wider"
        seeds = [7]
        cities = ["here/nyc"]
        include = ["heuristics"]
        [rows.mine]
        label = "Mine"
        method = "castpoi"
        role = "ours"
        set = { width = 64, dropout = 0.1, spatial_bias = true }
        [rows.deep]
        label = "Deep"
        seeds = [8, 9]
        method = "castpoi"
        preset = "paper"
        role = "ablation"
        [families.depth]
        row = "mine"
        against = ["deep"]
        together = "cell"
        """,
    )
    assert suite.row_seeds == {"deep": (8, 9)}
    assert (suite.seeds, suite.cities) == ((7,), (str(tmp_path / "here/nyc"),))
    assert [table.name for table in suite.tables] == ["heuristics", "own"]
    mine, deep = suite.tables[1].rows
    assert mine.preset == "fast"  # the default is named
    assert mine.settings == {
        "width": "64", "dropout": "0.1", "spatial_bias": "true",
    }  # fmt: skip
    assert deep.preset == "paper"
    assert len(suite.tables[1].families[0].metrics) == 8  # all by default


def wrong(folder: Path, content: str) -> str:
    """The error of a file."""
    with pytest.raises(BadInput) as caught:
        read(folder, content)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("title = ", "own.toml is not valid TOML"),
        ("titel = 'x'", "own.toml: titel is not a setting; did you mean 'title'?"),
        ("rows = 3", "own.toml: rows=3 is not valid; it must be a table"),
        ("title = 'x'\n[rows]\na = 3", "own.toml: rows.a=3 is not valid; it must be a table"),
        (ROW, "own.toml: title is missing; it must be a text"),
        ("title = 'x'", "the suite own has no row; add at least one"),
        ("seeds = 4", "own.toml: seeds=4 is not valid; it must be a list"),
        ("seeds = [1, 4294967296]", "own.toml: seeds=4294967296 is not valid; it must be a whole"),
        ("seeds = [4, 4]", "own.toml: seeds contains 4 twice; leave one out"),
        ("include = ['own.toml']", "own.toml includes itself; remove it from 'include'"),
        (
            "[families.f]\nrow = 'a'\nagainst = ['b']\ntogether = 'cell'",
            "own.toml: families are about rows of the same file, and it has none; add the rows",
        ),
        ("include = ['mian']", "no suite is named 'mian' and there is no such file; did you mean"),
    ],
)
def test_an_error_in_a_suite_names_file_and_key(
    tmp_path: Path, content: str, sentence: str
) -> None:
    assert sentence in wrong(tmp_path, content)


@pytest.mark.parametrize(
    ("method", "line", "sentence"),
    [
        ("castpoi", "presett = 'paper'", ".presett is not a setting; did you mean 'preset'"),
        (
            "castpoi",
            "preset = 'tuned'",
            ".preset: castpoi has no preset 'tuned'; choose fast",
        ),
        ("castpoi", "set = { widht = 8 }", ".set: there is no setting 'widht'; did you mean 'wid"),
        (
            "castpoi",
            "set = { epochs = 'many' }",
            ".set: epochs='many' is not valid; it must",
        ),
        ("castpoi", "set = { heads = 3 }", ".set: heads=3 must divide width=128"),
        ("sasrec", "set = { dropout = 2 }", ".set: dropout='2' is not valid; it must be"),
        ("bert4rec", "set = { stride = 2 }", ".set: bert4rec shares no windows, so stride changes"),
        ("revisit", "set = { width = 8 }", ".set: revisit is counted, not learned"),
        ("revisit", "preset = 'paper'", ".preset: revisit has no preset 'paper'; leave it out"),
        (
            "target-attention",
            "set = { revisit_gate = true }",
            ".set: target-attention is defined by revisit_gate=false",
        ),
    ],
)
def test_an_error_in_a_row_names_file_row_and_key(
    tmp_path: Path, method: str, line: str, sentence: str
) -> None:
    content = "title = 'x'" + ROW.replace("castpoi", method) + line
    assert f"own.toml: rows.mine{sentence}" in wrong(tmp_path, content)


def test_settings_of_another_package_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Method(
        name="theirs", line="", ranker="their:Ranker", trainer="their:train", presets=("plain",)
    )
    monkeypatch.setitem(METHODS._by_name, "theirs", theirs)
    content = "title = 'x'" + ROW.replace('"castpoi"', '"theirs"') + "set = { charm = 3 }"
    assert read(tmp_path, content).rows[0].settings == {"charm": "3"}


@pytest.mark.parametrize("name", ["heuristics", "main"])
def test_a_suite_that_sets_nothing_is_read_without_torch(name: str) -> None:
    asks = (
        "import sys; from castpoi.cli.experiments import read_suite; "
        f"read_suite({name!r}); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asks]).returncode == 0


def test_a_row_needs_a_method_a_known_role_and_the_name_of_a_folder(tmp_path: Path) -> None:
    start = "title = 'x'\n"
    lacking = wrong(tmp_path, start + ROW.replace('method = "castpoi"', ""))
    assert "own.toml: rows.mine.method is missing; it must be a text" in lacking
    role = wrong(tmp_path, start + ROW.replace('"ours"', '"best"'))
    assert "rows.mine.role='best' is not valid; it must be 'ours' or 'baseline'" in role
    judge = wrong(tmp_path, start + ROW.replace('"ours"', '"oracle"'))
    assert (
        "rows.mine.role='oracle' is not valid; it must be 'ours' or" in judge
    )  # no suite runs one
    name = wrong(tmp_path, start + ROW.replace("rows.mine", "rows.'a/b'"))
    assert "own.toml: rows.a/b is not a folder name" in name


def test_rows_need_their_own_name_and_label(tmp_path: Path) -> None:
    twins = "title = 'x'" + ROW + ROW.replace("rows.mine", "rows.other")
    assert "the rows mine and other of the suite own are both labelled 'Mine'" in wrong(
        tmp_path, twins
    )
    taken = ROW.replace("rows.mine", "rows.castpoi") + "preset = 'paper'"
    error = wrong(tmp_path, "title = 'x'\ninclude = ['main']" + taken)
    assert "two rows named castpoi with different methods or settings; rename one" in error


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["row = 'you'", "against = []"], ".row is 'you'; choose mine"),
        (
            ["row = 'mine'", "against = []", "metrics = ['HR']"],
            ".metrics contains 'HR'; choose from",
        ),
        (
            ["row = 'mine'", "against = []"],
            ".against names no row; give 'strongest baseline'",
        ),
        (["row = 'mine'", "against = ['mine']"], ".against contains 'mine'; give 'strongest base"),
        (["row = 'mine'", "against = 'weak'"], ".against contains 'weak'; give 'strongest base"),
        (
            ["row = 'mine'", "against = 'strongest baseline'"],
            ".against is 'strongest baseline', but no row here has the role baseline",
        ),
    ],
)
def test_an_error_in_a_family_names_file_family_and_key(
    tmp_path: Path, lines: list[str], sentence: str
) -> None:
    content = "title = 'x'" + ROW + "\n".join(["[families.f]", "together = 'cell'", *lines])
    assert f"own.toml: families.f{sentence}" in wrong(tmp_path, content)


def test_a_row_that_may_be_the_strongest_baseline_is_not_tested_against_it(tmp_path: Path) -> None:
    family = "[families.f]\nrow = 'mine'\nagainst = 'strongest baseline'\ntogether = 'cell'"
    error = wrong(tmp_path, "title = 'x'" + ROW.replace('"ours"', '"baseline"') + family)
    assert "'strongest baseline', and by its role mine may be that itself" in error


def test_an_unknown_method_is_refused_with_its_row(tmp_path: Path) -> None:
    with refused(UnknownMethod):
        read(tmp_path, "title = 'x'" + ROW.replace('"castpoi"', '"castpio"'))


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "own.toml").write_text("title = 'deep'" + ROW)
    with refused(BadInput):
        read(tmp_path, "title = 'x'\ninclude = ['deep/own.toml']" + ROW)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"title = '\xff'")
    with refused(BadInput):
        read_suite(str(tmp_path / "own.toml"))
