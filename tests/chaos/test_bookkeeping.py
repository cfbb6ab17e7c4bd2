"""The bookkeeping of `make chaos`: its attacks, counts, page and odd tables."""

import json
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from chaos.__main__ import LIMITS
from chaos.castpoi_command import changes_a_name
from chaos.flips import Kind, effect_of_reading
from chaos.kills import LAST_CHANGES, OTHER_CHANGES, chosen
from chaos.odd_tables import odd_tables, plain
from chaos.outcome import Outcome, lost_anything, skipped
from chaos.page import PAGE, RECORD, block_of, with_block
from chaos.process import Ended
from chaos.storm import Ledger

from castpoi.core.errors import BrokenFolder

RECORDED = {
    "commit": "a" * 40,
    "seed": 42,
    "seconds": 12.4,
    "cpu_seconds": 20.6,
    "rows": [
        {"attack": "kills", "tried": 1200, "withstood": 1199, "lost": 1, "losses": ["one"]},
        {"attack": "mounts", "tried": 0, "withstood": 0, "lost": 0, "skipped": "needs root"},
    ],
}


@pytest.mark.parametrize("name", LIMITS)
def test_every_attack_is_a_module_that_can_be_imported(name: str) -> None:
    assert callable(import_module(f"chaos.{name}").attack)


def test_a_trial_with_two_problems_is_lost_once_and_keeps_both_sentences() -> None:
    outcome = Outcome(attack="kills")
    outcome.trial()
    outcome.trial(["torn", "left behind"])
    assert (outcome.tried, outcome.withstood, outcome.lost) == (2, 1, 1)
    assert outcome.losses == ["torn", "left behind"]
    assert lost_anything([outcome])
    assert not lost_anything([skipped("mounts", "needs root")])
    assert Outcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome


def test_the_block_of_the_page_is_replaced_and_nothing_else() -> None:
    text = "before\n<!-- chaos -->\nold\n<!-- end -->\nafter\n"
    block = block_of(RECORDED)
    assert with_block(text, block) == f"before\n<!-- chaos -->\n{block}<!-- end -->\nafter\n"
    assert "| kills | 1,200 | 1,199 | 1 |" in block
    assert "| mounts | skipped: needs root | – | – |" in block
    with pytest.raises(SystemExit, match="has 0 places"):
        with_block("no marks", block)


def test_the_page_has_the_table_of_the_recorded_run_and_none_before_the_first() -> None:
    text = PAGE.read_text(encoding="utf-8")
    is_recorded = RECORD.is_file()
    block = block_of(json.loads(RECORD.read_text(encoding="utf-8"))) if is_recorded else ""
    assert with_block(text, block) == text


def test_the_last_changes_of_a_name_are_always_tried() -> None:
    rng = random.Random(1)
    assert chosen(3, rng) == [1, 2, 3]
    assert chosen(0, rng) == []
    many = chosen(40, rng)
    assert many[-LAST_CHANGES:] == [37, 38, 39, 40]
    assert len(set(many)) == LAST_CHANGES + OTHER_CHANGES


def test_only_changes_of_names_in_the_folder_count(tmp_path: Path) -> None:
    folder = str(tmp_path.resolve())
    assert changes_a_name("os.rename", (tmp_path / "a", tmp_path / "b", -1, -1), folder)
    assert changes_a_name("shutil.rmtree", (str(tmp_path / "a"), None), folder)
    assert changes_a_name("ctypes.dlsym", (None, "renameat2"), folder)
    assert not changes_a_name("os.rename", ("/elsewhere/a", "/elsewhere/b", -1, -1), folder)
    assert not changes_a_name("open", (tmp_path / "a", "w", 0), folder)


def test_a_process_is_killed_before_the_given_change(tmp_path: Path) -> None:
    code = (
        "import os, sys; from chaos.castpoi_command import kill_before_change as k; "
        "f = sys.argv[1]; k(2, f); open(f + '/a', 'w').close(); "
        "os.rename(f + '/a', f + '/b'); os.rename(f + '/b', f + '/c')"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path.resolve())], check=False)
    assert ended.returncode == -9
    assert [each.name for each in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("code", "out", "err", "fault"),
    [
        (1, '{"error": "the table has no user; add one"}', "", None),
        (0, '{"fingerprint": "a"}', "", "exit code 0"),
        (1, '{"error": "this is a bug in castpoi"}', "", "bug in castpoi"),
        (1, '{"error": "damaged"}', "thread panicked at", "panicked"),
        (1, "", "", "no JSON error"),
    ],
)
def test_only_a_sentence_with_exit_code_one_is_a_clear_refusal(
    code: int, out: str, err: str, fault: str | None
) -> None:
    found = Ended(code=code, out=out, err=err, seconds=0, peak_mb=0).why_unclear()
    assert (found is None) if fault is None else fault in (found or "")


def test_a_damaged_folder_is_refused_or_reads_as_before_or_counts_as_lost(tmp_path: Path) -> None:
    def refuse(_: Path) -> list[object]:
        raise BrokenFolder("it has changed")

    def fail(_: Path) -> list[object]:
        raise KeyError("user")

    def effect(read: object) -> str | None:
        kind = Kind(name="city", files=(), flips=1, read=read)  # type: ignore[arg-type]
        return effect_of_reading(kind, tmp_path, [1, "same"])

    assert effect(refuse) is None
    assert effect(lambda _: [1, "same"]) is None
    assert "part 1 of what is read has changed" in (effect(lambda _: [1, "other"]) or "")
    assert "unexpected KeyError" in (effect(fail) or "")


def test_odd_tables_have_different_names_and_differ_from_the_plain_one() -> None:
    tables = list(odd_tables())
    names = [each.name for each in tables]
    assert len(names) == len(set(names))
    assert 60 <= len(names) <= 130
    small = [each for each in tables if not each.name.startswith("an endless")]
    unlike = [each for each in small if each.ending == "csv" and not each.options]
    assert [each.name for each in unlike if each.content() == plain()] == []


def test_the_ledger_reports_a_lost_visit_a_doubled_one_and_a_user_who_is_back() -> None:
    import httpx

    at = "2024-05-06T12:00:00+00:00"
    stored = {
        "/v1/users/lost/visits": [],
        "/v1/users/doubled/visits": [{"place": "cafe", "at": at}] * 2,
        "/v1/users/gone/visits": [{"place": "cafe", "at": at}],
    }
    answers = httpx.MockTransport(
        lambda request: (
            httpx.Response(200, json={"visits": stored[request.url.path]})
            if request.method == "GET"
            else httpx.Response(200, json={})
        )
    )
    ledger = Ledger("test")
    with httpx.Client(transport=answers, base_url="http://service") as client:
        for user in ("lost", "doubled"):
            ledger.kept[user] = []
            ledger.post(client, [{"user": user, "place": "cafe", "at": at, "key": "1"}])
        ledger.erase(client, "gone")
        assert ledger.acknowledged == 3
        assert ledger.problems(client) == [
            "lost: 1 visits lost, 0 kept of 1",
            "doubled: 0 visits lost, 2 kept of 1",
            "gone was erased and is back",
        ]
