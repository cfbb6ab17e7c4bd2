"""Time limits on waiting for PostgreSQL, kept on our side of the socket.

A server whose processes are stopped still has a kernel that accepts connections and acknowledges
what it is sent. Neither the server's own statement_timeout nor TCP's limits end such a wait, so a
connection here stops waiting by itself: after `ANSWER_SECONDS`, unless `answers_within` allows a
statement more.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, Final, Self, TypeVar

import psycopg
import sqlalchemy as sa

ANSWER_SECONDS: Final = 1.5
"""How long PostgreSQL may take to accept a connection or to answer one statement."""
LISTING_SECONDS: Final = 10.0
"""The same for a statement that looks at all users."""
REWRITING_SECONDS: Final = 600.0
"""The same for one that changes or counts very many rows, or waits for another that does."""
_REST_SECONDS: Final = 1.0
"""How long nobody connects to a server that was silent, so that requests do not all wait for it."""

_Value = TypeVar("_Value")

_limit: ContextVar[float] = ContextVar("answer_seconds", default=ANSWER_SECONDS)


class NoAnswer(psycopg.OperationalError):
    """PostgreSQL did not answer in time."""


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """Let every statement of the block take this long (PostgreSQL only)."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed if the server does not answer in time."""

    def wait(self, gen: Generator[Any, Any, _Value], *args: Any, **options: Any) -> _Value:
        """Run one exchange with the server within the limit of the block around it."""
        try:
            return super().wait(_limited(gen, _limit.get()), *args, **options)
        except NoAnswer:
            self.pgconn.finish()  # an answer that comes too late must not be read as the next one's
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


def limit_waits(engine: sa.Engine) -> None:
    """Make every connection of a PostgreSQL engine a limited one.

    While a server was just silent nobody waits for it: connecting fails at once. One statement
    without an answer does not count as such silence, since it may wait for a lock.
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
    def note(context: sa.ExceptionContext) -> None:
        nonlocal silent_until
        if not isinstance(context.original_exception, NoAnswer):
            return
        if context.is_pre_ping:
            silent_until = monotonic() + _REST_SECONDS
        else:
            context.invalidate_pool_on_disconnect = False
