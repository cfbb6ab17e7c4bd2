"""`tools/check_language.py`: the words that it finds, and the files that it reads."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL_PATH = Path(__file__).resolve().parents[2] / "tools" / "check_language.py"
TOOL: dict[str, Any] = runpy.run_path(str(TOOL_PATH))


def found_in(text: str) -> list[str]:
    return [word for _, word, _ in TOOL["retired_words"](text)]


@pytest.mark.parametrize(
    "text",
    [
        "the places that are foretold",
        "def what_is_told() -> None:",
        "windows_a_step: int",
        "class Former:",
        "Tells apart",
        "a row that stands in a table",
        "this may be dearer work",
    ],
)
def test_a_retired_word_is_found_in_prose_and_in_names(text: str) -> None:
    assert len(found_in(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("the intellect", "the former value", "recommend", "better than by chance", "ongoing"),
        *(
            "file.tell()",
            "import stand_in",
            "a stand-in",
            "understood",
            "an outstanding request",
            "it stands out",
        ),
    ],
)
def test_words_that_contain_a_retired_one_are_allowed(text: str) -> None:
    assert found_in(text) == []


def test_a_hit_has_its_line_and_a_replacement() -> None:
    assert list(TOOL["retired_words"]("fine\nmade anew")) == [
        (2, "anew", "again, new, regenerated")
    ]


def test_a_quoted_line_is_skipped() -> None:
    assert found_in('title = "Untold, anew"  # language: quoted') == []


def test_the_exit_code_is_one_if_a_file_has_a_retired_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.html").write_text("<p>mend it</p>")
    (tmp_path / "data.bin").write_bytes(b"mend \xff")
    monkeypatch.setattr(sys, "argv", ["check_language.py", str(tmp_path)])
    assert TOOL["main"]() == 1
    assert "page.html:1: 'mend' is retired; write: fix" in capsys.readouterr().out
    (tmp_path / "page.html").write_text("<p>fix it</p>")
    assert TOOL["main"]() == 0
