"""Tables as files: Markdown for people, CSV for programs, LaTeX (booktabs) for papers."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from castpoi.reports.table import DAGGER, Cell, Group, Table

_DAGGER: Final = r"\dagger"
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "–": "--",
    "−": "$-$",
    "·": r"$\cdot$",
    "×": r"$\times$",
    DAGGER: f"${_DAGGER}$",
}
_MARKDOWN: Final = {"\\": r"\\", "|": r"\|", "*": r"\*", "_": r"\_", "<": "&lt;", "`": r"\`"}


def markdown(table: Table) -> str:
    """The table in Markdown: best in bold, strongest baseline underlined, the paper in brackets."""
    lines = [f"### {escape_markdown(table.title)}", ""]
    for group in table.groups:
        lines += [f"**{escape_markdown(group.heading)}**", ""] if group.heading else []
        lines.append(_piped(escape_markdown(column) for column in table.columns))
        lines.append(_piped("---" if at < table.words else "---:" for at in _range(table)))
        lines += [_piped(_markdown_cell(cell) for cell in row) for row in group]
        lines.append("")
    lines.append(escape_markdown(table.caption))
    return "\n".join(lines) + "\n"


def comma_separated(table: Table) -> str:
    """The table with all digits; what a cell holds besides its number has columns of its own:
    deviation, stars, the paper's value, and the numbers of a cell of several.

    The heading of a group is the first column, where there is more than none.
    """
    extras = [_extras(table, at) for at in _range(table)]
    has_headings = any(group.heading for group in table.groups)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = [
        name
        for column, extra in zip(table.columns, extras, strict=True)
        for name in [column, *(f"{column} {each}" for each in extra)]
    ]
    writer.writerow(["group", *heads] if has_headings else heads)
    for group in table.groups:
        for row in group:
            line = [
                each
                for cell, extra in zip(row, extras, strict=True)
                for each in [_plain(cell), *(_extra(cell, name) for name in extra)]
            ]
            writer.writerow([group.heading, *line] if has_headings else line)
    return text.getvalue()


def latex(table: Table) -> str:
    """The table as a LaTeX table; the document needs \\usepackage{booktabs}."""
    width = len(table.columns)
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escape_latex(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{'l' * table.words}{'r' * (width - table.words)}}}",
        r"\toprule",
        _ampersands(rf"\textbf{{{escape_latex(column)}}}" for column in table.columns),
    ]
    for group in table.groups:
        lines.append(r"\midrule")
        if group.heading:
            heading = rf"\textbf{{{escape_latex(group.heading)}}}"
            lines += [rf"\multicolumn{{{width}}}{{c}}{{{heading}}} \\", r"\midrule"]
        lines += _latex_rows(group)
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it stands."""
    return _escaped(text, _LATEX)


def escape_markdown(text: str) -> str:
    """Text that Markdown prints as it stands."""
    return _escaped(text, _MARKDOWN)


def _latex_rows(group: Group) -> list[str]:
    lines = [_ampersands(_latex_cell(cell) for cell in row) for row in group.rows]
    if group.foot:
        lines.append(r"\midrule")
        lines += [_ampersands(_latex_cell(cell) for cell in row) for row in group.foot]
    return lines


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(cell.text)
    if cell.std is not None:
        text += rf"{{\scriptsize$\pm${cell.std:.2f}}}"
    if cell.is_best:
        text = rf"\textbf{{{text}}}"
    if cell.is_faint:
        text = rf"\textit{{{text}}}"
    if cell.is_strongest:
        text = rf"\underline{{{text}}}"
    if cell.marks:
        text += f"$^{{{cell.marks.replace(DAGGER, _DAGGER)}}}$"
    return text + (rf" {{\tiny({escape_latex(cell.paper)})}}" if cell.paper else "")


def _markdown_cell(cell: Cell) -> str:
    text = escape_markdown(" ".join(filter(None, [cell.text, cell.spread])))
    text = f"**{text}**" if cell.is_best else text
    text = f"*{text}*" if cell.is_faint else text
    text = f"<ins>{text}</ins>" if cell.is_strongest else text  # GitHub does not know <u>
    text += escape_markdown(cell.marks)
    return text + (f" ({escape_markdown(cell.paper)})" if cell.paper else "")


def _extras(table: Table, at: int) -> list[str]:
    cells = [row[at] for group in table.groups for row in group]
    names = dict.fromkeys(
        ["std", "stars", "paper", *(part for cell in cells for part in cell.parts)]
    )
    return [name for name in names if any(_extra(each, name) for each in cells)]


def _extra(cell: Cell, name: str) -> str:
    if name in cell.parts:
        return f"{cell.parts[name]:.10g}"
    if name == "std":
        return "" if cell.std is None else f"{cell.std:.6g}"
    return {"stars": cell.marks, "paper": cell.paper}.get(name, "")


def _plain(cell: Cell) -> str:
    if cell.value is None:
        return "" if cell.text == "–" else cell.text
    return f"{cell.value:.10g}"


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ampersands(cells: Iterable[str]) -> str:
    line = f"{' & '.join(cells)} \\\\"
    # the rule or the line above would take either for its own
    return f"{{}}{line}" if line.startswith(("[", "*")) else line


def _range(table: Table) -> Sequence[int]:
    return range(len(table.columns))


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(letter, letter) for letter in text)
