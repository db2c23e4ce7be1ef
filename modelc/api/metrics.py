"""Figures for Prometheus, in a registry of their own so that two servers in one process do not mix."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

DURATION_BUCKETS_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """The server's counters; `render` gives them in Prometheus's text format."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("modelc_requests", "Requests answered", ("endpoint", "status"), registry=self.registry)
        self.durations = Histogram(
            "modelc_inference_duration_seconds",
            "Time from a generation's submission to its last token",
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self.active = Gauge("modelc_active_requests", "Requests being answered", registry=self.registry)
        self.tokens = Counter("modelc_tokens_generated", "Tokens generated", registry=self.registry)

    def render(self) -> bytes:
        """Return every figure as text."""
        return generate_latest(self.registry)
