"""How far an engine's probabilities are from those of a float64 forward over the same weights.

The reference is a list of cases: `ids`, and for the position after each of them `top_ids`, the 20 likeliest tokens,
with `top_logprobs`, their natural logarithms of probability.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

REFERENCES = Path(__file__).parent.parent / "tests" / "data" / "logprobs"

Case = dict[str, Any]
# (ids, tokens wanted at each position) -> their log-probabilities
LogProbs = Callable[[Sequence[int], Sequence[Sequence[int]]], npt.ArrayLike]


def reference_cases(name: str = "smollm2-q4_1") -> list[Case]:
    """Return the cases for a model: SmolLM2-135M-Instruct in Q4_1, or `gemma3-q4_k_m`, Gemma-3-270M in Q4_K_M."""
    cases: list[Case] = json.loads((REFERENCES / f"{name}.json").read_text("utf-8"))
    return cases


def log_probs_at(logits: npt.NDArray[np.float32], wanted: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
    """Log-probabilities of some tokens of each row.

    Args:
        logits: float32 (n, vocab_size).
        wanted: token ids (n, k).

    Returns:
        float64 (n, k), natural logarithms.
    """
    rows = logits.astype(np.float64)
    highest = rows.max(axis=1, keepdims=True)
    totals = highest + np.log(np.exp(rows - highest).sum(axis=1, keepdims=True))
    return np.asarray(np.take_along_axis(rows, np.asarray(wanted), axis=1) - totals)


def divergences(expected: npt.ArrayLike, got: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Kullback-Leibler divergence of each row, over the tokens given and all others taken as one.

    Args:
        expected: log-probabilities (n, k) of the reference.
        got: of the same tokens, from the engine.

    Returns:
        float64 (n,), in nats.
    """
    p_log, q_log = np.asarray(expected, np.float64), np.asarray(got, np.float64)
    p = np.exp(p_log)
    p_rest, q_rest = (np.maximum(1 - x.sum(axis=1), 1e-12) for x in (p, np.exp(q_log)))
    return np.asarray((p * (p_log - q_log)).sum(axis=1) + p_rest * np.log(p_rest / q_rest))


def mean_divergence(cases: Sequence[Case], log_probs: LogProbs) -> float:
    """Mean divergence over all positions of all cases, in nats."""
    each = [divergences(case["top_logprobs"], log_probs(case["ids"], case["top_ids"])) for case in cases]
    return float(np.mean(np.concatenate(each)))
