"""Which tokens would go on with a repetition, and how long it is already: what DRY penalizes.

**Source.** The Z algorithm on the reversed sequence, as in llama.cpp's `dry` sampler.
"""

from __future__ import annotations

from modelc.kernels.env import (
    REPEATS_ALLOWED,
    REPEATS_FOUND,
    REPEATS_LENGTHS,
    REPEATS_LIMIT,
    REPEATS_N,
    REPEATS_TOKENS,
)
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import i64_ptr


@kernel
def repeats(parameters):
    """tokens int64 (n,), the newest last -> lengths int64 (n,), found int64 (n,).

    lengths[k] becomes the number of tokens, at most REPEATS_LIMIT, that end the sequence and also stand before its
    k-th newest token; `found` holds the k of those that are REPEATS_ALLOWED at least. Returns how many there are.
    """
    P = i64_ptr(parameters)
    tokens = i64_ptr(P[REPEATS_TOKENS])
    lengths = i64_ptr(P[REPEATS_LENGTHS])
    found = i64_ptr(P[REPEATS_FOUND])
    n = P[REPEATS_N]
    limit = P[REPEATS_LIMIT]
    count = 0
    left, right = 0, 0  # of the match that reaches farthest back: positions left to right - 1, counted from the newest
    for k in range(1, n):
        length = 0
        if k < right:
            length = min(lengths[k - left], right - k)
        while k + length < n and tokens[n - 1 - k - length] == tokens[n - 1 - length]:
            length += 1
        if k + length > right:
            left, right = k, k + length
        lengths[k] = length
    for k in range(1, n):
        lengths[k] = min(lengths[k], limit)
        if lengths[k] >= P[REPEATS_ALLOWED]:
            found[count] = k
            count += 1
    return count
