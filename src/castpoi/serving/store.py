"""The visit store: the visits of users, in SQLite or PostgreSQL.

Both use the same statements (SQLAlchemy Core). A visit is acknowledged when it is on the disk. The
history of a user is read for every request, so a recommendation uses the visits posted before it.
"""

import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from castpoi.core.errors import BrokenStore, CastPoiError, RepeatedKey
from castpoi.recommend.request import Visits
from castpoi.serving.logs import log_failure
from castpoi.serving.store_engine import (
    ABOUT,
    ANSWER_SECONDS,
    LISTING_SECONDS,
    REWRITING_SECONDS,
    TABLES,
    USERS,
    VERSION,
    VISITS,
    answers_within,
    open_engine,
)
from castpoi.serving.store_visits import (
    StoredVisit,
    cursor_of,
    latest,
    visits_of,
)

_IMPORTED: Final = "imported city"
_USED: Final = {"name": "used", "value": "somebody was added or erased"}
_TRIED: Final = "write tried"
_TRIED_BYTES: Final = 1 << 18
_SECRET: Final = "secret"
_MUST_SCRUB: Final = "must scrub "
"""Prefix of the number of a user who is deleted, but whose bytes may still be in the file."""
_ALONE: Final = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "SELECT pg_advisory_xact_lock(1667330932)",  # any number of our own
}
"""Other services that start now wait: two at once would both create the tables."""
_SELECT_VERSION: Final = sa.select(ABOUT.c.value).where(ABOUT.c.name == "version")
_EMPTY_LOG: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
_AT_ONCE: Final = 500  # values of one statement; databases limit the number of parameters


class VisitStore:
    """Visits of users on disk; can be used from many threads."""

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        self._is_sqlite = self._engine.dialect.name == "sqlite"
        # SQLite has one writer at a time: our threads wait in turn instead of polling its lock
        self._turn: AbstractContextManager[Any] = (
            threading.Lock() if self._is_sqlite else nullcontext()
        )
        self._write_failed = False  # the last write, as on a full disk, which can still be read
        try:
            self._set_up()
            self._finish_interrupted_erasures()
        except CastPoiError:
            self.close()
            raise

    def add(self, visits: Sequence[StoredVisit]) -> int:
        """Store visits, all or none, and return the number of those not sent before.

        Raises `RepeatedKey` if a key was used before for another visit of the user.
        """
        if not visits:
            return 0
        with self._writing() as connection:
            self._insert_new(connection, ABOUT, [_USED])
            return self._add(connection, visits)

    def is_new(self) -> bool:
        """Whether no user was ever added or erased and no city was imported."""
        with self._reading() as connection:
            marks = sa.select(ABOUT).where(ABOUT.c.name.in_([_USED["name"], _IMPORTED]))
            return connection.execute(marks).first() is None

    def import_city(self, visits: Iterable[Sequence[StoredVisit]], *, fingerprint: str) -> int:
        """Fill a new store with all visits of a city, and return their number.

        A store that is not new is not changed: erased users stay erased.
        """
        with self._translated_errors(), self._turn, self._rewriting() as connection:
            # an erasure at the same time waits for the row `_USED`, and so for the whole city
            marks = [_USED, {"name": _IMPORTED, "value": fingerprint}]
            if self._insert_new(connection, ABOUT, marks) < len(marks):
                return 0
            return sum(self._add(connection, chunk) for chunk in visits)

    def histories(self, users: Sequence[str], *, most: int) -> dict[str, Visits]:
        """The latest `most` visits of each user; an unknown user has none."""
        with self._reading() as connection:
            return {user: visits_of(latest(connection, user, most)) for user in set(users)}

    def page_of_visits(self, user: str, *, after: str, most: int) -> tuple[Visits, str | None]:
        """The latest visits of a user, or those before the page with the `next` of `after`.

        Also the `next` of this page; None if there are no earlier visits.
        """
        with self._reading() as connection:
            rows = latest(connection, user, most + 1, before=cursor_of(after) if after else None)
        page = visits_of(rows[-most:])
        if len(rows) <= most:
            return page, None
        first = rows[-most]
        return page, f"{first.at_us}.{first.visit}.{first.place_id}"

    def users(self, *, begin: str = "", after: str = "", most: int) -> list[tuple[str, int]]:
        """Users whose id begins with `begin` and is after `after`, and their numbers of visits."""
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
        with self._reading(LISTING_SECONDS) as connection:
            return [(row.user_id, row.visits) for row in connection.execute(statement)]

    def chunks(self, *, most: int) -> Iterator[list[tuple[Any, ...]]]:
        """All visits as (number of the user, user, place, at_us), up to `most` at once.

        Each chunk is read by itself, so that no erasure has to wait for the last one.
        """
        statement = (
            sa.select(VISITS.c.user, USERS.c.user_id, VISITS.c.place_id, VISITS.c.at_us)
            .join(USERS, VISITS.c.user == USERS.c.number)
            .add_columns(VISITS.c.visit)
            .order_by(VISITS.c.visit)
            .limit(most)
        )
        last = -1
        while True:
            with self._reading(REWRITING_SECONDS) as connection:
                rows = connection.execute(statement.where(VISITS.c.visit > last)).all()
            if not rows:
                return
            last = rows[-1].visit
            yield [tuple(row)[:-1] for row in rows]

    def user_numbers(self) -> list[int]:
        """The numbers of all users; that of an erased user is never used again."""
        with self._reading(REWRITING_SECONDS) as connection:
            return list(connection.execute(sa.select(USERS.c.number)).scalars())

    def counts(self) -> tuple[int, int]:
        """Number of users and of visits."""
        with self._reading(REWRITING_SECONDS) as connection:  # it reads every row
            users, visits = (
                connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for table in (USERS, VISITS)
            )
        return users, visits

    def secret(self) -> bytes:
        """Random bytes that belong to the store, made at the first call."""
        with self._writing() as connection:
            row = {"name": _SECRET, "value": secrets.token_hex(32)}
            self._insert_new(connection, ABOUT, [row])
            value = sa.select(ABOUT.c.value).where(ABOUT.c.name == _SECRET)
            return bytes.fromhex(connection.execute(value).scalar_one())

    def check(self) -> None:
        """Raise `BrokenStore` unless reading and, after a failed write, writing work."""
        if not self._write_failed:
            with self._reading() as connection:
                connection.execute(_SELECT_VERSION).scalar_one()
            return
        with self._writing() as connection:
            # as large as many visits: a smaller row may fit where no visit does
            connection.execute(sa.insert(ABOUT).values(name=_TRIED, value="0" * _TRIED_BYTES))
            connection.execute(sa.delete(ABOUT).where(ABOUT.c.name == _TRIED))

    def erase(self, user: str) -> int:
        """Remove a user and all their visits permanently, and return the number of visits.

        In SQLite no byte of them stays in the file or its log. PostgreSQL removes the rows and
        vacuums; its write-ahead log and backups are rotated by its administrator. If this is
        interrupted, the next erasure or the next start finishes it.
        """
        with self._translated_errors(), self._turn:
            with self._rewriting() as connection:
                self._insert_new(connection, ABOUT, [_USED])
                gone = _delete(connection, user)
            self._finish_erasures()
        return gone

    def delete_visit(self, user: str, place: str, at_us: int) -> int:
        """Delete the visit of a user at a place and instant, and return the number of rows.

        It has several rows if clients gave it several keys. Unlike `erase` this rewrites no file.
        """
        number = sa.select(USERS.c.number).where(USERS.c.user_id == user).scalar_subquery()
        is_it = (VISITS.c.user == number, VISITS.c.at_us == at_us, VISITS.c.place_id == place)
        with self._writing() as connection:
            return connection.execute(sa.delete(VISITS).where(*is_it)).rowcount

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _set_up(self) -> None:
        try:
            with self._rewriting() as connection:
                connection.exec_driver_sql(_ALONE[connection.dialect.name])
                TABLES.create_all(connection)
                self._insert_new(connection, ABOUT, [{"name": "version", "value": VERSION}])
                version = connection.execute(_SELECT_VERSION).scalar_one()
        except SQLAlchemyError as problem:
            raise _broken(problem) from problem
        if version != VERSION:
            raise BrokenStore(
                f"the visit store has tables of version {version}, but this castpoi needs "
                f"version {VERSION}; use a newer castpoi, or another --store"
            )

    def _finish_interrupted_erasures(self) -> None:
        """Finish erasures that a former service began; a failure does not prevent the start."""
        try:
            with self._turn:
                self._finish_erasures()
        except (SQLAlchemyError, BrokenStore) as problem:  # the next erasure tries again
            log_failure("erasure not finished", problem)

    def _finish_erasures(self) -> None:
        """Scrub if an erasure is marked as unfinished, then remove its mark."""
        with (
            self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
            answers_within(REWRITING_SECONDS),
        ):
            is_mark = ABOUT.c.name.startswith(_MUST_SCRUB)
            marks = connection.execute(sa.select(ABOUT.c.name).where(is_mark)).scalars().all()
            if not marks:
                return
            self._scrub(connection)
            # only the marks read above: a new one may have been added since
            connection.execute(sa.delete(ABOUT).where(ABOUT.c.name.in_(marks)))
            if self._is_sqlite:
                connection.exec_driver_sql(_EMPTY_LOG)  # the log contains the mark

    def _scrub(self, connection: sa.Connection) -> None:
        """Overwrite all bytes of deleted rows."""
        if not self._is_sqlite:
            connection.exec_driver_sql("VACUUM visits, users")
            return
        # Deleted cells are zeroed (secure_delete), but pages that were split before may still
        # contain copies outside their live cells: only a rewritten file has none.
        connection.exec_driver_sql("VACUUM")
        is_busy = connection.exec_driver_sql(_EMPTY_LOG).scalar_one()
        if is_busy:
            raise BrokenStore(
                "the user is erased, but the log of the visit store could not be emptied while "
                "others read it; send the erasure again"
            )

    def _add(self, connection: sa.Connection, visits: Sequence[StoredVisit]) -> int:
        numbers = self._numbers(connection, sorted({visit.user for visit in visits}))
        rows = {(numbers[visit.user], visit.digest): visit for visit in visits}
        if any(rows[numbers[visit.user], visit.digest] != visit for visit in visits):
            raise _repeated_key()
        values = [
            {"user": user, "key": key, "place_id": visit.place, "at_us": visit.at_us}
            for (user, key), visit in sorted(rows.items(), key=lambda row: row[0])
        ]
        stored = self._insert_new(connection, VISITS, values)
        if stored < len(rows):
            _check_repeats(connection, rows)
        return stored

    def _numbers(self, connection: sa.Connection, users: Sequence[str]) -> dict[str, int]:
        """The number of each user; new users get one."""
        numbers: dict[str, int] = {}
        while missing := [user for user in users if user not in numbers]:
            for start in range(0, len(missing), _AT_ONCE):
                some = missing[start : start + _AT_ONCE]
                self._insert_new(connection, USERS, [{"user_id": user} for user in some])
                # locked so that they are not erased before their visits are inserted (PostgreSQL)
                statement = sa.select(USERS).where(USERS.c.user_id.in_(some))
                found = connection.execute(statement.with_for_update(read=True, key_share=True))
                numbers |= {row.user_id: row.number for row in found}
        return numbers

    def _insert_new(
        self, connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]
    ) -> int:
        """Insert the rows that do not exist yet, and return their number."""
        insert = sqlite.insert if self._is_sqlite else postgresql.insert
        identity = next(iter(table.primary_key.columns))
        statement = insert(table).on_conflict_do_nothing().returning(identity)
        return len(connection.execute(statement, rows).all())

    @contextmanager
    def _reading(self, seconds: float = ANSWER_SECONDS) -> Iterator[sa.Connection]:
        """A connection whose statements have a time limit."""
        with (
            self._translated_errors(),
            self._engine.connect() as connection,
            answers_within(seconds),
        ):
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction, one at a time in SQLite; records whether it failed."""
        with self._translated_errors():
            try:
                with self._turn, self._engine.begin() as connection:
                    yield connection
            except SQLAlchemyError:
                self._write_failed = True
                raise
            self._write_failed = False

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
    def _translated_errors(self) -> Iterator[None]:
        """Log a failure of the database, once for all requests that share it, and translate it."""
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
        f"the visit store failed ({type(problem).__name__}); check its disk space, its "
        "permissions and, for PostgreSQL, its server"
    )


def _delete(connection: sa.Connection, user: str) -> int:
    """Delete the rows of a user, mark them to be scrubbed, and return the number of visits."""
    number = connection.execute(
        sa.select(USERS.c.number).where(USERS.c.user_id == user).with_for_update()
    ).scalar()
    if number is None:
        return 0
    gone = connection.execute(sa.delete(VISITS).where(VISITS.c.user == number))
    connection.execute(sa.delete(USERS).where(USERS.c.number == number))
    # a number is never used again, so every erasure has its own mark
    connection.execute(sa.insert(ABOUT).values(name=f"{_MUST_SCRUB}{number}", value="yes"))
    return gone.rowcount


def _check_repeats(connection: sa.Connection, rows: dict[tuple[int, bytes], StoredVisit]) -> None:
    """Reject a key that already identifies another visit of the user."""
    identity, wanted = sa.tuple_(VISITS.c.user, VISITS.c.key), list(rows)
    for start in range(0, len(wanted), _AT_ONCE):
        is_wanted = identity.in_(wanted[start : start + _AT_ONCE])
        for row in connection.execute(sa.select(VISITS).where(is_wanted)):
            visit = rows[row.user, bytes(row.key)]
            if (row.place_id, row.at_us) != (visit.place, visit.at_us):
                raise _repeated_key()


def _repeated_key() -> RepeatedKey:
    return RepeatedKey(
        "a key was used before for another visit of this user; a key identifies one visit, and "
        "only the same visit may be sent with it again"
    )
