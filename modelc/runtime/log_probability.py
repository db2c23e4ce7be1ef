"""Log-probabilities: the natural logarithm of the softmax of raw logits, the same bits on every machine.

Only float64 additions, multiplications and decimal arithmetic take part, because `exp` and `log` of NumPy and of libm
differ between CPUs and systems in the last bit.

**Order.** The exponentials, padded with zeros to a power of two, are summed by adding the upper half to the lower one
until one is left.
"""

from __future__ import annotations

from decimal import Context, Decimal
from math import factorial

import numpy as np
import numpy.typing as npt

LOWEST = -700.0  # e^-700 adds nothing to a sum of at least 1, and is a normal number
LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # 33 bits, so that its products with whole numbers are exact
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
COEFFICIENTS = [1.0 / factorial(i) for i in range(10, 1, -1)]  # of e^r; |r| <= ln(2) / 2: error below 3e-13
DECIMAL = Context(prec=25)


def log_probability(logits: npt.NDArray[np.float32], token: int) -> float:
    """Natural logarithm of the probability that the softmax of `logits` gives to `token`.

    Args:
        logits: float32 (vocab_size,).
        token: its index.
    """
    return float(logits[token]) - log_sum_exp(logits)


def log_sum_exp(logits: npt.NDArray[np.float32]) -> float:
    """ln(sum of e^logit): what is taken from a logit to make it a log-probability; NaN where logits are not finite."""
    highest = float(logits.max())
    with np.errstate(invalid="ignore"):
        lanes = _exp(np.maximum(logits.astype(np.float64) - highest, LOWEST))
    lanes = np.pad(lanes, (0, (1 << (len(lanes) - 1).bit_length()) - len(lanes)))
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return highest + float(DECIMAL.ln(Decimal(float(lanes[0]))))


def _exp(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """e^x for LOWEST <= x <= 0. Source: reduction by ln 2 in two parts, Taylor polynomial."""
    n = np.rint(x * 1.4426950408889634)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = np.full_like(r, COEFFICIENTS[0])
    for coefficient in [*COEFFICIENTS[1:], 1.0, 1.0]:
        p *= r
        p += coefficient
    powers: npt.NDArray[np.float64] = np.ldexp(p, n.astype(np.int32))
    return powers
