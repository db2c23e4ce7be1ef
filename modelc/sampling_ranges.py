"""What values the numbers of a sampling request may have: one table for the library, the API and the command line."""

from __future__ import annotations

from typing import NamedTuple


class Range(NamedTuple):
    """The values allowed, both ends among them."""

    low: float
    high: float
    is_integer: bool = False


MAX_COUNT = (1 << 31) - 1
MAX_SEED = (1 << 63) - 1
MAX_TOP_LOGPROBS = 20
MAX_BIAS = 1e6  # enough to force or ban a token; float32 still tells two such tokens apart
MAX_STOPS = 256
MAX_STOP_CHARS = 4096  # they are compared with the end of the text at every token
MAX_BREAKERS = 64
MAX_BREAKER_CHARS = 256

RANGES: dict[str, Range] = {
    "max_tokens": Range(0, MAX_COUNT, is_integer=True),
    "temperature": Range(0.0, 100.0),
    "top_k": Range(0, MAX_COUNT, is_integer=True),
    "top_p": Range(0.0, 1.0),
    "min_p": Range(0.0, 1.0),
    "typical_p": Range(0.0, 1.0),
    "top_n_sigma": Range(-1.0, 100.0),
    "xtc_probability": Range(0.0, 1.0),
    "xtc_threshold": Range(0.0, 1.0),
    "mirostat": Range(0, 2, is_integer=True),
    "mirostat_tau": Range(0.0, 100.0),
    "mirostat_eta": Range(0.0, 10.0),
    "repetition_penalty": Range(0.01, 100.0),
    "presence_penalty": Range(-2.0, 2.0),
    "frequency_penalty": Range(-2.0, 2.0),
    "dry_multiplier": Range(0.0, 100.0),
    "dry_base": Range(1.0, 100.0),
    "dry_allowed_length": Range(0, MAX_COUNT, is_integer=True),
    "dry_penalty_last_n": Range(-1, MAX_COUNT, is_integer=True),
    "top_logprobs": Range(0, MAX_TOP_LOGPROBS, is_integer=True),
}
