"""The visit store: what users did, so far and from now on.

SQLite by default, PostgreSQL by its URL, through the same statements (SQLAlchemy Core). A visit is
acknowledged when it is on the disk. The histories of a user are read at every question, so the next
recommendation knows the visit that was posted before it.
"""

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from castpoi.core.errors import BrokenStore, CastPoiError, RepeatedKey
from castpoi.serving.logs import log_failure
from castpoi.serving.store_engine import open_engine
from castpoi.serving.store_limits import LISTING_SECONDS, REWRITING_SECONDS, answers_within
from castpoi.serving.store_tables import ABOUT, TABLES, USERS, VERSION, VISITS

_IMPORTED: Final = "imported city"
_USED: Final = {"name": "used", "value": "somebody was added or erased"}
_TRIED: Final = "write tried"
_MUST_SCRUB: Final = "must scrub "
"""Before the number of a user who is deleted, but of whom bytes may be left."""
_ALONE: Final = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "SELECT pg_advisory_xact_lock(1667330932)",  # any number of our own
}
"""Makes other services that start now wait: two would both find no tables and create them."""
_EMPTY_LOG: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
_AT_ONCE: Final = 500
"""Users asked for in one statement; databases bound the number of parameters."""


@dataclass(frozen=True, kw_only=True)
class StoredVisit:
    """A user at a place at an instant, as the store keeps it."""

    user: str
    place: str
    at_us: int
    key: str | None = None
    """The client's name for this visit; sent again, it is not stored again."""

    @property
    def digest(self) -> bytes:
        """What tells this visit from the user's others: its key, else its place and instant."""
        name = f"at {self.at_us} {self.place}" if self.key is None else f"key {self.key}"
        return hashlib.sha256(name.encode()).digest()[:16]


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of posted visits."""

    stored: int
    repeated: int
    """Those the store already had."""


class VisitStore:
    """Visits of users, kept on disk; safe to use from many threads."""

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        self._is_sqlite = self._engine.dialect.name == "sqlite"
        # SQLite has one writer at a time: ours wait for one another instead of polling its lock.
        self._turn: AbstractContextManager[Any] = (
            threading.Lock() if self._is_sqlite else nullcontext()
        )
        self._write_failed = False
        """Whether the latest write failed, as it does on a full disk, which can still be read."""
        try:
            self._set_up()
            self._finish_what_broke_off()
        except CastPoiError:
            self.close()
            raise

    def add(self, visits: Sequence[StoredVisit]) -> Receipt:
        """Keep visits, all or none; those that were sent before are not kept twice.

        Raises `RepeatedKey` if a key was used before for another visit of the user.
        """
        if not visits:
            return Receipt(stored=0, repeated=0)
        with self._problems_told(), self._writing() as connection:
            self._insert_new(connection, ABOUT, [_USED])
            stored = self._add(connection, visits)
        return Receipt(stored=stored, repeated=len(visits) - stored)

    def is_new(self) -> bool:
        """Whether nobody was ever added or erased and no city was imported."""
        with self._problems_told(), self._engine.connect() as connection:
            marks = sa.select(ABOUT).where(ABOUT.c.name.in_([_USED["name"], _IMPORTED]))
            # an older castpoi made no mark of use, but left visits
            return not (connection.execute(marks).first() or _has_visits(connection))

    def import_city(self, visits: Iterable[Sequence[StoredVisit]], *, fingerprint: str) -> int:
        """Fill a new store with a city's visits, once and whole; how many were taken.

        A store that is not new is left as it is: what was erased stays so.
        """
        with self._problems_told(), self._turn, self._rewriting() as connection:
            # who erases somebody meanwhile waits for the mark of use, and so for the city
            marks = [_USED, {"name": _IMPORTED, "value": fingerprint}]
            is_new = self._insert_new(connection, ABOUT, marks) == len(marks)
            if not is_new or _has_visits(connection):
                return 0
            return sum(self._add(connection, chunk) for chunk in visits)

    def histories(self, users: Sequence[str], *, most: int) -> dict[str, list[StoredVisit]]:
        """The latest `most` visits of each user, oldest first; an unknown user has none."""
        with self._problems_told(), self._engine.connect() as connection:
            return {user: _history(connection, user, most) for user in dict.fromkeys(users)}

    def users(self, *, begin: str = "", after: str = "", most: int) -> list[tuple[str, int]]:
        """Users and how many visits they have, by id: those that `begin` so, behind `after`."""
        count = sa.func.count().label("visits")
        statement = (
            sa.select(USERS.c.user_id, count)
            .join(VISITS, VISITS.c.user == USERS.c.number)
            .where(USERS.c.user_id > after, USERS.c.user_id >= begin)
            .where(sa.func.substr(USERS.c.user_id, 1, len(begin)) == begin)
            .group_by(USERS.c.user_id)
            .order_by(USERS.c.user_id)
            .limit(most)
        )
        with self._problems_told(), self._listing() as connection:
            return [(row.user_id, row.visits) for row in connection.execute(statement)]

    def some_users(self, most: int) -> list[str]:
        """So many users at most, spread over the order in which they came."""
        with self._problems_told(), self._listing() as connection:
            count = connection.execute(sa.select(sa.func.count(USERS.c.number))).scalar_one()
            # numbers have gaps: erasures leave them, and visits of users who are there already
            row = (sa.func.row_number().over(order_by=USERS.c.number) - 1).label("row")
            came = sa.select(USERS.c.user_id, row).subquery()
            is_taken = came.c.row * most % max(1, count) < most  # the first of each share
            statement = sa.select(came.c.user_id).where(is_taken).order_by(came.c.row).limit(most)
            return list(connection.execute(statement).scalars())

    def counts(self) -> tuple[int, int]:
        """Number of users and of visits."""
        with (
            self._problems_told(),
            self._engine.connect() as connection,
            answers_within(REWRITING_SECONDS),  # it reads every row
        ):
            users, visits = (
                connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for table in (USERS, VISITS)
            )
        return users, visits

    def check(self) -> None:
        """Raise `BrokenStore` unless the store answers and, if a write failed, takes one again."""
        if not self._write_failed:
            with self._problems_told(), self._engine.connect() as connection:
                _about(connection, "version")
            return
        with self._problems_told(), self._writing() as connection:
            # SQLite writes no page that an UPDATE leaves as it was
            connection.execute(sa.insert(ABOUT).values(name=_TRIED, value="yes"))
            connection.execute(sa.delete(ABOUT).where(ABOUT.c.name == _TRIED))

    def erase(self, user: str) -> int:
        """Remove a user and all their visits for good; how many visits there were.

        In SQLite no byte of them stays in the file or its log. PostgreSQL removes the rows and
        vacuums; its write-ahead log and backups are for their keeper to rotate. Whatever breaks
        that off, the next erasure or the next start finishes it.
        """
        with self._problems_told(), self._turn:
            with self._rewriting() as connection:
                self._insert_new(connection, ABOUT, [_USED])
                gone = _delete(connection, user)
            self._finish_erasures()
        return gone

    def delete_visit(self, user: str, place: str, at_us: int) -> int:
        """Delete the visit of a user at a place and instant; how many there were.

        More than one if clients gave it several keys. Unlike `erase` this rewrites no file.
        """
        number = sa.select(USERS.c.number).where(USERS.c.user_id == user).scalar_subquery()
        is_it = (VISITS.c.user == number, VISITS.c.at_us == at_us, VISITS.c.place_id == place)
        with self._problems_told(), self._writing() as connection:
            return connection.execute(sa.delete(VISITS).where(*is_it)).rowcount

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _set_up(self) -> None:
        try:
            with self._rewriting() as connection:
                connection.exec_driver_sql(_ALONE[connection.dialect.name])
                TABLES.create_all(connection)
                self._insert_new(connection, ABOUT, [{"name": "version", "value": VERSION}])
                version = _about(connection, "version")
        except SQLAlchemyError as problem:
            raise _broken(problem) from problem
        if version != VERSION:
            raise BrokenStore(
                f"the visit store has tables of version {version}, this castpoi knows version "
                f"{VERSION}; use a newer castpoi, or another --store"
            )

    def _finish_what_broke_off(self) -> None:
        """Finish erasures of a former service; what holds them up does not hold up this one."""
        try:
            with self._turn:
                self._finish_erasures()
        except (SQLAlchemyError, BrokenStore) as problem:  # the next erasure tries again
            log_failure("erasure not finished", problem)

    def _finish_erasures(self) -> None:
        """Scrub if an erasure is marked as not finished, and then take away its mark."""
        with (
            self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
            answers_within(REWRITING_SECONDS),
        ):
            marks = _scrub_marks(connection)
            if not marks:
                return
            self._scrub(connection)
            # only those read before: another may have been made since
            connection.execute(sa.delete(ABOUT).where(ABOUT.c.name.in_(marks)))
            if self._is_sqlite:
                connection.exec_driver_sql(_EMPTY_LOG)  # it holds no more than the mark

    def _scrub(self, connection: sa.Connection) -> None:
        """Leave nothing of deleted rows behind."""
        if not self._is_sqlite:
            connection.exec_driver_sql("VACUUM visits, users")
            return
        # Deleted cells are zeroed (secure_delete), but pages that were split before may still
        # hold copies beyond their live cells: only a rewritten file has none.
        connection.exec_driver_sql("VACUUM")
        is_busy = connection.exec_driver_sql(_EMPTY_LOG).scalar_one()
        if is_busy:
            raise BrokenStore(
                "the user is erased, but the log of the visit store could not be emptied while "
                "others read it; ask for the erasure again"
            )

    def _add(self, connection: sa.Connection, visits: Sequence[StoredVisit]) -> int:
        numbers = self._numbers(connection, sorted({visit.user for visit in visits}))
        rows = {(numbers[visit.user], visit.digest): visit for visit in visits}
        if any(rows[numbers[visit.user], visit.digest] != visit for visit in visits):
            raise _repeated_key()
        stored = self._insert_new(
            connection,
            VISITS,
            [
                {"user": user, "key": key, "place_id": visit.place, "at_us": visit.at_us}
                for (user, key), visit in sorted(rows.items(), key=lambda row: row[0])
            ],
        )
        if stored < len(rows):
            _check_repeats(connection, rows)
        return stored

    def _numbers(self, connection: sa.Connection, users: Sequence[str]) -> dict[str, int]:
        """The number of every user; new ones get one."""
        numbers: dict[str, int] = {}
        while missing := [user for user in users if user not in numbers]:
            for start in range(0, len(missing), _AT_ONCE):
                some = missing[start : start + _AT_ONCE]
                self._insert_new(connection, USERS, [{"user_id": user} for user in some])
                # locked against being erased before their visits are in (PostgreSQL)
                statement = sa.select(USERS).where(USERS.c.user_id.in_(some))
                found = connection.execute(statement.with_for_update(read=True, key_share=True))
                numbers |= {row.user_id: row.number for row in found}
        return numbers

    def _insert_new(
        self, connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]
    ) -> int:
        """Insert the rows that are not there yet, and return how many were not."""
        insert = sqlite.insert if self._is_sqlite else postgresql.insert
        identity = next(iter(table.primary_key.columns))
        statement = insert(table).on_conflict_do_nothing().returning(identity)
        return len(connection.execute(statement, rows).all())

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction, in turn; notes whether the database took it."""
        try:
            with self._turn, self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError:
            self._write_failed = True
            raise
        self._write_failed = False

    @contextmanager
    def _listing(self) -> Iterator[sa.Connection]:
        """Read what may be about all users."""
        with self._engine.connect() as connection, answers_within(LISTING_SECONDS):
            yield connection

    @contextmanager
    def _rewriting(self) -> Iterator[sa.Connection]:
        """A transaction that may change very many rows."""
        with (
            self._engine.connect() as connection,
            answers_within(REWRITING_SECONDS),
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def _problems_told(self) -> Iterator[None]:
        """Log a failure of the database, once however many requests share it, and translate it."""
        try:
            yield
        except BrokenStore as problem:
            log_failure("store failed", problem)
            raise
        except SQLAlchemyError as problem:
            log_failure("store failed", problem)
            raise _broken(problem) from problem


def _broken(problem: SQLAlchemyError) -> BrokenStore:
    return BrokenStore(
        f"the visit store does not answer as it should ({type(problem).__name__}); look at "
        "its disk space, its permissions and, for PostgreSQL, its server"
    )


def _has_visits(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(VISITS.c.visit).limit(1)).first() is not None


def _delete(connection: sa.Connection, user: str) -> int:
    """Delete the rows of a user and mark what is left to do; how many visits there were."""
    number = connection.execute(
        sa.select(USERS.c.number).where(USERS.c.user_id == user).with_for_update()
    ).scalar()
    if number is None:
        return 0
    gone = connection.execute(sa.delete(VISITS).where(VISITS.c.user == number))
    connection.execute(sa.delete(USERS).where(USERS.c.number == number))
    # the number never comes back, so every erasure has a mark of its own
    connection.execute(sa.insert(ABOUT).values(name=f"{_MUST_SCRUB}{number}", value="yes"))
    return gone.rowcount


def _scrub_marks(connection: sa.Connection) -> list[str]:
    marks = sa.select(ABOUT.c.name).where(ABOUT.c.name.startswith(_MUST_SCRUB))
    return list(connection.execute(marks).scalars())


def _history(connection: sa.Connection, user: str, most: int) -> list[StoredVisit]:
    latest = (
        sa.select(VISITS.c.place_id, VISITS.c.at_us)
        .join(USERS, VISITS.c.user == USERS.c.number)
        .where(USERS.c.user_id == user)
        .order_by(VISITS.c.at_us.desc(), VISITS.c.place_id.desc())
        .limit(most)
    )
    rows = reversed(connection.execute(latest).all())
    return [StoredVisit(user=user, place=place, at_us=at_us) for place, at_us in rows]


def _about(connection: sa.Connection, name: str) -> str:
    value = connection.execute(sa.select(ABOUT.c.value).where(ABOUT.c.name == name)).scalar_one()
    return str(value)


def _check_repeats(connection: sa.Connection, rows: dict[tuple[int, bytes], StoredVisit]) -> None:
    """Refuse a key that already names another visit of the user."""
    wanted = list(rows)
    for start in range(0, len(wanted), _AT_ONCE):
        found = connection.execute(
            sa.select(VISITS).where(
                sa.tuple_(VISITS.c.user, VISITS.c.key).in_(wanted[start : start + _AT_ONCE])
            )
        )
        for row in found:
            visit = rows[row.user, bytes(row.key)]
            if (row.place_id, row.at_us) != (visit.place, visit.at_us):
                raise _repeated_key()


def _repeated_key() -> RepeatedKey:
    return RepeatedKey(
        "a key was used before for another visit of this user; a key names one visit, and only "
        "the very same visit may be sent with it again"
    )
