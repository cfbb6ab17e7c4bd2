"""Fixtures of the serving tests: one thread, small runs, visit stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from castpoi.serving.store import VisitStore
from tests.one_thread import one_thread  # noqa: F401  a fixture for all of them
from tests.run_fixtures import near_sighted, recommender, run_folder, unread  # noqa: F401
from tests.serving.postgres import postgres_server
from tests.serving.stores import Opening


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kind of database: a URL, or that of SQLite, whose file each test has for itself."""
    if request.param == "sqlite":
        yield "sqlite"
        return
    with postgres_server() as url:
        yield url


@pytest.fixture
def opening(database: str, tmp_path: Path) -> Iterator[Opening]:
    """Opens the same store again and again; it is empty at first."""
    url = f"sqlite:///{tmp_path}/visits.sqlite" if database == "sqlite" else database
    opened: list[VisitStore] = []

    def open_store() -> VisitStore:
        opened.append(VisitStore(url))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()
    if database != "sqlite":
        engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE about, visits, users"))
        engine.dispose()


@pytest.fixture
def store(opening: Opening) -> VisitStore:
    return opening()
