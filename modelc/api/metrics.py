"""Figures for Prometheus, in a registry of their own so that two servers in one process do not mix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client.metrics import Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from modelc.runtime.scheduler import Counters

DURATION_BUCKETS_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
QUEUE_BUCKETS_S = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# What the scheduler counts: name, help, field of its counters. Totals grow, levels go up and down.
TOTALS = (
    ("modelc_steps", "Passes through the model", "steps"),
    ("modelc_batch_rows", "Rows (tokens) in all passes; by passes: the mean batch", "rows"),
    ("modelc_prompt_tokens", "Tokens of the prompts that were started", "prompt_tokens"),
    ("modelc_cached_tokens", "Those whose keys and values were there already", "cached_tokens"),
    ("modelc_prefix_hits", "Prompts that had such tokens", "prefix_hits"),
    ("modelc_speculation_proposed_tokens", "Tokens that speculation proposed", "proposed"),
    ("modelc_speculation_accepted_tokens", "Those that were right", "accepted"),
)
LEVELS = (
    ("modelc_queued_generations", "Generations that wait for a place in the batch", "waiting"),
    ("modelc_running_generations", "Generations in the batch", "active"),
    ("modelc_kv_pages", "Pages for keys and values", "pages"),
    ("modelc_kv_free_pages", "Pages that nothing uses; those of kept prefixes are freed on demand", "free_pages"),
    ("modelc_kept_prefixes", "Ended sequences kept for prompts that begin like them", "kept_prefixes"),
)


class Metrics:
    """The server's counters; `render` gives them in Prometheus's text format.

    Args:
        counters: Returns the scheduler's counters, None while there is no model.
    """

    def __init__(self, counters: Callable[[], Counters | None]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("modelc_requests", "Requests answered", ("endpoint", "status"), registry=self.registry)
        self.durations = Histogram(
            "modelc_inference_duration_seconds",
            "Time from a generation's submission to its last token",
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self.queue_times = Histogram(
            "modelc_queue_seconds",
            "Time from a generation's submission to its place in the batch",
            buckets=QUEUE_BUCKETS_S,
            registry=self.registry,
        )
        self.active = Gauge("modelc_active_requests", "Requests being answered", registry=self.registry)
        self.tokens = Counter("modelc_tokens_generated", "Tokens generated", registry=self.registry)
        self.registry.register(SchedulerFigures(counters))

    def render(self) -> bytes:
        """Return every figure as text."""
        from prometheus_client.exposition import generate_latest  # late: it imports an HTTP server

        return generate_latest(self.registry)


class SchedulerFigures(Collector):
    """Reads the scheduler's counters when Prometheus asks."""

    def __init__(self, counters: Callable[[], Counters | None]) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        """Yield every figure; none while there is no model."""
        counters = self._counters()
        if counters is None:
            return
        for name, help_, field in TOTALS:
            yield CounterMetricFamily(name, help_, value=getattr(counters, field))
        for name, help_, field in LEVELS:
            yield GaugeMetricFamily(name, help_, value=getattr(counters, field))
