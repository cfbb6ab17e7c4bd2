"""The bookkeeping of `make chaos`: its attacks, counts, page and odd tables."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from chaos.__main__ import LIMITS
from chaos.flips import Kind, effect_of_reading
from chaos.outcome import Outcome, lost_anything, skipped
from chaos.page import block_of, with_block
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
