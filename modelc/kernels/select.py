"""Sampling beyond temperature, top_k, top_p and min_p: top_n_sigma, typical_p, xtc, mirostat.

**Order.** top_n_sigma, top_k, typical_p, top_p, min_p, xtc, the draw; mirostat in place of all of these. Sums run over
candidates by descending probability, ties by ascending token; where nothing asks for that order, by ascending token.
**Source.** The formulas are those of llama.cpp's samplers, in float64 where they sum.
"""

from __future__ import annotations

import numpy as np

from modelc.kernels.elementary import exp
from modelc.kernels.env import (
    CANDIDATES,
    MIN_P,
    MIROSTAT,
    MIROSTAT_ETA,
    MIROSTAT_MU,
    MIROSTAT_TAU,
    N_VOCAB,
    POSITION,
    SCORES,
    SEED,
    TEMPERATURE,
    TOP_K,
    TOP_N_SIGMA,
    TOP_P,
    TYPICAL_P,
    WORK,
    XTC_PROBABILITY,
    XTC_THRESHOLD,
)
from modelc.kernels.heap import make_heap, take_first
from modelc.kernels.jit import kernel
from modelc.kernels.logarithm import exp as exp_f64
from modelc.kernels.logarithm import log, power
from modelc.kernels.pointers import f32_ptr, f64_ptr, i32_ptr, i64_ptr, offset
from modelc.kernels.sample import prepare, uniform
from modelc.kernels.simd import load_f32, splat_f32, store_f32, zero_below

f32 = np.float32

SECOND_DRAW = np.int64(0x5851F42D4C957F2D)  # makes another seed, for a second number at a position
LN2 = 0.6931471805599453
ZIPF_TOKENS = 100  # so many of the first tokens tell how the probabilities fall


@kernel
def select(parameters):
    """The next token, as `sample` draws it; the temperature is not 0."""
    P = i64_ptr(parameters)
    D = f64_ptr(parameters)
    w = f32_ptr(P[WORK])
    n = P[N_VOCAB]
    highest = prepare(P, D, w)
    if not (highest > f32(-np.inf) and highest < f32(np.inf)):
        return np.int64(-1)
    draw = uniform(P[SEED], P[POSITION])
    x = f32_ptr(P[SCORES])
    candidates = i32_ptr(P[CANDIDATES])
    weigh(w, x, n, highest, f32(1.0 / D[TEMPERATURE]), lowest_logit(D, w, n, highest))
    count = 0
    for i in range(n):
        if w[i] > f32(0.0):
            candidates[count] = i
            count += 1
    if P[MIROSTAT] != 0:
        return mirostat(P, D, w, candidates, count, draw)
    top_k = P[TOP_K]
    top_p = D[TOP_P] if D[TOP_P] < 1.0 else 0.0
    if 0 < top_k < count:
        candidates = first_of(w, candidates, count, top_k)
        count = top_k
    if 0.0 < D[TYPICAL_P] < 1.0:
        kept = most_typical(w, x, candidates, count, D[TYPICAL_P])
        candidates = offset(candidates, count - kept)
        count = kept
    has_xtc = uniform(P[SEED] ^ SECOND_DRAW, P[POSITION]) < D[XTC_PROBABILITY] and D[XTC_THRESHOLD] <= 0.5
    if not has_xtc and top_k <= 0 and top_p <= 0.0 and D[MIN_P] <= 0.0:
        return draw_from(w, candidates, 0, count, 1, draw)
    last = likeliest(w, candidates, count, top_p, f32(D[MIN_P]))
    first = above_threshold(w, candidates, count, last, D[XTC_THRESHOLD]) if has_xtc else 0
    return draw_from(w, candidates, count - 1 - first, last - first, -1, draw)


@kernel
def lowest_logit(D, w, n, highest):
    """The smallest logit that top_n_sigma leaves: so many standard deviations below the highest."""
    if D[TOP_N_SIGMA] <= 0.0:
        return f32(-np.inf)
    count, total, squares = 0, 0.0, 0.0
    for i in range(n):
        if w[i] > f32(-np.inf):
            count += 1
            total += np.float64(w[i])
    mean = total / count
    for i in range(n):
        if w[i] > f32(-np.inf):
            squares += (np.float64(w[i]) - mean) * (np.float64(w[i]) - mean)
    return f32(np.float64(highest) - D[TOP_N_SIGMA] * np.sqrt(squares / count))


@kernel
def weigh(w, x, n, highest, inverse, lowest):
    """Logits `w` become probabilities over the highest's, 0 below `lowest`; `x` their natural logarithms."""
    for i in range(0, n, 16):
        logits = load_f32(w, i)
        scaled = (logits - splat_f32(highest)) * splat_f32(inverse)
        store_f32(x, i, scaled)
        store_f32(w, i, zero_below(logits, splat_f32(lowest), exp(scaled)))


@kernel
def first_of(w, candidates, count, wanted):
    """The `wanted` most probable candidates, as a pointer to where they now are."""
    make_heap(w, candidates, count)
    for taken in range(wanted):
        take_first(w, candidates, count - taken)
    return offset(candidates, count - wanted)


@kernel
def most_typical(w, x, candidates, count, share):
    """Move the most typical candidates to the end, as many as hold `share` of the probability; returns how many.

    A token is the more typical the nearer its surprise is to the mean, the entropy.
    """
    total, weighted = 0.0, 0.0
    for i in range(count):
        p = np.float64(w[candidates[i]])
        total += p
        weighted += p * np.float64(x[candidates[i]])
    mean = f32(weighted / total)
    for i in range(count):
        distance = x[candidates[i]] - mean
        x[candidates[i]] = -distance if distance > f32(0.0) else distance
    make_heap(x, candidates, count)
    kept, taken = 0.0, 0
    while taken < count and kept <= share * total:
        kept += np.float64(w[candidates[0]])
        take_first(x, candidates, count - taken)
        taken += 1
    return taken


@kernel
def likeliest(w, candidates, count, top_p, min_p):
    """Put those that top_p and min_p leave at the end, the most probable last; returns how many."""
    total = sum_of(w, candidates, 0, count, 1)
    make_heap(w, candidates, count)
    least = w[candidates[0]] * min_p
    kept, taken = 0.0, 0
    while taken < count:
        p = w[candidates[0]]
        if taken > 0 and (p < least or (top_p > 0.0 and kept > top_p * total)):
            break
        kept += np.float64(p)
        take_first(w, candidates, count - taken)
        taken += 1
    return taken


@kernel
def above_threshold(w, candidates, count, last, threshold):
    """How many of the first `last` candidates xtc drops: all that reach `threshold` but the least probable of them."""
    kept = sum_of(w, candidates, count - 1, last, -1)
    reached = 0
    while reached < last and np.float64(w[candidates[count - 1 - reached]]) >= threshold * kept:
        reached += 1
    return max(reached - 1, 0)


@kernel
def sum_of(w, candidates, start, count, step):
    """The probability of `count` candidates from `start` on, by steps of 1 or -1, in that order."""
    total = 0.0
    for i in range(count):
        total += np.float64(w[candidates[start + i * step]])
    return total


@kernel
def draw_from(w, candidates, start, count, step, draw):
    """The candidate at the share `draw` of the probability of those that `sum_of` sums."""
    total = sum_of(w, candidates, start, count, step)
    running = 0.0
    for i in range(count):
        running += np.float64(w[candidates[start + i * step]])
        if running > draw * total:
            return np.int64(candidates[start + i * step])
    return np.int64(candidates[start + (count - 1) * step])


@kernel
def mirostat(P, D, w, candidates, count, draw):
    """Draw so that the surprise stays near tau: mu, the largest allowed, follows what was drawn."""
    total = sum_of(w, candidates, 0, count, 1)
    make_heap(w, candidates, count)
    if P[MIROSTAT] == 1:
        wanted, taken = zipf_count(D, w, candidates, count, P[N_VOCAB])
        least = 0.0
    else:
        wanted, taken = count, 0
        least = total * exp_f64(-D[MIROSTAT_MU] * LN2)
    while taken < wanted and (taken == 0 or np.float64(w[candidates[0]]) >= least):
        take_first(w, candidates, count - taken)
        taken += 1
    kept = min(taken, wanted)
    token = draw_from(w, candidates, count - 1, kept, -1, draw)
    surprise = log(sum_of(w, candidates, count - 1, kept, -1) / np.float64(w[token])) / LN2
    D[MIROSTAT_MU] = D[MIROSTAT_MU] - D[MIROSTAT_ETA] * (surprise - D[MIROSTAT_TAU])
    return token


@kernel
def zipf_count(D, w, candidates, count, n):
    """Version 1's number of candidates, from the exponent of Zipf's law that fits the first ones.

    Returns it, and how many were taken from the heap to find it.
    """
    taken = min(count, ZIPF_TOKENS)
    for i in range(taken):
        take_first(w, candidates, count - i)
    products, squares = 0.0, 0.0
    for i in range(taken - 1):
        t = log(np.float64(i + 2) / np.float64(i + 1))
        ratio = np.float64(w[candidates[count - 1 - i]]) / np.float64(w[candidates[count - 2 - i]])
        products += t * log(ratio)
        squares += t * t
    if products <= 0.0:  # one candidate, or all alike
        return min(count, 1) if squares == 0.0 else count, taken
    exponent = products / squares
    epsilon = exponent - 1.0
    ratio = epsilon * exp_f64(D[MIROSTAT_MU] * LN2) / (1.0 - power(np.float64(n), -epsilon))
    if not ratio > 0.0:  # the exponent is 1, where the formula has no value
        return count, taken
    return max(min(np.int64(min(power(ratio, 1.0 / exponent), 1e9)), count), 1), taken
