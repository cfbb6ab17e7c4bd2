"""Fixtures of the serving tests: one thread, visit stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from castpoi.recommend.recommender import Recommender
from castpoi.serving.store import VisitStore
from tests.one_thread import one_thread  # noqa: F401  a fixture for all of them
from tests.serving.live import Live, living, service_of
from tests.serving.postgres import postgres_server
from tests.serving.stores import Opening


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def empty_postgres(postgres: str) -> Iterator[str]:
    """The same; its tables are dropped after the test."""
    yield postgres
    engine = sa.create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS about, visits, users"))
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/visits.sqlite"
    url: str = request.getfixturevalue("empty_postgres")
    return url


@pytest.fixture
def opening(database: str) -> Iterator[Opening]:
    """Opens the same store again and again; it is empty at first."""
    opened: list[VisitStore] = []

    def open_store() -> VisitStore:
        opened.append(VisitStore(database))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(opening: Opening) -> VisitStore:
    return opening()


@pytest.fixture(scope="module")
def live(recommender: Recommender, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service on this machine, without keys; tests use users of their own."""
    with living(service_of(recommender, tmp_path_factory.mktemp("store"))) as service:
        yield service
