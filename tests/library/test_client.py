"""`castpoi.Client` against a real service, and against one that is busy or away."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

import castpoi
from castpoi.core.errors import ServiceFailed
from castpoi.recommend.recommender import Recommender
from castpoi.serving.settings import ServiceSettings
from tests.serving.live import Live, living, service_of

KEY = "a key for the client's tests"
API = Path(__file__).parents[2] / "docs" / "api.md"


@pytest.fixture(scope="module")
def live(recommender: Recommender, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    settings = ServiceSettings(port=0, api_keys=(KEY,))
    with living(service_of(recommender, tmp_path_factory.mktemp("store"), settings)) as service:
        yield service


def test_the_client_returns_the_recommendations_of_the_model(
    live: Live, recommender: Recommender
) -> None:
    client = castpoi.Client(live.address, KEY)
    history = [("cafe", "2012-04-02T08:00:00-04:00"), ("office", "2012-04-02T09:00:00-04:00")]
    answer = client.recommend(history=history, k=3, near=(40.7, -74.0), explain=True)
    wanted = recommender.recommend(history, k=3, near=(40.7, -74.0), explain=True)
    assert answer == wanted
    for place, at in history:
        client.add_visit("ann/1", place, at)
    assert [each["place"] for each in client.visits("ann/1")] == ["cafe", "office"]
    known, unknown = client.recommend_batch(["ann/1", "nobody"], k=2)
    assert (known.user_known, unknown.user_known) == (True, False)
    assert {each["place"] for each in client.places(limit=2)} == set(recommender.places.ids)
    assert client.model()["model"] == recommender.model
    assert client.erase("ann/1") == 2


def test_an_error_of_the_service_is_a_sentence(live: Live) -> None:
    with pytest.raises(ServiceFailed, match="k: Input should be less"):
        castpoi.Client(live.address, KEY).recommend("ann", k=1000)
    with pytest.raises(ServiceFailed, match="this API key is not known"):
        castpoi.Client(live.address, "a wrong key").model()


def test_the_client_tries_again_while_the_service_is_busy() -> None:
    class Busy(BaseHTTPRequestHandler):
        left = 2

        def do_GET(self) -> None:
            busy = Busy.left > 0
            Busy.left -= 1
            self.send_response(503 if busy else 200)
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(b'{"error": "busy"}' if busy else b'{"model": "x"}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert castpoi.Client(url).model() == {"model": "x"}
        Busy.left = 2
        with pytest.raises(ServiceFailed, match="busy"):
            castpoi.Client(url, retries=1).model()
        server.shutdown()
    with pytest.raises(ServiceFailed, match="does not answer"):
        castpoi.Client(url, retries=0).model()


def test_the_example_of_the_api_page_runs(live: Live) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", API.read_text("utf-8"), re.S)
    here = code.replace("http://127.0.0.1:8080", live.address).replace('"KEY"', repr(KEY))
    exec(compile(here, "api.md", "exec"), {})  # our own page
