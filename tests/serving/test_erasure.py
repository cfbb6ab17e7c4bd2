"""Erased users stay erased: no byte is left, and no import adds them again."""

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from castpoi.checkins import record
from castpoi.core.errors import BrokenStore
from castpoi.recommend.recommender import Recommender
from castpoi.serving.service import CityImport, visits_of_city
from castpoi.serving.store import VisitStore
from castpoi.serving.store_visits import StoredVisit
from tests.contract import odd_city
from tests.messages import refused
from tests.serving.stores import Opening, places_of, visit


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def unfinished(store: VisitStore) -> list[str]:
    """Marks of erasures that are not finished."""
    with store._engine.connect() as connection:
        names = connection.execute(sa.text("SELECT name FROM about ORDER BY name")).scalars().all()
    return [name for name in names if name.startswith("must scrub")]


def test_erasing_removes_one_user_and_frees_their_keys(store: VisitStore) -> None:
    store.add([visit("ann", "cafe", 1, key="a"), visit("ann", "park", 2), visit("bob", "cafe", 1)])
    assert store.erase("ann") == 2
    assert store.erase("ann") == 0
    assert store.users(most=9) == [("bob", 1)]
    assert store.counts() == (1, 1)
    assert store.add([visit("ann", "office", 9, key="a")]) == 1
    assert places_of(store, "ann") == ["office"]


def test_an_interrupted_erasure_is_finished_by_the_next_start_or_erasure(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    scrub, scrubbed = VisitStore._scrub, []

    def watched(store: VisitStore, connection: sa.Connection) -> None:
        scrub(store, connection)
        scrubbed.append(store)

    store = opening()
    for finish in (opening, lambda: store.erase("somebody else")):
        store.add([visit("ann", "cafe", 1)])
        monkeypatch.setattr(VisitStore, "_scrub", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.erase("ann")
        assert len(unfinished(store)) == 1
        monkeypatch.setattr(VisitStore, "_scrub", watched)
        finish()
        assert unfinished(store) == []
    assert len(scrubbed) == 2
    opening().erase("nobody")
    assert len(scrubbed) == 2  # nothing was left to do


def test_finishing_an_erasure_keeps_the_mark_of_a_concurrent_one(
    store: VisitStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else deletes after the file was scrubbed and before the marks are taken away."""
    scrub = VisitStore._scrub

    def overtaken(self: VisitStore, connection: sa.Connection) -> None:
        scrub(self, connection)
        connection.execute(sa.text("INSERT INTO about VALUES ('must scrub 77', 'yes')"))

    store.add([visit("ann", "cafe", 1)])
    monkeypatch.setattr(VisitStore, "_scrub", overtaken)
    store.erase("ann")
    assert unfinished(store) == ["must scrub 77"]


def test_the_city_is_imported_once_and_erased_users_stay_erased(
    opening: Opening, recommender: Recommender
) -> None:
    reported: list[str] = []
    city = CityImport(folder=None, report=reported.append)
    store = opening()
    city.fill(store, recommender.run)
    assert reported == ["Imported 14 check-ins of the run's city into the new store."]
    assert places_of(store, "user 2") == ["park", "station"]
    store.erase("user 2")
    for user in ("user 0", "user 1", "user 3"):
        store.erase(user)
    city.fill(opening(), recommender.run)
    assert len(reported) == 1
    assert store.counts() == (0, 0)


def test_users_with_invalid_ids_are_not_imported(
    opening: Opening, recommender: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    city, reported = odd_city(), list[str]()
    ids = pl.Series(record.USER_ID, ["a\x00b", "x" * 257, "..", "user 3"])
    odd = replace(city, users=city.users.with_columns(ids))
    monkeypatch.setattr("castpoi.serving.service.city_of", lambda *_: odd)
    store = opening()
    CityImport(folder=None, report=reported.append).fill(store, recommender.run)
    assert [user for user, _ in store.users(most=9)] == ["user 3"]
    assert reported[1].startswith("Left out the visits of 3 users whose ids no request can contain")


@pytest.mark.parametrize(("visits", "erased"), [(1, ()), (1, ("user 2",)), (0, ("user 2",))])
def test_a_used_store_imports_no_city(
    store: VisitStore, visits: int, erased: Sequence[str]
) -> None:
    assert store.is_new()
    store.add([visit("user 2", "cafe", 1)] * visits)
    for user in erased:
        assert store.erase(user) == visits
    before = store.counts()
    assert not store.is_new()
    assert store.import_city(visits_of_city(odd_city()), fingerprint="0") == 0
    assert store.counts() == before == ((0, 0) if erased else (1, 1))


def test_an_erasure_during_the_import_waits_for_it(store: VisitStore) -> None:
    erased: list[int] = []
    erasing = threading.Thread(target=lambda: erased.append(store.erase("user 2")))

    def city() -> Iterator[list[StoredVisit]]:
        yield [visit("user 2", "cafe", 1)]
        erasing.start()
        erasing.join(0.2)
        yield [visit("user 2", "park", 2)]

    assert store.import_city(city(), fingerprint="0") == 2
    erasing.join()
    assert erased == [2]
    assert store.counts() == (0, 0)


def test_an_interrupted_import_leaves_the_store_new(store: VisitStore) -> None:
    def broken() -> Iterator[list[StoredVisit]]:
        yield [visit("ann", "cafe", 1)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.import_city(broken(), fingerprint="0")
    assert store.is_new()


def test_no_byte_of_an_erased_user_stays_in_the_files_of_sqlite(tmp_path: Path) -> None:
    """Rows of many lengths, so that pages were split and rebuilt before the erasure."""
    rng = random.Random(4)
    store = VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")
    users = [f"person {number:03d} of the city" for number in range(60)]
    for _ in range(12):
        owners = rng.choices(users, k=150)
        store.add(
            [
                visit(owner, f"home of {owner} {'x' * rng.randrange(120)}", rng.randrange(10**15))
                for owner in owners
            ]
        )
    gone, kept = users[:15], users[15:]
    for user in gone:
        store.erase(user)
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert all(user.encode() not in content for user in gone)
    assert all(user.encode() in content for user in kept)
    assert (tmp_path / "visits.sqlite-wal").stat().st_size == 0
    store.close()


@contextmanager
def reading(store: VisitStore) -> Iterator[None]:
    """A transaction that reads the visits until the end of the block."""
    with store._engine.connect() as reader:
        reader.exec_driver_sql("BEGIN")
        reader.exec_driver_sql("SELECT * FROM visits").all()
        yield


def test_an_erasure_blocked_by_a_reader_is_an_error_and_the_next_one_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castpoi.serving.store_engine._PATIENCE_SECONDS", 0.01)
    store = VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")
    store.add([visit("ann", "cafe", 1)])
    with reading(store):
        with refused(BrokenStore):
            store.erase("ann")
        assert store.counts() == (0, 0)
    assert store.erase("ann") == 0
    assert (tmp_path / "visits.sqlite-wal").stat().st_size == 0
    store.close()


def test_no_byte_stays_after_an_interrupted_erasure_and_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def content() -> bytes:
        return b"".join(file.read_bytes() for file in tmp_path.iterdir())

    killed = VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")
    killed.add([visit("ann of the city", "cafe", 1)])
    with monkeypatch.context() as patched:
        patched.setattr(VisitStore, "_scrub", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            killed.erase("ann of the city")
    assert b"ann of the city" in content()
    VisitStore(f"sqlite:///{tmp_path}/visits.sqlite").close()
    assert b"ann of the city" not in content()
    killed.close()


def test_a_reader_does_not_prevent_a_start_with_an_unfinished_erasure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("castpoi.serving.store_engine._PATIENCE_SECONDS", 0.01)
    store = VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")
    store.add([visit("ann", "cafe", 1)])
    with reading(store):
        with pytest.raises(BrokenStore):
            store.erase("ann")
        other = VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")
        assert "erasure not finished kind=BrokenStore" in caplog.text
    other.erase("somebody else")
    assert unfinished(other) == []
    assert (tmp_path / "visits.sqlite-wal").stat().st_size == 0
    other.close()
    store.close()
