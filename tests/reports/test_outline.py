"""Outlines: read from suite.json, or made from the methods that are there."""

import pytest

from castpoi.core.errors import BrokenFolder
from castpoi.methods.outline import STRONGEST, Row
from castpoi.reports.outline import (
    HEADLINE,
    letter_words,
    outlines_in,
    outlines_of,
    row_of_method,
    row_of_oracle,
    row_of_run,
)
from tests.messages import refused
from tests.reports.result_folders import TABLES


def test_tables_rows_and_families_are_those_of_the_suite() -> None:
    ablation, main = outlines_in({"tables": TABLES}, path="suite.json")
    assert (ablation.is_ablation, main.is_ablation) == (True, False)
    assert [row.name for row in main.rows] == ["sasrec", "revisit", "castpoi"]
    assert main.families[0].against == STRONGEST
    assert main.families[0].together == "table"
    assert ablation.families[0].against == ("no-spatial-bias",)
    assert ablation.families[0].together == "cell"
    assert (main.label("castpoi"), ablation.label("castpoi")) == ("CaST-POI", "Full model")


@pytest.mark.parametrize("content", [{}, {"tables": []}, {"tables": {"main": {"title": "Main"}}}])
def test_a_foreign_suite_file_is_refused(content: dict[str, object]) -> None:
    with refused(BrokenFolder):
        outlines_in(content, path="x/suite.json")


def test_methods_without_a_suite_get_their_name_and_role_from_what_they_are() -> None:
    names = ("castpoi", "castpoi-next", "sasrec", "revisit", "my-own")
    rows = [row_of_method(name) for name in names]
    assert [row.role for row in rows] == ["ours", "ours", "baseline", "heuristic", "baseline"]
    assert [row.label for row in rows] == [
        *("CaST-POI", "CaST-POI next", "SASRec", "Revisit heuristic", "my-own"),
    ]
    assert [row.is_learned for row in rows] == [True, True, True, False, True]


def test_methods_without_a_suite_stand_in_a_main_table_that_tests_ours() -> None:
    (table,) = outlines_of([row_of_method(name) for name in ("castpoi", "revisit")])
    assert [row.name for row in table.rows] == ["revisit", "castpoi"]
    (family,) = table.families
    assert (family.row, family.against, family.metrics) == ("castpoi", STRONGEST, HEADLINE)


def test_variants_without_a_suite_stand_in_an_ablation_beside_ours() -> None:
    variant = Row(name="flat", label="flat", method="castpoi", role="ablation")
    (table,) = outlines_of([row_of_method("castpoi"), variant])
    assert table.is_ablation
    assert table.families[0].against == ("flat",)


def test_each_of_our_methods_is_tested_and_has_an_ablation_of_its_own() -> None:
    rows = [row_of_method(name) for name in ("castpoi-next", "castpoi", "revisit")]
    variants = [
        row_of_run("castpoi", {"spatial_bias": "false"}),
        row_of_run("castpoi-next", {"distance_gate": "false"}),
    ]
    main, first, second = outlines_of([*rows, *variants])
    assert [family.row for family in main.families] == ["castpoi-next", "castpoi"]
    assert (first.title, first.families[0].row) == ("Ablation of CaST-POI", "castpoi")
    assert [row.name for row in first.rows] == ["castpoi", "no-spatial-bias"]
    assert (second.name, second.families[0].row) == ("ablation-castpoi-next", "castpoi-next")


def test_tuned_baselines_and_stronger_references_stand_in_a_table_apart() -> None:
    rows = [row_of_method(name) for name in ("castpoi", "sasrec", "revisit", "esasrec")]
    tuned = row_of_run("sasrec", {"preset": "tuned"})
    main, apart = outlines_of([*rows, tuned])
    assert [row.name for row in main.rows] == ["sasrec", "revisit", "castpoi"]
    assert [row.name for row in apart.rows] == ["esasrec", "sasrec-preset=tuned", "castpoi"]
    assert (apart.title, apart.is_ablation) == ("Tuned baselines and stronger references", False)
    assert [family.against for family in (*main.families, *apart.families)] == [STRONGEST] * 2


def test_a_baseline_with_other_settings_stands_beside_it_and_among_no_rivals() -> None:
    rows = [row_of_method(name) for name in ("castpoi", "sasrec", "core")]
    variant = Row(name="other", label="SASRec, other", method="sasrec", role="ablation")
    main, beside = outlines_of([*rows, variant])
    assert [row.name for row in main.rows] == ["sasrec", "core", "castpoi"]
    assert (beside.title, beside.is_ablation) == ("Other settings of SASRec", True)
    assert [row.name for row in beside.rows] == ["sasrec", "other"]
    assert (beside.families[0].row, beside.families[0].against) == ("sasrec", ("other",))


def test_without_our_method_there_is_nothing_to_test() -> None:
    (table,) = outlines_of([row_of_method("revisit"), row_of_method("markov")])
    assert table.families == ()


def test_rows_that_know_the_time_stand_in_a_table_of_their_own() -> None:
    told = row_of_run("castpoi-next", {"known_time": "true", "epochs": "6"})
    assert told.known_time
    assert told.role == "ours"  # no variant that ours is tested against
    main, apart = outlines_of([row_of_method("revisit"), told, row_of_method("castpoi-next")])
    assert [row.name for row in main.rows] == ["revisit", "castpoi-next"]
    assert not main.known_time
    assert (apart.name, apart.title) == ("known-time", "Known time")
    assert apart.rows == (told,)
    assert apart.known_time
    assert apart.families == ()
    assert outlines_of([told]) == [apart]


def test_a_judge_stands_beside_our_copy_and_among_no_methods() -> None:
    oracle = row_of_oracle("recbole-stamp")
    assert (oracle.label, oracle.role) == ("RecBole's STAMP", "oracle")
    rows = [row_of_method(name) for name in ("castpoi", "stamp", "core")]
    main, apart = outlines_of([*rows, oracle])
    assert oracle not in main.rows
    assert [row.name for row in apart.rows] == ["stamp", "recbole-stamp"]
    assert (apart.title, apart.families) == ("Oracles of our copies", ())


def test_the_paper_s_method_trained_otherwise_is_told() -> None:
    (words,) = letter_words([row_of_run("castpoi", {}, "fast"), row_of_run("sasrec", {}, "paper")])
    assert words.startswith("CaST-POI is trained with preset fast here, which is not the letter")
    assert letter_words([row_of_run("castpoi", {"preset": "paper"}, "fast")]) == []
    assert letter_words([row_of_method("castpoi")]) == []  # nobody says how it was trained
