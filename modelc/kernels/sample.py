"""Choosing the next token from logits: penalties, bias, temperature, truncation, the draw.

**Order.** Sums of probabilities run over ascending tokens in 16 lanes (total) or over candidates by descending
probability, ties by ascending token. The draw is a function of (seed, position) alone.
"""

from __future__ import annotations

import numpy as np

from modelc.kernels.elementary import exp
from modelc.kernels.env import (
    ANSWER,
    BIAS_TOKENS,
    BIAS_VALUES,
    CANDIDATES,
    COUNTS,
    FREQUENCY,
    LOGITS,
    MASK,
    MIN_P,
    N_ANSWER,
    N_BIAS,
    N_SEEN,
    N_VOCAB,
    POSITION,
    PRESENCE,
    REPETITION,
    SEED,
    SEEN,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    WORK,
)
from modelc.kernels.heap import make_heap, take_first
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr, f64_ptr, i32_ptr, i64_ptr
from modelc.kernels.simd import load_f32, max_lanes, maximum, splat_f32, splat_zero, store_f32, sum_lanes
from modelc.kernels.token_mask import apply_mask

f32 = np.float32
u64 = np.uint64

STRETCH = 64


@kernel
def uniform(seed, position):
    """A float64 in [0, 1), a hash of (seed, position). Source: the finalizer of SplitMix64, twice."""
    x = u64(seed) ^ (u64(position) * u64(0x9E3779B97F4A7C15) + u64(0xD1B54A32D192ED03))
    for _ in range(2):
        x = (x ^ (x >> u64(30))) * u64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> u64(27))) * u64(0x94D049BB133111EB)
        x = x ^ (x >> u64(31))
    return np.float64(x >> u64(11)) * 2.0**-53


@kernel
def penalize(P, D, w):
    """Apply penalties and bias to the copied logits `w`."""
    seen = i64_ptr(P[SEEN])
    repetition = f32(D[REPETITION])
    for i in range(P[N_SEEN]):
        value = w[seen[i]]
        w[seen[i]] = value / repetition if value > f32(0.0) else value * repetition
    answer = i64_ptr(P[ANSWER])
    counts = i64_ptr(P[COUNTS])
    for i in range(P[N_ANSWER]):
        w[answer[i]] = w[answer[i]] - f32(D[PRESENCE]) - f32(D[FREQUENCY]) * f32(counts[i])
    tokens = i64_ptr(P[BIAS_TOKENS])
    values = f64_ptr(P[BIAS_VALUES])
    for i in range(P[N_BIAS]):
        w[tokens[i]] = w[tokens[i]] + f32(values[i])


@kernel
def collect(w, n, threshold, candidates):
    """Tokens whose probability is at least `threshold` of the most likely one's; returns their count and sum.

    Stretches of 64 tokens without any are passed over at once; `w` is padded with smaller values to a whole stretch.
    """
    count = 0
    total = 0.0
    for start in range(0, n, STRETCH):
        largest = maximum(load_f32(w, start), load_f32(w, start + 16))
        largest = maximum(largest, maximum(load_f32(w, start + 32), load_f32(w, start + 48)))
        if max_lanes(largest) >= threshold:
            for i in range(start, min(start + STRETCH, n)):
                if w[i] >= threshold:
                    candidates[count] = i
                    count += 1
                    total += np.float64(w[i])
    return count, total


@kernel
def first_of(w, highest):
    """The first token with the value `highest`, which there is."""
    start = 0
    while True:
        largest = maximum(load_f32(w, start), load_f32(w, start + 16))
        largest = maximum(largest, maximum(load_f32(w, start + 32), load_f32(w, start + 48)))
        if max_lanes(largest) == highest:
            break
        start += STRETCH
    while w[start] != highest:
        start += 1
    return np.int64(start)


@kernel
def prepare(P, D, w):
    """Copy the logits to `w`, penalize and mask them, pad them with -inf to a multiple of 64; returns the largest."""
    logits = f32_ptr(P[LOGITS])
    n = P[N_VOCAB]
    padded = (n + STRETCH - 1) // STRETCH * STRETCH
    for i in range(0, n // 16 * 16, 16):
        store_f32(w, i, load_f32(logits, i))
    for i in range(n // 16 * 16, n):
        w[i] = logits[i]
    penalize(P, D, w)
    if P[MASK] != 0:
        apply_mask(P[MASK], w, n)
    for i in range(n, padded):
        w[i] = f32(-np.inf)
    largest = load_f32(w, 0)
    for i in range(16, padded, 16):
        largest = maximum(largest, load_f32(w, i))
    return max_lanes(largest)


@kernel
def sample(parameters):
    """The next token, as the parameter block says; ties go to the smaller token; -1 when the largest is not finite."""
    P = i64_ptr(parameters)
    D = f64_ptr(parameters)
    w = f32_ptr(P[WORK])
    n = P[N_VOCAB]
    padded = (n + STRETCH - 1) // STRETCH * STRETCH
    highest = prepare(P, D, w)
    if not (highest > f32(-np.inf) and highest < f32(np.inf)):
        return np.int64(-1)
    if D[TEMPERATURE] <= 0.0:
        return first_of(w, highest)
    draw = uniform(P[SEED], P[POSITION])
    inverse = splat_f32(f32(1.0 / D[TEMPERATURE]))
    lanes = splat_zero()
    for i in range(0, padded, 16):
        e = exp((load_f32(w, i) - splat_f32(highest)) * inverse)
        store_f32(w, i, e)
        lanes = lanes + e
    total = np.float64(sum_lanes(lanes))
    candidates = i32_ptr(P[CANDIDATES])
    min_p = f32(D[MIN_P])
    top_k = P[TOP_K] if P[TOP_K] < n else 0
    top_p = D[TOP_P] if D[TOP_P] < 1.0 else 0.0
    if top_k <= 0 and top_p <= 0.0:
        count, kept = collect(w, n, max(min_p, f32(1e-38)), candidates)
        return pick(w, candidates, count, draw * kept)
    threshold = f32(0.02)
    count, kept = collect(w, n, threshold, candidates)
    while threshold > f32(0.0) and (count < top_k if top_k > 0 else kept <= top_p * total):
        threshold = threshold * f32(0.01) if threshold > f32(1e-20) else f32(0.0)
        count, kept = collect(w, n, threshold, candidates)
    make_heap(w, candidates, count)
    taken = 0  # so many of the first in order are at the end of candidates, the first one last
    if top_k > 0:
        total = 0.0
        while taken < min(count, top_k):
            total += np.float64(w[candidates[0]])
            take_first(w, candidates, count - taken)
            taken += 1
    last = 0
    kept = 0.0
    while last < (taken if top_k > 0 else count):
        if last == taken:
            take_first(w, candidates, count - taken)
            taken += 1
        p = w[candidates[count - 1 - last]]
        if last > 0 and (p < min_p or (top_p > 0.0 and kept > top_p * total)):
            break
        kept += np.float64(p)
        last += 1
    target = draw * kept
    running = 0.0
    for i in range(last):
        running += np.float64(w[candidates[count - 1 - i]])
        if running > target:
            return np.int64(candidates[count - 1 - i])
    return np.int64(candidates[count - last])


@kernel
def pick(w, candidates, count, target):
    """The first candidate at which the running sum exceeds `target`."""
    running = 0.0
    for i in range(count):
        running += np.float64(w[candidates[i]])
        if running > target:
            return np.int64(candidates[i])
    return np.int64(candidates[count - 1])
