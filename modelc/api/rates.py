"""How often a client may ask: a token bucket for each."""

from __future__ import annotations

WINDOW_S = 60.0
MAX_CLIENTS = 1 << 16  # remembered; then those that were quiet longest are forgotten


class RateLimiter:
    """Buckets that hold `per_minute` tokens (one or more) and fill in a minute; a request takes one.

    Args:
        per_minute: Requests.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, and when they were counted; the latest last

    def wait_s(self, client: str, now_s: float) -> float:
        """Admit a request and return 0, or return the seconds until the next one is admitted."""
        tokens, then_s = self._buckets.pop(client, (float(self.per_minute), now_s))
        per_s = self.per_minute / WINDOW_S
        tokens = min(tokens + (now_s - then_s) * per_s, float(self.per_minute))
        admitted = tokens >= 1.0
        self._buckets[client] = (tokens - admitted, now_s)
        if len(self._buckets) > MAX_CLIENTS:
            del self._buckets[next(iter(self._buckets))]
        return 0.0 if admitted else (1.0 - tokens) / per_s
