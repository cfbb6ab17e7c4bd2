"""What the tests of serving share: one thread, runs to answer, and stores to remember."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from castpoi.recommend.recommender import Recommender, load
from castpoi.serving.store import VisitStore
from tests.one_thread import one_thread  # noqa: F401  a fixture for all of them
from tests.serving.postgres import postgres_server
from tests.serving.small_run import OUR_PARTS, small_run
from tests.serving.stores import Opening


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CaST-POI run of the small city, the city beside it; not to be changed."""
    return small_run(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def near_sighted(tmp_path_factory: pytest.TempPathFactory) -> Recommender:
    """The same of a model with parts of our own, among them a distance gate."""
    return load(small_run(tmp_path_factory.mktemp("next"), **OUR_PARTS))


@pytest.fixture(scope="session")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Recommender:
    """The same without a reader, as castpoi-next is."""
    parts = OUR_PARTS | {"candidate_conditioning": False}
    return load(small_run(tmp_path_factory.mktemp("unread"), **parts))


@pytest.fixture(scope="session")
def recommender(run_folder: Path) -> Recommender:
    return load(run_folder)


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
