import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.float_math import F32, exp
from tests.kernels.test_sample import Ask, draw, draw_and_learn, expected_uniform, random_logits

f32 = np.float32
SECOND_DRAW = 0x5851F42D4C957F2D


def expected(logits: F32, ask: Ask) -> tuple[int, float]:
    """The same in plain Python: sort everything, then cut. Returns the token and Mirostat's mu."""
    w = logits.copy()
    if ask.allowed is not None:
        w[np.isin(np.arange(len(w)), ask.allowed, invert=True)] = -np.inf
    highest = w.max()
    x = (w - highest) * f32(1 / ask.temperature)
    e = exp(x)
    if ask.top_n_sigma > 0:
        finite = [float(v) for v in w if v > -np.inf]
        mean = left_to_right(finite) / len(finite)
        sigma = math.sqrt(left_to_right([(v - mean) * (v - mean) for v in finite]) / len(finite))
        e[w < f32(float(highest) - ask.top_n_sigma * sigma)] = 0
    kept = [int(i) for i in np.flatnonzero(e > 0)]
    p = {i: float(e[i]) for i in kept}
    ordered = sorted(kept, key=lambda i: (-p[i], i))
    u = expected_uniform(ask.seed, ask.position)
    if ask.mirostat:
        return mirostat(p, kept, ordered, ask, len(logits), u)
    if 0 < ask.top_k < len(kept):
        # Their order behind the heap: the last taken first.
        kept = ordered[: ask.top_k][::-1]
    if 0 < ask.typical_p < 1:
        total = left_to_right([p[i] for i in kept])
        mean32 = f32(left_to_right([p[i] * float(x[i]) for i in kept]) / total)
        surprising = {i: abs(x[i] - mean32) for i in kept}
        by_surprise = sorted(kept, key=lambda i: (surprising[i], i))
        running = np.cumsum([p[i] for i in by_surprise])
        wanted = int(np.searchsorted(running, ask.typical_p * total, side="right")) + 1
        kept = by_surprise[:wanted][::-1]
    second = expected_uniform(ask.seed ^ SECOND_DRAW, ask.position)
    has_xtc = second < ask.xtc[0] and ask.xtc[1] <= 0.5
    top_p = ask.top_p if ask.top_p < 1 else 0.0
    if has_xtc or ask.top_k > 0 or top_p > 0 or ask.min_p > 0:
        total = left_to_right([p[i] for i in kept])
        kept = sorted(kept, key=lambda i: (-p[i], i))
        least, running_p = f32(p[kept[0]]) * f32(ask.min_p), 0.0
        cut = []
        for i in kept:
            if cut and (f32(p[i]) < least or (top_p > 0 and running_p > top_p * total)):
                break
            cut.append(i)
            running_p += p[i]
        kept = cut
        if has_xtc:
            reached = [i for i in kept if p[i] >= ask.xtc[1] * running_p]
            kept = kept[max(len(reached) - 1, 0) :]
    return share_of(p, kept, u), ask.mu


def mirostat(p: dict[int, float], kept: list[int], ordered: list[int], ask: Ask, n: int, u: float) -> tuple[int, float]:
    total = left_to_right([p[i] for i in kept])
    if ask.mirostat == 2:
        least = total * 2.0**-ask.mu
        chosen = [i for at, i in enumerate(ordered) if at == 0 or p[i] >= least]
    else:
        first = ordered[:100]
        terms = [(math.log((i + 2) / (i + 1)), math.log(p[first[i]] / p[first[i + 1]])) for i in range(len(first) - 1)]
        exponent = sum(t * b for t, b in terms) / sum(t * t for t, _ in terms)
        epsilon = exponent - 1
        count = ((epsilon * 2**ask.mu) / (1 - n**-epsilon)) ** (1 / exponent)
        chosen = ordered[: max(int(count), 1)]
    token = share_of(p, chosen, u)
    surprise = math.log2(left_to_right([p[i] for i in chosen]) / p[token])
    return token, ask.mu - ask.eta * (surprise - ask.tau)


def share_of(p: dict[int, float], kept: list[int], u: float) -> int:
    running = np.cumsum([p[i] for i in kept])
    return kept[min(int(np.searchsorted(running, u * running[-1], side="right")), len(kept) - 1)]


def left_to_right(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


# ------------------------------------------------------------------------------------------ against the reference


@pytest.mark.parametrize("n", [1, 17, 300, 2000])
def test_draws_are_those_of_the_reference(n: int) -> None:
    logits = random_logits(n, n)
    logits[n // 3 : n // 3 + 3] = logits.max()  # ties at the top
    tails = ((0.0, 0.0), (0.9, 0.0), (0.0, 0.1))
    for typical, sigma, xtc in itertools.product((0.0, 0.3, 0.95), (0.0, 1.0), ((0.0, 0.1), (0.5, 0.05), (1.0, 0.02))):
        if not (typical or sigma or xtc[0]):
            continue
        for seed, (top_k, (top_p, min_p)) in enumerate(itertools.product((0, 7, n + 1), tails)):
            for temperature in (0.7, 3.0):
                ask = Ask(temperature, top_k, top_p, min_p, seed=seed, typical_p=typical, top_n_sigma=sigma, xtc=xtc)
                assert draw(logits, ask) == expected(logits, ask)[0], ask


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_draws_and_learns_as_the_reference(version: int) -> None:
    logits = random_logits(2000, 4)
    ask = Ask(1.0, mirostat=version, mu=6.0, tau=3.0, eta=0.1)
    for position in range(100):
        ask = replace(ask, position=position)
        token, mu = draw_and_learn(logits, ask)
        expected_token, expected_mu = expected(logits, ask)
        assert token == expected_token
        assert mu == pytest.approx(expected_mu, rel=1e-12)
        ask = replace(ask, mu=mu)


def test_masked_tokens_are_left_out_of_everything() -> None:
    logits = random_logits(500, 6)
    allowed = tuple(range(3, 500, 7))
    for seed in range(30):
        for more in ({"typical_p": 0.6}, {"top_n_sigma": 1.5}, {"xtc": (1.0, 0.05)}, {"mirostat": 2, "mu": 4.0}):
            ask = Ask(2.0, seed=seed, allowed=allowed, **more)  # type: ignore[arg-type]
            assert draw(logits, ask) == expected(logits, ask)[0]


# ------------------------------------------------------------------------------------------- each parameter by itself


def drawn(logits: F32, ask: Ask, n: int = 300) -> set[int]:
    return {draw(logits, replace(ask, seed=seed)) for seed in range(n)}


def test_top_n_sigma_keeps_what_is_near_the_highest_logit_at_any_temperature() -> None:
    logits = f32([10.0, 9.0, *[0.0] * 98])  # sigma is 1.34
    assert drawn(logits, Ask(1.0, top_n_sigma=1.0)) == {0, 1}
    assert drawn(logits, Ask(50.0, top_n_sigma=1.0)) == {0, 1}
    assert drawn(logits, Ask(50.0, top_n_sigma=0.5)) == {0}


def test_typical_p_leaves_out_what_is_too_likely_and_what_is_too_rare() -> None:
    logits = np.log(f32([0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.03, 0.02]))  # entropy 1.9: near the surprise of 0.1
    assert drawn(logits, Ask(1.0, typical_p=0.45)) == {1, 2, 3, 4, 5}


def test_xtc_leaves_of_the_likely_tokens_the_least_likely() -> None:
    logits = np.log(f32([0.4, 0.3, 0.2, 0.05, 0.05]))
    assert drawn(logits, Ask(1.0, xtc=(1.0, 0.15))) == {2, 3, 4}
    assert drawn(logits, Ask(1.0, xtc=(1.0, 0.35))) == {0, 1, 2, 3, 4}, "one token alone reaches it: it stays"
    assert drawn(logits, Ask(1.0, xtc=(1.0, 0.6))) == {0, 1, 2, 3, 4}, "off"
    often = sum(draw(logits, Ask(1.0, xtc=(0.5, 0.15), seed=seed)) < 2 for seed in range(1000))
    assert 270 < often < 430


def test_mirostat_keeps_the_mean_surprise_at_tau() -> None:
    logits = random_logits(5000, 3) * f32(0.5)
    for version, tau in itertools.product((1, 2), (1.5, 4.0)):
        first = mu = 2 * tau
        for position in range(400):
            _, mu = draw_and_learn(logits, Ask(1.0, mirostat=version, mu=mu, tau=tau, eta=0.1, position=position))
        mean_surprise = tau + (first - mu) / (0.1 * 400)
        assert mean_surprise == pytest.approx(tau, abs=0.2)


def test_one_candidate_alone_is_drawn_by_every_method() -> None:
    logits = np.full(40, -np.inf, f32)
    logits[7] = 3.0
    for more in ({"typical_p": 0.5}, {"top_n_sigma": 1.0}, {"xtc": (1.0, 0.01)}, {"mirostat": 1}, {"mirostat": 2}):
        token, mu = draw_and_learn(logits, Ask(1.0, mu=2.0, tau=1.0, eta=0.5, **more))  # type: ignore[arg-type]
        assert token == 7
        assert math.isfinite(mu)
    for version in (1, 2):
        token, mu = draw_and_learn(np.zeros(40, f32), Ask(1.0, mirostat=version, mu=2.0, tau=1.0, eta=0.5))
        assert 0 <= token < 40
        assert math.isfinite(mu)
