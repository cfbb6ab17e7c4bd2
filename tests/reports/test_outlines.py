"""Outlines: read from suite.json, or made from the rows of the results."""

from collections.abc import Mapping

import pytest

from castpoi.core.errors import BrokenFolder
from castpoi.methods.outline import STRONGEST, Row
from castpoi.reports.outlines import (
    HEADLINE,
    outlines_in,
    outlines_of,
    row_of_result,
    row_of_run,
)
from tests.messages import refused
from tests.reports.result_folders import TABLES, result_of

ORACLE = row_of_result(result_of([1.0], method="recbole-stamp", oracle="recbole 1.2.1"))


def rows_of(*methods: str) -> list[Row]:
    return [row_of_run(method) for method in methods]


def names(rows: tuple[Row, ...]) -> list[str]:
    return [row.name for row in rows]


def test_tables_rows_and_families_are_those_of_the_suite() -> None:
    ablation, main = outlines_in({"tables": TABLES}, path="suite.json")
    assert (ablation.is_ablation, main.is_ablation) == (True, False)
    assert names(main.rows) == ["sasrec", "revisit", "castpoi"]
    assert (main.families[0].against, main.families[0].together) == (STRONGEST, "table")
    assert ablation.families[0].against == ("no-spatial-bias",)
    assert ablation.families[0].together == "cell"
    assert (main.label("castpoi"), ablation.label("castpoi")) == ("CaST-POI", "Full model")


@pytest.mark.parametrize("content", [{}, {"tables": []}, {"tables": {"main": {"title": "Main"}}}])
def test_a_foreign_suite_file_is_refused(content: dict[str, object]) -> None:
    with refused(BrokenFolder):
        outlines_in(content, path="x/suite.json")


def test_a_method_has_its_label_and_role() -> None:
    rows = rows_of("castpoi", "castpoi-next", "sasrec", "revisit", "my-own")
    assert [row.role for row in rows] == ["ours", "ours", "baseline", "heuristic", "baseline"]
    assert [row.label for row in rows] == [
        *("CaST-POI", "CaST-POI next", "SASRec", "Revisit heuristic", "my-own"),
    ]
    assert [row.is_learned for row in rows] == [True, True, True, False, True]
    assert (ORACLE.label, ORACLE.role) == ("RecBole's STAMP", "oracle")


@pytest.mark.parametrize(
    ("method", "preset", "settings", "name", "label", "role"),
    [
        ("castpoi", "fast", {}, "castpoi", "CaST-POI", "ours"),
        ("castpoi", "paper", {}, "castpoi-preset=paper", "CaST-POI, preset paper", "ablation"),
        (
            *("castpoi", "fast", {"spatial_bias": "false"}),
            *("no-spatial-bias", "CaST-POI w/o spatial bias", "ablation"),
        ),
        (
            *("castpoi", "fast", {"backbone": "false", "epochs": "6"}),
            *("castpoi-backbone=false-epochs=6", "CaST-POI w/o backbone, epochs = 6", "ablation"),
        ),
        (
            *("castpoi-next", "next", {"distance_gate": "false"}),
            *("castpoi-next-distance_gate=false", "CaST-POI next w/o distance gate", "ablation"),
        ),
        (
            *("castpoi-next", "next", {"known_time": "true"}),
            *("castpoi-next-known_time=true", "CaST-POI next, time known", "ours"),
        ),
        ("sasrec", "tuned", {}, "sasrec-preset=tuned", "SASRec, preset tuned", "baseline"),
        ("my-own", "best", {"deep": "9"}, "my-own-preset=best-deep=9", None, "baseline"),
    ],
)
def test_other_settings_than_the_default_preset_make_another_row(
    method: str, preset: str, settings: Mapping[str, str], name: str, label: str | None, role: str
) -> None:
    row = row_of_run(method, preset, settings)
    assert (row.name, row.role, row.preset) == (name, role, preset)
    assert label in (None, row.label)


def test_without_a_suite_ours_are_tested_in_a_main_table() -> None:
    (table,) = outlines_of(rows_of("castpoi", "revisit"))
    assert names(table.rows) == ["revisit", "castpoi"]
    (family,) = table.families
    assert (family.row, family.against, family.metrics) == ("castpoi", STRONGEST, HEADLINE)
    (alone,) = outlines_of(rows_of("revisit", "markov"))
    assert alone.families == ()


def test_each_of_our_methods_is_tested_and_has_an_ablation_of_its_own() -> None:
    main, first, second = outlines_of(
        [
            *rows_of("castpoi-next", "castpoi", "revisit"),
            row_of_run("castpoi", "fast", {"spatial_bias": "false"}),
            row_of_run("castpoi-next", "next", {"distance_gate": "false"}),
        ]
    )
    assert [family.row for family in main.families] == ["castpoi-next", "castpoi", "castpoi-next"]
    assert [family.against for family in main.families[1:]] == [STRONGEST, ("castpoi",)]
    assert (first.title, first.families[0].row) == ("Ablation of CaST-POI", "castpoi")
    assert names(first.rows) == ["castpoi", "no-spatial-bias"]
    assert (second.name, second.families[0].row) == ("ablation-castpoi-next", "castpoi-next")


def test_tuned_baselines_and_stronger_references_are_rivals_in_the_main_table() -> None:
    rows = rows_of("castpoi", "sasrec", "revisit", "esasrec")
    (main,) = outlines_of([*rows, row_of_run("sasrec", "tuned")])
    assert names(main.rows) == ["sasrec", "revisit", "esasrec", "sasrec-preset=tuned", "castpoi"]
    assert [family.against for family in main.families] == [STRONGEST]


def test_a_variant_of_a_baseline_is_next_to_it_and_no_baseline() -> None:
    variant = Row(name="other", label="SASRec, other", method="sasrec", role="ablation")
    main, apart = outlines_of([*rows_of("castpoi", "sasrec", "core"), variant])
    assert names(main.rows) == ["sasrec", "core", "castpoi"]
    assert (apart.title, apart.is_ablation) == ("Other settings of SASRec", True)
    assert names(apart.rows) == ["sasrec", "other"]
    assert (apart.families[0].row, apart.families[0].against) == ("sasrec", ("other",))


def test_rows_of_known_time_have_a_table_of_their_own() -> None:
    timed = row_of_run("castpoi-next", "next", {"known_time": "true", "epochs": "6"})
    assert timed.known_time
    main, apart = outlines_of([*rows_of("revisit"), timed, *rows_of("castpoi-next")])
    assert names(main.rows) == ["revisit", "castpoi-next"]
    assert not main.known_time
    assert (apart.name, apart.title, apart.families) == ("known-time", "Known time", ())
    assert apart.rows == (timed,)
    assert apart.known_time
    assert outlines_of([timed]) == [apart]


def test_an_oracle_is_next_to_our_copy_and_no_baseline() -> None:
    main, apart = outlines_of([*rows_of("castpoi", "stamp", "core"), ORACLE])
    assert ORACLE not in main.rows
    assert names(apart.rows) == ["stamp", "recbole-stamp"]
    assert (apart.title, apart.families) == ("Oracles of our copies", ())
