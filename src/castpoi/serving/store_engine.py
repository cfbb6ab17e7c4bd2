"""The database of the visit store: SQLite or PostgreSQL, its tables, and time limits.

    users    number, user_id             a user id is stored here and nowhere else
    visits   user, place_id, at_us, key  key: digest of the client's key, or of time and place
    about    name, value                 version of the tables, the imported city, whether a user
                                         was added or erased, unfinished erasures, the secret of
                                         the answer log

A PostgreSQL server whose processes are stopped still has a kernel that accepts connections and
acknowledges data. Neither the server's statement_timeout nor TCP's limits end such a wait, so a
connection here ends it by itself: after `ANSWER_SECONDS`, unless `answers_within` allows more.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from castpoi.core.errors import BadInput

VERSION: Final = "1"

_TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Ids, ordered by their characters alone in every database."""
_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")

TABLES: Final = sa.MetaData()
USERS: Final = sa.Table(
    "users",
    TABLES,
    sa.Column("number", _NUMBER, primary_key=True),
    sa.Column("user_id", _TEXT, nullable=False, unique=True),
    sqlite_autoincrement=True,  # the number of an erased user is never used again
)
VISITS: Final = sa.Table(
    "visits",
    TABLES,
    sa.Column("visit", _NUMBER, primary_key=True),
    sa.Column("user", sa.ForeignKey("users.number"), nullable=False),
    sa.Column("place_id", _TEXT, nullable=False),
    sa.Column("at_us", sa.BigInteger, nullable=False),
    sa.Column("key", sa.LargeBinary(16), nullable=False),
    sa.UniqueConstraint("user", "key", name="one_visit_a_key"),
    sa.Index("history", "user", "at_us", "place_id"),
    sqlite_autoincrement=True,
)
ABOUT: Final = sa.Table(
    "about",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

# time limits of PostgreSQL
ANSWER_SECONDS: Final = 1.5  # for a connection and for a statement
LISTING_SECONDS: Final = 10.0  # for a statement that reads all users
REWRITING_SECONDS: Final = 600.0  # for one that changes or counts very many rows, or waits for one

_REST_SECONDS: Final = 1.0  # after no answer, no request tries to connect for this long
_PATIENCE_SECONDS: Final = 10
_SQLITE_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",  # readers never wait for the writer
    "PRAGMA synchronous=FULL",  # a commit is on the disk before it is acknowledged
    "PRAGMA secure_delete=ON",  # deleted data is overwritten with zeros
    "PRAGMA foreign_keys=ON",
)

_Value = TypeVar("_Value")

_limit: ContextVar[float] = ContextVar("answer_seconds", default=ANSWER_SECONDS)


def check_exists(url: str) -> None:
    """Refuse a SQLite store without a file, which opening would create."""
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).is_file():
        raise BadInput(f"there is no visit store at {url}; give the --store of the service")


def open_engine(url: str) -> sa.Engine:
    """Connect to the database of a URL, sqlite:///FILE or postgresql://USER@HOST/NAME."""
    engine = _engine_of(url)
    try:
        with answers_within(_PATIENCE_SECONDS), engine.connect():  # it may be starting, too
            pass
    except SQLAlchemyError as problem:
        engine.dispose()
        original = str(getattr(problem, "orig", None) or problem).strip().splitlines()[0]
        raise BadInput(
            f"the visit store {engine.url.render_as_string(hide_password=True)} cannot be opened "
            f"({original}); give another --store"
        ) from problem
    return engine


def _engine_of(url: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
    except ArgumentError as problem:
        raise BadInput(
            "the visit store is not a URL; write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from problem
    if parsed.drivername == "sqlite" and parsed.database:
        return _sqlite(parsed, Path(parsed.database))
    if parsed.drivername in ("postgresql", "postgres"):
        return _postgresql(parsed.set(drivername="postgresql+psycopg"))
    raise BadInput(
        f"the visit store cannot use this URL of '{parsed.drivername}'; write sqlite:///FILE or "
        "postgresql://USER@HOST/NAME"
    )


def _sqlite(url: sa.URL, file: Path) -> sa.Engine:
    try:
        # visits are personal: only the user of the service may read the file
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as problem:
        raise BadInput(
            f"the visit store {file} cannot be written: {problem.strerror}; give another --store"
        ) from problem
    engine = sa.create_engine(
        url, hide_parameters=True, connect_args={"timeout": _PATIENCE_SECONDS}
    )

    @sa.event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _: object) -> None:
        for pragma in _SQLITE_PRAGMAS:
            connection.execute(pragma)

    return engine


def _postgresql(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(
        url,
        hide_parameters=True,  # errors are logged; user ids and places must not be
        pool_pre_ping=True,
        pool_size=16,
        pool_timeout=ANSWER_SECONDS,
        connect_args={
            "connect_timeout": _PATIENCE_SECONDS,
            "tcp_user_timeout": 1000 * _PATIENCE_SECONDS,
            "keepalives_idle": _PATIENCE_SECONDS,
        },
    )
    _limit_waits(engine)

    @sa.event.listens_for(engine, "connect")
    def set_statement_timeout(connection: Any, _: object) -> None:
        connection.execute(f"SET statement_timeout = '{REWRITING_SECONDS:.0f}s'")
        connection.commit()

    return engine


def _limit_waits(engine: sa.Engine) -> None:
    """Limit the waits of every connection of a PostgreSQL engine.

    After a server did not answer, connecting fails at once for a while, so that requests do not
    all wait for it. A statement without an answer does not count, since it may wait for a lock.
    """
    silent_until = 0.0

    @sa.event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, args: Any, options: Any) -> LimitedConnection:
        nonlocal silent_until
        if monotonic() < silent_until:
            raise psycopg.OperationalError("PostgreSQL did not answer a moment ago")
        try:
            return LimitedConnection.connect(*args, **options)
        except NoAnswer:
            silent_until = monotonic() + _REST_SECONDS
            raise

    @sa.event.listens_for(engine, "handle_error")
    def note_silence(context: sa.ExceptionContext) -> None:
        nonlocal silent_until
        if not isinstance(context.original_exception, NoAnswer):
            return
        if context.is_pre_ping:
            silent_until = monotonic() + _REST_SECONDS
        else:
            context.invalidate_pool_on_disconnect = False


class NoAnswer(psycopg.OperationalError):
    """PostgreSQL did not answer in time."""


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """Set the time limit of every statement of the block (PostgreSQL only)."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed if the server does not answer in time."""

    def wait(self, gen: Generator[Any, Any, _Value], *args: Any, **options: Any) -> _Value:
        """Run one exchange with the server within the time limit of the block."""
        try:
            return super().wait(_limited(gen, _limit.get()), *args, **options)
        except NoAnswer:
            self.pgconn.finish()  # a late answer must not be read as that of the next statement
            raise

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> Generator[Any, Any, Self]:
        # psycopg's connect_timeout cannot be below 2 s
        return _limited(super()._connect_gen(conninfo), _limit.get())


def _limited(exchange: Generator[Any, Any, _Value], seconds: float) -> Generator[Any, Any, _Value]:
    """The same exchange; psycopg resumes it ten times a second while there is no answer."""
    end = monotonic() + seconds
    try:
        waits_for = next(exchange)
        while True:
            is_ready = yield waits_for
            if not is_ready and monotonic() > end:
                raise NoAnswer(f"PostgreSQL did not answer within {seconds:g} s")
            waits_for = exchange.send(is_ready)
    except StopIteration as done:
        value: _Value = done.value
        return value
