import math

import numpy as np
import pytest

from modelc.kernels import logarithm
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f64_ptr
from tests.kernels.opcode_runner import run


@kernel
def both(I, E, tid, nth):
    """I: 2 n, 3 x, 4 log x, 5 y, 6 e^y, 7 x^y."""
    for i in range(I[2]):
        x, y = f64_ptr(I[3])[i], f64_ptr(I[5])[i]
        f64_ptr(I[4])[i] = logarithm.log(x)
        f64_ptr(I[6])[i] = logarithm.exp(y)
        f64_ptr(I[7])[i] = logarithm.power(x, y * 0.01)


def values() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    special = [
        1.0,
        2.0,
        0.5,
        math.sqrt(2),
        math.sqrt(0.5),
        1e-300,
        1e300,
        np.nextafter(1, 0),
        np.nextafter(1, 2),
        1e-38,
    ]
    x = np.concatenate([special, np.exp(rng.uniform(-80, 80, 20_000)), rng.uniform(0.5, 2.0, 20_000)])
    y = np.concatenate([[0.0, -0.0, 700.0, -700.0, 1e9, -1e9, 0.5, -0.5, 1.0, -1.0], rng.uniform(-60, 60, x.size - 10)])
    log, exp, power = (np.zeros_like(x) for _ in range(3))
    run(both, [x.size, x, log, y, exp, power])
    return x, y, log, exp, power


def test_they_are_near_the_truth() -> None:
    x, y, log, exp, power = values()
    assert log == pytest.approx([math.log(v) for v in x], rel=4e-16, abs=1e-17)
    assert exp == pytest.approx([math.exp(min(max(v, -700), 700)) for v in y], rel=1e-15)
    assert power[10:] == pytest.approx([math.pow(v, 0.01 * w) for v, w in zip(x[10:], y[10:], strict=True)], rel=1e-13)


def test_whole_powers_of_two_are_exact() -> None:
    x, _, log, _, _ = values()
    assert log[0] == 0.0
    assert (log[1], log[2]) == (math.log(2), -math.log(2))
    assert x[0] == 1.0
