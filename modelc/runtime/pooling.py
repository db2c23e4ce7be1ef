"""One vector for each text, from the hidden states of its tokens.

**Order.** Sums run over ascending positions, one text like the other; the length of a vector sums its squares in pairs
(`ops`), so a text has the same bits alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.models.pooling import Pooling
from modelc.runtime.loaded import F32
from modelc.runtime.ops import sum_in_pairs

Integers: TypeAlias = npt.NDArray[np.int64]
LEAST_LENGTH = np.float32(1e-12)  # of a vector that is divided by its length


def pool(states: F32, lengths: Sequence[int], pooling: Pooling) -> F32:
    """Embeddings, float32 (texts, dim).

    Args:
        states: float32 (tokens, dim), text after text.
        lengths: tokens of each text.
        pooling: how.
    """
    counts = np.array(lengths)
    ends = np.cumsum(counts)
    starts = ends - counts
    match pooling.mode:
        case "cls":
            vectors = states[starts]
        case "last":
            vectors = states[ends - 1]
        case "max":
            vectors = np.maximum.reduceat(states, starts, axis=0)
        case _:
            sums = _sums(states, starts, counts)
            by_root = pooling.mode == "mean_sqrt"
            divisors = np.sqrt(counts) if by_root else counts
            vectors = sums / divisors.astype(np.float32)[:, None]
    return normalized(vectors) if pooling.normalized else vectors


def normalized(vectors: F32) -> F32:
    """Each row divided by its Euclidean length; zeros stay zeros."""
    lengths = np.sqrt(sum_in_pairs(vectors * vectors))
    scaled: F32 = vectors / np.maximum(lengths, LEAST_LENGTH)[:, None]
    return scaled


def _sums(states: F32, starts: Integers, counts: Integers) -> F32:
    sums = states[starts]
    for i in range(1, int(counts.max())):
        longer = counts > i
        sums[longer] += states[starts[longer] + i]
    return sums
