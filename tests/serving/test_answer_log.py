"""Several runs in one service, the log of their answers, and what the log is worth."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.recommender import Recommender
from castpoi.serving.answer_log import AnswerLog, evaluate_log, hashed
from castpoi.serving.service import Service
from castpoi.serving.settings import ServiceSettings
from castpoi.serving.store import VisitStore
from castpoi.serving.store_visits import StoredVisit
from tests.conftest import CommandLine
from tests.serving.live import Live, living

NOW_US = 1_333_400_000_000_000
HOUR_US = 3_600_000_000


@pytest.fixture
def store(tmp_path: Path) -> VisitStore:
    return VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")


@pytest.fixture
def live(
    recommender: Recommender, near_sighted: Recommender, tmp_path: Path, store: VisitStore
) -> Iterator[Live]:
    service = Service(
        settings=ServiceSettings(port=0),
        load=lambda: recommender,
        store=store,
        name="a",
        others={"b": lambda: near_sighted},
        shares={"a": 3.0, "b": 1.0},
        answer_log=AnswerLog(tmp_path / "answers.jsonl", store.secret()),
        clock=lambda: NOW_US,
    )
    with living(service) as running:
        yield running


def test_each_run_answers_its_share_of_the_users_and_always_the_same_ones(
    live: Live, recommender: Recommender, near_sighted: Recommender
) -> None:
    runs = [live.service.run_of(f"user {number}") for number in range(2_000)]
    assert 0.71 < runs.count("a") / len(runs) < 0.79
    assert runs == [live.service.run_of(f"user {number}") for number in range(2_000)]
    models = {"a": recommender.model, "b": near_sighted.model}
    for user in ("user 1", "user 2", "user 3", "user 4", "user 5"):
        assert live.recommend(user=user)["model"] == models[live.service.run_of(user)]
    assert live.recommend(user="user 1", run="b")["model"] == near_sighted.model
    assert live.recommend(history=[])["model"] == recommender.model
    card = live.ask("GET", "/v1/model", params={"run": "b"}).json()
    assert (card["model"], card["runs"]) == (near_sighted.model, {"a": 3.0, "b": 1.0})
    wrong = live.ask("POST", "/v1/recommend", json={"history": [], "run": "c"})
    assert wrong.status_code == 422
    assert "there is no run 'c'" in wrong.json()["error"]


def test_the_log_has_what_users_were_shown_without_their_ids(live: Live, tmp_path: Path) -> None:
    shown = live.recommend(user="ann", k=3, run="b")
    live.recommend(history=[], k=3)
    live.recommend(user="ann", k=3, explain=True)  # a question about an answer is not an answer
    live.recommend(user="ann", candidates=["park"])
    file = tmp_path / "answers.jsonl"
    (line,) = file.read_text().splitlines()
    row = json.loads(line)
    assert row["places"] == [each["place"] for each in shown["recommendations"]]
    assert (row["run"], row["model"], row["at"]) == ("b", shown["model"], NOW_US)
    assert "ann" not in line
    assert row["user"] == hashed("ann", live.service.store.secret())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_answer_is_judged_by_the_next_visit_of_its_user(
    store: VisitStore, tmp_path: Path, castpoi: CommandLine
) -> None:
    secret, file = store.secret(), tmp_path / "log"
    shown = [  # hours, user, run, places
        (0, "ann", "a", ["park", "cafe"]),  # replaced by the next one
        (1, "ann", "a", ["cafe", "park"]),  # a visit to the park: rank 2
        (3, "ann", "a", ["cafe"]),  # a visit to the office: not shown
        (5, "ann", "a", ["cafe"]),  # no visit followed
        (1, "bob", "b", ["cafe"]),  # a visit to the café: rank 1
        (1, "eve", "b", ["cafe"]),  # erased
    ]
    file.write_text(
        "\n".join(
            json.dumps({"at": hour * HOUR_US, "user": hashed(user, secret), "run": run,
                        "model": "m", "places": places})
            for hour, user, run, places in shown
        )
    )  # fmt: skip
    for user, place, hour in [("ann", "park", 2), ("ann", "office", 4), ("bob", "cafe", 1.5),
                              ("eve", "cafe", 2), ("zoe", "cafe", 2)]:  # fmt: skip
        store.add([StoredVisit(user=user, place=place, at_us=int(hour * HOUR_US))])
    store.erase("eve")
    a, b = evaluate_log(file, store)
    assert (a["run"], a["answers"], a["followed"]) == ("a", 4, 2)
    assert (a["HR@1"], a["HR@5"], a["MRR"]) == (0.0, 0.5, 0.25)
    assert (b["answers"], b["followed"], b["HR@1"], b["MRR"]) == (2, 1, 1.0, 1.0)
    url = f"sqlite:///{tmp_path}/visits.sqlite"
    assert castpoi("evaluate-log", file, "--store", url, "--json").json == {"rows": [a, b]}
    assert "25.0 %" in castpoi("evaluate-log", file, "--store", url).out


def test_a_file_that_is_no_log_is_refused(store: VisitStore, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("no log")
    with pytest.raises(BadInput, match="is not a log of answers"):
        evaluate_log(tmp_path / "log", store)


def test_serve_refuses_wrong_runs_and_shares(castpoi: CommandLine, tmp_path: Path) -> None:
    assert castpoi("serve").code == 2
    assert castpoi("serve", tmp_path, "--run", f"a={tmp_path}").code == 2
    assert castpoi("serve", "--run", "a").code == 2
