"""A table of a report, and how it is written as Markdown, CSV and LaTeX (booktabs).

A cell keeps the number behind its text, so that a CSV file has all digits and a page can sort.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from castpoi.evaluation.metrics import Spread

_LATEX: Final = str.maketrans(
    {
        **{letter: rf"\{letter}" for letter in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"|": r"\textbar{}", "<": r"$<$", ">": r"$>$", "±": r"$\pm$", "≥": r"$\geq$"},
        **{"–": "--", "−": "$-$", "·": r"$\cdot$", "×": r"$\times$"},
    }
)
_MARKDOWN: Final = str.maketrans(
    {"\\": r"\\", "|": r"\|", "*": r"\*", "_": r"\_", "<": "&lt;", "`": r"\`"}
)


@dataclass(frozen=True)
class Cell:
    """One number or text of a table."""

    text: str
    value: float | None = None  # the number behind the text
    order: float | None = None  # the number that a page sorts by, if the text has several
    parts: Mapping[str, float] = field(default_factory=dict)  # the numbers behind the text by name
    std: float | None = None  # sample standard deviation over seeds, in the unit of the text
    stars: str = ""
    paper: str = ""  # the value of the paper
    is_best: bool = False
    is_strongest: bool = False  # the strongest baseline of its column
    is_ours: bool = False  # the label of a row of our methods
    is_faint: bool = False  # from too few targets or seeds
    note: str = ""  # its sources, or what it was tested against
    link: str = ""
    anchor: str = ""  # of its row on a page

    @property
    def spread(self) -> str:
        """The deviation as text; empty with one seed."""
        return "" if self.std is None else f"± {self.std:.2f}"

    @property
    def full(self) -> str:
        """The text and the deviation."""
        return " ".join(filter(None, [self.text, self.spread]))

    @property
    def sort_key(self) -> float | None:
        """The number that a page sorts by."""
        return self.order if self.value is None else self.value


NOTHING: Final = Cell("–")  # A cell without a number


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows under a heading, such as those of one city."""

    heading: str = ""
    rows: Sequence[Sequence[Cell]]
    foot: Sequence[Sequence[Cell]] = ()  # stays at the bottom when the other rows are sorted

    def __iter__(self) -> Iterator[Sequence[Cell]]:
        return iter([*self.rows, *self.foot])


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns, and groups of rows."""

    name: str  # of its files
    title: str
    caption: str
    columns: Sequence[str]
    groups: Sequence[Group]
    footnotes: Sequence[str] = ()
    words: int = 1  # number of columns, from the left, that hold text
    sorted_by: str = ""  # the column whose highest value is first

    @classmethod
    def of_lines(cls, groups: Mapping[str, Sequence[Mapping[str, Cell]]], **texts: Any) -> Self:
        """A table from lines of cells by column, under headings; the first line has all columns."""
        columns = list(next(iter(groups.values()))[0])
        return cls(
            columns=columns,
            groups=[
                Group(
                    heading=heading,
                    rows=[[line.get(column, NOTHING) for column in columns] for line in lines],
                )
                for heading, lines in groups.items()
            ],
            **texts,
        )

    @property
    def text(self) -> str:
        """Its caption and footnotes."""
        return " ".join([self.caption, *self.footnotes])


def count(number: int | None) -> Cell:
    """A cell with a count."""
    return NOTHING if number is None else Cell(f"{number:,}", number)


def spread_cell(spread: Spread, **more: Any) -> Cell:
    """A cell with the mean of fractions in percent, and their deviation; `more` are its fields."""
    if spread.mean is None:
        return NOTHING
    value, std = 100 * spread.mean, None if spread.std is None else 100 * spread.std
    return Cell(f"{value:.2f}", value, std=std, **more)


def number(value: float | None, decimals: int = 2) -> Cell:
    """A cell with a number."""
    return NOTHING if value is None else Cell(f"{value:,.{decimals}f}", value)


def percent(fraction: float | None, decimals: int = 2) -> Cell:
    """A cell with a fraction in percent, without the sign."""
    return number(None if fraction is None else 100 * fraction, decimals)


def markdown(table: Table) -> str:
    """The table in Markdown: best in bold, strongest baseline underlined, the paper in brackets."""
    lines = [f"### {escape_markdown(table.title)}", ""]
    for group in table.groups:
        lines += [f"**{escape_markdown(group.heading)}**", ""] if group.heading else []
        lines.append(_piped(map(escape_markdown, table.columns)))
        rules = ("---" if at < table.words else "---:" for at in range(len(table.columns)))
        lines.append(_piped(rules))
        lines += [_piped(map(_markdown_cell, row)) for row in group]
        lines.append("")
    lines.append(escape_markdown(table.text))
    return "\n".join(lines) + "\n"


def comma_separated(table: Table) -> str:
    """The table with all digits; deviations, stars and the like have columns of their own."""
    rows = [(group.heading, row) for group in table.groups for row in group]
    extras = [_extras([row[at] for _, row in rows]) for at in range(len(table.columns))]
    heads = ["group"]
    for column, extra in zip(table.columns, extras, strict=True):
        heads += [column, *(f"{column} {each}" for each in extra)]
    lines = [heads]
    for heading, row in rows:
        lines.append([heading])
        for cell, extra in zip(row, extras, strict=True):
            lines[-1] += [_plain(cell), *(_extra(cell, name) for name in extra)]
    if not any(heading for heading, _ in rows):
        lines = [line[1:] for line in lines]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def latex(table: Table) -> str:
    """The table in LaTeX; the document needs \\usepackage{booktabs}."""
    width = len(table.columns)
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escape_latex(table.text)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{'l' * table.words}{'r' * (width - table.words)}}}",
        r"\toprule",
        _latex_row(rf"\textbf{{{escape_latex(column)}}}" for column in table.columns),
    ]
    for group in table.groups:
        lines.append(r"\midrule")
        if group.heading:
            heading = rf"\textbf{{{escape_latex(group.heading)}}}"
            lines += [rf"\multicolumn{{{width}}}{{c}}{{{heading}}} \\", r"\midrule"]
        lines += [_latex_row(map(_latex_cell, row)) for row in group.rows]
        lines += [r"\midrule"] if group.foot else []
        lines += [_latex_row(map(_latex_cell, row)) for row in group.foot]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    """Text that LaTeX prints unchanged."""
    return text.translate(_LATEX)


def escape_markdown(text: str) -> str:
    """Text that Markdown prints unchanged."""
    return text.translate(_MARKDOWN)


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(cell.text)
    if cell.std is not None:
        text += rf"{{\scriptsize$\pm${cell.std:.2f}}}"
    text = rf"\textbf{{{text}}}" if cell.is_best else text
    text = rf"\textit{{{text}}}" if cell.is_faint else text
    text = rf"\underline{{{text}}}" if cell.is_strongest else text
    text += f"$^{{{cell.stars}}}$" if cell.stars else ""
    return text + (rf" {{\tiny({escape_latex(cell.paper)})}}" if cell.paper else "")


def _markdown_cell(cell: Cell) -> str:
    text = escape_markdown(cell.full)
    text = f"**{text}**" if cell.is_best else text
    text = f"*{text}*" if cell.is_faint else text
    text = f"<ins>{text}</ins>" if cell.is_strongest else text  # GitHub does not render <u>
    text += escape_markdown(cell.stars)
    return text + (f" ({escape_markdown(cell.paper)})" if cell.paper else "")


def _extras(cells: Sequence[Cell]) -> list[str]:
    """The additional columns that the cells of a column need in CSV."""
    parts = (part for cell in cells for part in cell.parts)
    names = dict.fromkeys(["std", "stars", "paper", *parts])
    return [name for name in names if any(_extra(cell, name) for cell in cells)]


def _extra(cell: Cell, name: str) -> str:
    if name in cell.parts:
        return f"{cell.parts[name]:.10g}"
    std = "" if cell.std is None else f"{cell.std:.6g}"
    return {"std": std, "stars": cell.stars, "paper": cell.paper}.get(name, "")


def _plain(cell: Cell) -> str:
    if cell.value is None:
        return "" if cell == NOTHING else cell.text
    return f"{cell.value:.10g}"


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex_row(cells: Iterable[str]) -> str:
    line = f"{' & '.join(cells)} \\\\"
    return f"{{}}{line}" if line.startswith(("[", "*")) else line  # not an option of the rule above
