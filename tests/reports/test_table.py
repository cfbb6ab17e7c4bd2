"""Tables as files: exact, and safe with any text."""

import csv

from castpoi.reports.table import (
    NOTHING,
    Cell,
    Group,
    Table,
    comma_separated,
    latex,
    markdown,
    number,
)

TABLE = Table(
    name="main",
    title="Main table",
    caption="In percent;",
    footnotes=["p < 0.05 & more."],
    columns=["Method", "HR@10", "MRR"],
    groups=[
        Group(
            heading="ny_c",
            rows=[
                [
                    Cell("A|B_1"),
                    Cell(text="57.76", value=57.7612, std=0.171, is_strongest=True, paper="58.01*"),
                    NOTHING,
                ],
                [
                    Cell("Ours"),
                    Cell(
                        text="58.01",
                        value=58.0051,
                        std=0.154,
                        is_best=True,
                        stars="**",
                    ),
                    number(37.2),
                ],
            ],
            foot=[[Cell("Improvement"), Cell(text="+0.43 %", value=0.43, stars="*"), NOTHING]],
        )
    ],
)


def test_markdown_marks_best_strongest_stars_and_the_paper() -> None:
    assert markdown(TABLE).splitlines() == [
        "### Main table",
        "",
        r"**ny\_c**",
        "",
        "| Method | HR@10 | MRR |",
        "| --- | ---: | ---: |",
        r"| A\|B\_1 | <ins>57.76 ± 0.17</ins> (58.01\*) | – |",
        r"| Ours | **58.01 ± 0.15**\*\* | 37.20 |",
        r"| Improvement | +0.43 %\* | – |",
        "",
        "In percent; p &lt; 0.05 & more.",
    ]


def test_csv_has_all_digits_and_a_column_for_each_mark_of_a_number() -> None:
    head, first, ours, improvement = csv.reader(comma_separated(TABLE).splitlines())
    assert head == ["group", "Method", "HR@10", "HR@10 std", "HR@10 stars", "HR@10 paper", "MRR"]
    assert first == ["ny_c", "A|B_1", "57.7612", "0.171", "", "58.01*", ""]
    assert ours == ["ny_c", "Ours", "58.0051", "0.154", "**", "", "37.2"]
    assert improvement == ["ny_c", "Improvement", "0.43", "", "*", "", ""]


def test_numbers_of_one_cell_have_columns_and_small_strata_are_in_italics() -> None:
    interval = Cell(text="+1.23 to +4.57", parts={"low": 1.23456, "high": 4.56789})
    small = Cell(text="50.0", value=50.0, is_faint=True)
    group = Group(heading="", rows=[[Cell("a"), interval, small]])
    table = Table(name="t", title="T", caption="", columns=["", "95 %", "HR"], groups=[group])
    head, line = csv.reader(comma_separated(table).splitlines())
    assert head == ["", "95 %", "95 % low", "95 % high", "HR"]
    assert line == ["a", "+1.23 to +4.57", "1.23456", "4.56789", "50"]
    assert "| *50.0* |" in markdown(table)
    assert r"\textit{50.0}" in latex(table)


def test_latex_is_a_booktabs_table_with_its_specials_escaped() -> None:
    lines = latex(TABLE).splitlines()
    assert r"\caption{In percent; p $<$ 0.05 \& more.}" in lines
    assert r"\begin{tabular}{lrr}" in lines
    assert r"\multicolumn{3}{c}{\textbf{ny\_c}} \\" in lines
    assert (
        r"A\textbar{}B\_1 & \underline{57.76{\scriptsize$\pm$0.17}} {\tiny(58.01*)} & -- \\"
        in lines
    )
    assert r"Ours & \textbf{58.01{\scriptsize$\pm$0.15}}$^{**}$ & 37.20 \\" in lines
    assert lines[-5:-2] == [r"\midrule", r"Improvement & +0.43 \%$^{*}$ & -- \\", r"\bottomrule"]
