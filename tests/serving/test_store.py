"""The visit store, on SQLite and on PostgreSQL alike."""

import random
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from castpoi.core.errors import BadInput, BrokenStore, RepeatedKey
from castpoi.serving.store import VisitStore
from tests.messages import refused
from tests.serving.stores import Opening, places_of, visit


def test_a_history_is_oldest_first_whatever_the_order_of_posting(store: VisitStore) -> None:
    store.add([visit("ann", "park", 30), visit("bob", "cafe", 5), visit("ann", "cafe", 10)])
    store.add([visit("ann", "office", 20)])
    assert places_of(store, "ann") == ["cafe", "office", "park"]
    assert places_of(store, "bob") == ["cafe"]
    assert places_of(store, "nobody") == []
    assert store.counts() == (2, 4)


def test_only_the_latest_visits_are_read(store: VisitStore) -> None:
    store.add([visit("ann", f"place {number}", number) for number in range(10)])
    assert places_of(store, "ann", most=3) == ["place 7", "place 8", "place 9"]


def test_visits_are_still_stored_after_a_restart(opening: Opening) -> None:
    first = opening()
    first.add([visit("ann", "cafe", 1)])
    first.close()
    assert places_of(opening(), "ann") == ["cafe"]


def test_a_visit_sent_again_with_its_key_is_not_stored_again(store: VisitStore) -> None:
    sent = [visit("ann", "cafe", 1, key="a"), visit("ann", "park", 2, key="b")]
    assert store.add(sent) == 2
    assert store.add([*sent, visit("ann", "park", 3, key="c")]) == 1
    assert places_of(store, "ann") == ["cafe", "park", "park"]


def test_without_a_key_place_and_instant_identify_the_visit(store: VisitStore) -> None:
    assert store.add([visit("ann", "cafe", 1)] * 2) == 1
    assert store.add([visit("ann", "cafe", 1)]) == 0
    assert store.add([visit("ann", "park", 1)]) == 1


def test_users_may_choose_the_same_key(store: VisitStore) -> None:
    both = [visit("ann", "cafe", 1, key="1"), visit("bob", "park", 2, key="1")]
    assert store.add(both) == 2


@pytest.mark.parametrize("together", [True, False])
def test_a_key_of_another_visit_is_rejected_and_nothing_is_stored(
    store: VisitStore, together: bool
) -> None:
    first, other = visit("ann", "cafe", 1, key="a"), visit("ann", "park", 1, key="a")
    if not together:
        store.add([first])
    with refused(RepeatedKey):
        store.add([visit("cat", "cafe", 1), *([first] if together else []), other])
    assert places_of(store, "cat") == []
    assert places_of(store, "ann") == ([] if together else ["cafe"])


def test_one_visit_is_deleted_whatever_its_keys_and_may_be_sent_again(store: VisitStore) -> None:
    twice = [visit("ann", "cafe", 1, key="a"), visit("ann", "cafe", 1, key="b")]
    kept = [visit("ann", "cafe", 2), visit("ann", "park", 1), visit("bob", "cafe", 1)]
    store.add([*twice, *kept])
    assert store.delete_visit("ann", "cafe", 1) == 2
    assert store.delete_visit("ann", "cafe", 1) == 0
    assert store.delete_visit("nobody", "cafe", 1) == 0
    assert (places_of(store, "ann"), places_of(store, "bob")) == (["park", "cafe"], ["cafe"])
    assert store.add(twice[:1]) == 1


def test_users_are_listed_by_id_in_pages_and_by_prefix(store: VisitStore) -> None:
    store.add([visit(user, "cafe", 1) for user in ("b", "Ba", "a", "c%", "c_", "ca")])
    assert store.users(most=2) == [("Ba", 1), ("a", 1)]
    assert store.users(after="a", most=2) == [("b", 1), ("c%", 1)]
    assert store.users(begin="c%", most=9) == [("c%", 1)]
    assert [user for user, _ in store.users(begin="c", after="c%", most=9)] == ["c_", "ca"]


def test_many_writers_at_once_lose_nothing_and_repeat_nothing(store: VisitStore) -> None:
    """Threads send the same visits in other orders, while one user is erased again and again."""

    def send(seed: int) -> None:
        rng = random.Random(seed)
        for number in rng.sample(range(40), 40):
            store.add([visit(f"user {number % 5}", f"place {number}", number, key=str(number))])
            if seed == 0 and number % 4 == 0:
                store.erase("user 0")

    threads = [threading.Thread(target=send, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for user in range(1, 5):
        wanted = [f"place {number}" for number in range(40) if number % 5 == user]
        assert places_of(store, f"user {user}") == wanted


def test_tables_of_another_version_are_rejected(opening: Opening) -> None:
    store = opening()
    with store._engine.begin() as connection:
        connection.execute(sa.text("UPDATE about SET value = '9' WHERE name = 'version'"))
    with refused(BrokenStore):
        opening()


def test_the_error_of_a_broken_store_has_no_personal_data(store: VisitStore) -> None:
    with store._engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE visits RENAME TO elsewhere"))
    with refused(BrokenStore) as error:
        store.histories(["ann the secret"], most=1)
    assert "ann" not in str(error.value) + str(error.value.__cause__)
    with store._engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE elsewhere RENAME TO visits"))


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    VisitStore(f"sqlite:///{tmp_path}/visits.sqlite").close()
    assert (tmp_path / "visits.sqlite").stat().st_mode & 0o077 == 0


def test_sqlite_syncs_every_commit_and_zeroes_deleted_data(tmp_path: Path) -> None:
    store = VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")
    with store._engine.connect() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        ]
    assert found == ["wal", 2, 1, 1]
    store.close()


@pytest.mark.parametrize(
    "url",
    ["visits.sqlite", "mysql://x@h/d", "sqlite://", "sqlite:////no/such/folder/v.sqlite"],
)
def test_a_store_that_cannot_be_opened_is_an_error(url: str) -> None:
    with refused(BadInput):
        VisitStore(url)


def test_the_error_for_a_server_that_does_not_answer_hides_the_password() -> None:
    with pytest.raises(BadInput, match=r"psycopg://u:\*\*\*@127.*--store"):
        VisitStore("postgresql://u:secret@127.0.0.1:1/d")


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Ann, " * 200)
    with refused(BadInput):
        VisitStore(f"sqlite:///{tmp_path}/letter.txt")
