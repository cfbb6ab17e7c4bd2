"""Opening the database of visits: SQLite that keeps its word, or PostgreSQL."""

import os
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from castpoi.core.errors import BadInput
from castpoi.serving.store_limits import (
    ANSWER_SECONDS,
    REWRITING_SECONDS,
    answers_within,
    limit_waits,
)

_PATIENCE_SECONDS: Final = 10

_SQLITE_PROMISES: Final = (
    "PRAGMA journal_mode=WAL",  # readers never wait for the writer
    "PRAGMA synchronous=FULL",  # a commit is on the disk before it is acknowledged
    "PRAGMA secure_delete=ON",  # what is deleted is overwritten with zeros
    "PRAGMA foreign_keys=ON",
)


def open_engine(url: str) -> sa.Engine:
    """Connect to the database of a URL, sqlite:///FILE or postgresql://USER@HOST/NAME."""
    engine = _engine_of(url)
    try:
        with answers_within(_PATIENCE_SECONDS), engine.connect():  # it may be starting, too
            pass
    except SQLAlchemyError as problem:
        engine.dispose()
        raise BadInput(
            f"the visit store {engine.url.render_as_string(hide_password=True)} cannot be opened "
            f"({_reason(problem)}); give another --store"
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
        f"the visit store is of the kind '{parsed.drivername}'; write sqlite:///FILE or "
        "postgresql://USER@HOST/NAME"
    )


def _postgresql(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(
        url,
        hide_parameters=True,  # errors are logged; who was where is not
        pool_pre_ping=True,
        pool_size=16,
        pool_timeout=ANSWER_SECONDS,
        connect_args={
            "connect_timeout": _PATIENCE_SECONDS,
            "tcp_user_timeout": 1000 * _PATIENCE_SECONDS,
            "keepalives_idle": _PATIENCE_SECONDS,
        },
    )
    limit_waits(engine)

    @sa.event.listens_for(engine, "connect")
    def end_what_nobody_waits_for(connection: Any, _: object) -> None:
        connection.execute(f"SET statement_timeout = '{REWRITING_SECONDS:.0f}s'")
        connection.commit()

    return engine


def _sqlite(url: sa.URL, file: Path) -> sa.Engine:
    try:
        # Who was where is for the eyes of the service's own user.
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as problem:
        raise BadInput(
            f"the visit store {file} cannot be written: {problem.strerror}; give another --store"
        ) from problem
    engine = sa.create_engine(
        url, hide_parameters=True, connect_args={"timeout": _PATIENCE_SECONDS}
    )

    @sa.event.listens_for(engine, "connect")
    def promise(connection: Any, _: object) -> None:
        for pragma in _SQLITE_PROMISES:
            connection.execute(pragma)

    return engine


def _reason(problem: SQLAlchemyError) -> str:
    """What the database says, on one line."""
    original = getattr(problem, "orig", None)
    return str(original or problem).strip().splitlines()[0]
