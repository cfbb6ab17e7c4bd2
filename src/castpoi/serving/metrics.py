"""What the service counts of itself, for Prometheus; by route, never by person or place."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Counters and clocks of one service."""

    def __init__(self, waiting: Callable[[], float]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "castpoi_requests",
            "Answered requests by route template.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "castpoi_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.model_seconds = Histogram(
            "castpoi_model_seconds",
            "Time the model needed for one batch.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch_size = Histogram(
            "castpoi_batch_size",
            "Requests answered in one go.",
            buckets=_SIZES,
            registry=self.registry,
        )
        self.visits = Counter(
            "castpoi_visits_stored", "Visits taken into the store.", registry=self.registry
        )
        self.reloads = Counter(
            "castpoi_model_loads", "Runs loaded, or not.", ["outcome"], registry=self.registry
        )
        queue = Gauge(
            "castpoi_requests_waiting", "Requests waiting for the model.", registry=self.registry
        )
        queue.set_function(waiting)

    def page(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self.registry)
