"""What a row of logits says of its tokens: the softmax's normaliser, and the most likely tokens.

**Order.** The exponentials are summed in stretches of 256 tokens: 16 lanes over ascending tokens, then the lanes by
their fixed tree; the stretches' sums by ascending tokens in float64. Equal logits rank by ascending token.
"""

from __future__ import annotations

import numpy as np

from modelc.kernels.elementary import exp
from modelc.kernels.env import (
    RANKED_HIGHEST,
    RANKED_LOGITS,
    RANKED_N,
    RANKED_SUM,
    RANKED_TAIL,
    RANKED_TOKENS,
    RANKED_TOP,
)
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr, f64_ptr, i64_ptr
from modelc.kernels.simd import load_f32, max_lanes, maximum, splat_f32, splat_zero, sum_lanes

f32 = np.float32

STRETCH = 256


@kernel
def insert(logits, tokens, count, top, token):
    """Put `token` behind those of the `count` ranked tokens that are as likely; returns how many there are now."""
    if count < top:
        count += 1
    elif not logits[token] > logits[tokens[top - 1]]:
        return count
    at = count - 1
    while at > 0 and logits[token] > logits[tokens[at - 1]]:
        tokens[at] = tokens[at - 1]
        at -= 1
    tokens[at] = token
    return count


@kernel
def rank(logits, n, tokens, top):
    """Write the `top` (at most n) most likely of n tokens, the best first; lanes without one are passed over."""
    count = np.int64(0)
    for token in range(top):
        count = insert(logits, tokens, count, top, token)
    start = top
    while start < n:
        if start + 16 <= n and not max_lanes(load_f32(logits, start)) > logits[tokens[top - 1]]:
            start += 16
            continue
        for token in range(start, min(start + 16, n)):
            count = insert(logits, tokens, count, top, token)
        start += 16


@kernel
def log_softmax(parameters):
    """Write highest logit, sum of e^(logit - highest) and the most likely tokens, as the parameter block says.

    The sum is larger than the number of tokens where a logit is no finite number.
    """
    P = i64_ptr(parameters)
    D = f64_ptr(parameters)
    logits = f32_ptr(P[RANKED_LOGITS])
    tail = f32_ptr(P[RANKED_TAIL])
    n = P[RANKED_N]
    whole = n // 16 * 16
    for i in range(16):
        tail[i] = logits[whole + i] if whole + i < n else f32(-np.inf)
    largest = load_f32(tail, 0)
    for i in range(0, whole, 16):
        largest = maximum(largest, load_f32(logits, i))
    highest = max_lanes(largest)
    total = 0.0
    for start in range(0, whole, STRETCH):
        lanes = splat_zero()
        for i in range(start, min(start + STRETCH, whole), 16):
            lanes = lanes + exp(load_f32(logits, i) - splat_f32(highest))
        total += np.float64(sum_lanes(lanes))
    total += np.float64(sum_lanes(exp(load_f32(tail, 0) - splat_f32(highest))))
    D[RANKED_HIGHEST] = np.float64(highest)
    D[RANKED_SUM] = total
    if P[RANKED_TOP] > 0:
        rank(logits, n, i64_ptr(P[RANKED_TOKENS]), min(P[RANKED_TOP], n))
