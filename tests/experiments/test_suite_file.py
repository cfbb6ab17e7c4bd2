"""Suites as files: those that come with castpoi, a person's own, and what is wrong with them."""

import subprocess
import sys
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput, UnknownMethod
from castpoi.experiments.suite import Suite
from castpoi.experiments.suite_file import read_suite, suite_names
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


def test_the_main_table_holds_seven_baselines_a_heuristic_and_ours() -> None:
    (table,) = read_suite("main").tables
    roles = [row.role for row in table.rows]
    assert [roles.count(role) for role in ("baseline", "heuristic", "ours")] == [7, 1, 1]
    assert {row.preset for row in table.rows if row.role == "baseline"} == {"paper"}
    (family,) = table.families
    assert (family.against, len(family.metrics), family.together) == (
        "strongest baseline", 5, "table",
    )  # fmt: skip


def test_tuned_is_the_main_table_with_tuned_baselines_and_two_references() -> None:
    (table,) = read_suite("tuned").tables
    (main,) = read_suite("main").tables
    of_main = {row.method: row for row in main.rows}
    baselines = {row.method: row for row in table.rows if row.role == "baseline"}
    assert baselines.keys() == {
        *(method for method, row in of_main.items() if row.role == "baseline"),
        "esasrec", "target-attention",
    }  # fmt: skip
    assert {row.preset for row in baselines.values()} == {"tuned", "fast"}
    for row in table.rows:
        if row.preset == "tuned":
            assert row.name == f"{row.method}-tuned"  # never the folder of the paper's
            assert row.label.endswith("(tuned)")
        elif row.method in of_main:
            assert row == of_main[row.method]  # one run serves both
    assert table.families == main.families


def test_the_ablation_takes_away_one_part_at_a_time() -> None:
    (table,) = read_suite("ablation").tables
    taken = [dict(row.settings) for row in table.rows]
    assert taken == [
        {},
        {"temporal_bias": "false"},
        {"spatial_bias": "false"},
        {"candidate_conditioning": "false"},
        {"revisit_gate": "false"},
        {"backbone": "false"},
    ]
    (family,) = table.families
    assert len(family.against) == 5
    assert family.together == "cell"


def test_all_has_both_tables_and_castpoi_only_once() -> None:
    suite = read_suite("all")
    assert [table.name for table in suite.tables] == ["main", "ablation"]
    names = [row.name for row in suite.rows]
    assert names.count("castpoi") == 1
    assert len(names) == 9 + 5
    assert [table.rows[-1 if table.name == "main" else 0].label for table in suite.tables] == [
        "CaST-POI", "Full model",
    ]  # fmt: skip


def test_two_objectives_differ_in_the_objective_alone() -> None:
    (table,) = read_suite("objectives").tables
    fast, full, blind = (dict(row.settings) for row in table.rows)
    assert full == fast | {"objective": "full"}
    assert blind == fast | {"candidate_conditioning": "false"}
    assert {row.preset for row in table.rows} == {"fast"}


def test_the_differences_of_our_baselines_are_undone_one_at_a_time() -> None:
    (table,) = read_suite("baseline-differences").tables
    rows = {row.name: row for row in table.rows}
    main = {row.name: row.recipe for row in read_suite("main").rows}
    for family in table.families:
        assert len(family.against) == 1
        changed = family.against[0]
        assert rows[family.row].recipe == main[family.row]
        assert rows[changed].method == rows[family.row].method
        assert rows[changed].preset == rows[family.row].preset
        assert len(rows[changed].settings) == 1


def test_known_time_has_a_suite_of_its_own() -> None:
    (table,) = read_suite("known-time").tables
    assert table.known_time
    assert [row.method for row in table.rows] == ["castpoi-next"]
    assert not any(t.known_time for name in ("all", "next") for t in read_suite(name).tables)


def test_known_time_stands_beside_nothing_else(tmp_path: Path) -> None:
    told = ROW.replace("mine", "told") + "set = { known_time = true }"
    words = r"rows.told knows the time of a target .* and others do not"
    with pytest.raises(BadInput, match=words):
        read(tmp_path, f"title = 'x'\n{ROW}{told}")
    assert read(tmp_path, f"title = 'x'\n{told}").tables[0].known_time


def test_next_is_compared_with_castpoi_and_sasrec_and_its_parts_change_one_by_one() -> None:
    (table,) = read_suite("next").tables
    assert {row.preset for row in table.rows if row.method == "castpoi-next"} == {"next"}
    taken = {row.name: dict(row.settings) for row in table.rows if row.role == "ablation"}
    improvement, drop = table.families
    assert (improvement.row, drop.row) == ("castpoi-next", "castpoi-next")
    assert improvement.against == ("castpoi", "sasrec")
    assert [taken[name] for name in drop.against] == [
        {"distance_gate": "false"},
        {"revisit_features": "paper"},
        {"deep_revisits": "false"},
        {"candidate_conditioning": "true", "null_attention": "true"},
    ]


def test_the_runs_of_the_main_table_serve_next_too() -> None:
    theirs = {row.name: row.recipe for row in read_suite("all").rows}
    ours = {row.name: row.recipe for row in read_suite("next").rows}
    shared = theirs.keys() & ours.keys()
    assert shared == {"castpoi", "sasrec"}
    assert all(theirs[name] == ours[name] for name in shared)


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
        method = "castpoi"
        preset = "paper"
        role = "ablation"
        [families.depth]
        row = "mine"
        against = ["deep"]
        together = "cell"
        """,
    )
    assert (suite.seeds, suite.cities) == ((7,), (str(tmp_path / "here/nyc"),))
    assert [table.name for table in suite.tables] == ["heuristics", "own"]
    mine, deep = suite.tables[1].rows
    assert mine.preset == "fast"  # the default is named
    assert mine.settings == {
        "width": "64", "dropout": "0.1", "spatial_bias": "true",
    }  # fmt: skip
    assert deep.preset == "paper"
    assert len(suite.tables[1].families[0].metrics) == 8  # all, unless told otherwise


def wrong(folder: Path, content: str) -> str:
    """What is said of a file that is not right."""
    with pytest.raises(BadInput) as told:
        read(folder, content)
    return str(told.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("title = ", "own.toml is not valid TOML"),
        ("titel = 'x'", "own.toml: titel is not a key of a suite; did you mean 'title'?"),
        ("rows = 3", "own.toml: rows is a whole number; give a table"),
        ("title = 'x'\n[rows]\na = 3", "own.toml: rows.a is a whole number; give a table"),
        (ROW, "own.toml: title is missing; give a text"),
        ("title = ' '" + ROW, "own.toml: title is empty; give a text"),
        ("title = 'x'", "the suite own has no row; give it at least one"),
        ("seeds = 4", "own.toml: seeds is a whole number; give a list"),
        ("seeds = [-1]", "own.toml: seeds holds -1; give numbers from 0 to 4294967295"),
        ("seeds = [1, 4294967296]", "own.toml: seeds holds 4294967296; give numbers from 0 to"),
        ("seeds = ['1']", "own.toml: seeds holds a text; every entry is a whole number"),
        ("seeds = [true]", "own.toml: seeds holds true or false; every entry is a whole number"),
        ("seeds = [4, 4]", "own.toml: seeds holds 4 twice; leave one out"),
        ("include = ['own.toml']", "own.toml includes itself; take it out of 'include'"),
        (
            "include = ['main']\n[families.f]\nrow = 'castpoi'\nagainst = ['sasrec']",
            "own.toml: families are of rows of this file, and it has none; name here the rows",
        ),
        ("include = ['mian']", "no suite is named 'mian' and no such file is there; did you mean"),
    ],
)
def test_what_is_wrong_with_a_suite_is_told_with_file_and_key(
    tmp_path: Path, content: str, sentence: str
) -> None:
    assert sentence in wrong(tmp_path, content)


@pytest.mark.parametrize(
    ("method", "line", "sentence"),
    [
        ("castpoi", "presett = 'paper'", ".presett is not a key of a suite; did you mean 'preset'"),
        ("castpoi", "preset = 'tuned'", ".preset is 'tuned'; choose fast or paper"),
        ("castpoi", "set = { width = { a = 1 } }", ".set.width is a table; give a text, a number"),
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
        ("revisit", "preset = 'paper'", ".preset: revisit has no presets; leave it out"),
        (
            "target-attention",
            "set = { revisit_gate = true }",
            ".set: target-attention is defined by revisit_gate=false",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_told_with_file_row_and_key(
    tmp_path: Path, method: str, line: str, sentence: str
) -> None:
    content = "title = 'x'" + ROW.replace("castpoi", method) + line
    assert f"own.toml: rows.mine{sentence}" in wrong(tmp_path, content)


def test_the_settings_of_another_package_are_left_to_it(
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
        "import sys; from castpoi.cli.reproduce import read_suite; "
        f"read_suite({name!r}); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asks]).returncode == 0


def test_a_row_needs_a_method_a_known_role_and_the_name_of_a_folder(tmp_path: Path) -> None:
    start = "title = 'x'\n"
    lacking = wrong(tmp_path, start + ROW.replace('method = "castpoi"', ""))
    assert "own.toml: rows.mine.method is missing; give a text" in lacking
    role = wrong(tmp_path, start + ROW.replace('"ours"', '"best"'))
    assert "rows.mine.role is 'best'; choose ours or baseline or heuristic or ablation" in role
    judge = wrong(tmp_path, start + ROW.replace('"ours"', '"oracle"'))
    assert "rows.mine.role is 'oracle'; choose ours or baseline" in judge  # no suite runs one
    name = wrong(tmp_path, start + ROW.replace("rows.mine", "rows.'a/b'"))
    assert "own.toml: rows.a/b cannot be the name of a folder" in name


def test_rows_are_told_apart_by_name_and_label(tmp_path: Path) -> None:
    twins = "title = 'x'" + ROW + ROW.replace("rows.mine", "rows.other")
    assert "the rows mine and other of the suite own are both labelled 'Mine'" in wrong(
        tmp_path, twins
    )
    taken = ROW.replace("rows.mine", "rows.castpoi") + "preset = 'paper'"
    told = wrong(tmp_path, "title = 'x'\ninclude = ['main']" + taken)
    assert "two rows named castpoi with different methods or settings; rename one" in told


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["row = 'you'"], ".row is 'you'; choose mine"),
        (["row = 'mine'", "metrics = ['HR']"], ".metrics holds 'HR'; choose of HR@1"),
        (["row = 'mine'"], ".against names no row; give 'strongest baseline' or a list"),
        (["row = 'mine'", "against = ['mine']"], ".against holds 'mine'; give 'strongest base"),
        (["row = 'mine'", "against = 'weak'"], ".against is 'weak'; choose strongest baseline"),
        (
            ["row = 'mine'", "against = 'strongest baseline'"],
            ".against is 'strongest baseline', but no row here has the role baseline",
        ),
    ],
)
def test_what_is_wrong_with_a_family_is_told_with_file_family_and_key(
    tmp_path: Path, lines: list[str], sentence: str
) -> None:
    content = "title = 'x'" + ROW + "\n".join(["[families.f]", *lines])
    assert f"own.toml: families.f{sentence}" in wrong(tmp_path, content)


def test_a_row_that_may_be_the_strongest_baseline_is_not_tested_against_it(tmp_path: Path) -> None:
    family = "[families.f]\nrow = 'mine'\nagainst = 'strongest baseline'\ntogether = 'cell'"
    told = wrong(tmp_path, "title = 'x'" + ROW.replace('"ours"', '"baseline"') + family)
    assert "families.f.against is 'strongest baseline', which mine may be itself by its rol" in told


def test_an_unknown_method_is_told_with_its_row(tmp_path: Path) -> None:
    with refused(UnknownMethod):
        read(tmp_path, "title = 'x'" + ROW.replace('"castpoi"', '"castpio"'))


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "own.toml").write_text("title = 'deep'" + ROW)
    with refused(BadInput):
        read(tmp_path, "title = 'x'\ninclude = ['deep/own.toml']" + ROW)


def test_a_file_may_begin_with_the_mark_that_some_editors_write(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufefftitle = 'x'" + ROW).tables[0].title == "x"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"title = '\xff'")
    with refused(BadInput):
        read_suite(str(tmp_path / "own.toml"))
