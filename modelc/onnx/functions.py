"""Functions of float64 arrays beside those of `runtime.elementary`: the same bits everywhere."""

from __future__ import annotations

import numpy as np

from modelc.runtime.elementary import F64, erf, exp, sincos

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "exp",
    "log",
    "power",
    "sin",
    "sinh",
    "softplus",
    "tan",
    "tanh",
]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LOG_TERMS = 13
_ATAN_TERMS = 20
_HALF_PI = 1.5707963267948966


def log(x: F64) -> F64:
    """Natural logarithm, relative error below 1e-15; -inf for 0, NaN below.

    Source: x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 (s + s^3 / 3 + s^5 / 5 + ...), s = (m - 1) / (m + 1).
    """
    mantissa, exponent = np.frexp(x)
    small = mantissa < 0.7071067811865476
    mantissa = np.where(small, mantissa * 2.0, mantissa)
    e = (exponent - small).astype(np.float64)
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = np.full_like(z, 1.0 / (2 * _LOG_TERMS + 1))
    for n in range(_LOG_TERMS - 1, 0, -1):
        series = series * z + 1.0 / (2 * n + 1)
    near = 2.0 * s + 2.0 * s * z * series
    result = e * _LN2_HIGH + (near + e * _LN2_LOW)
    result = np.where(np.isposinf(x) | np.isnan(x), x, result)
    return np.where(x == 0, -np.inf, np.where(x < 0, np.nan, result))


def expm1(x: F64) -> F64:
    """e^x - 1, also near 0."""
    near = np.clip(x, -0.5, 0.5)
    series = np.full_like(near, 1.0)
    for n in range(17, 1, -1):
        series = 1.0 + series * near / n
    return np.where(np.abs(x) < 0.5, near * series, exp(x) - 1.0)


def tanh(x: F64) -> F64:
    """Hyperbolic tangent."""
    e = expm1(-2.0 * np.abs(x))
    return np.copysign(-e / (e + 2.0), x)


def sinh(x: F64) -> F64:
    """Hyperbolic sine."""
    e = expm1(np.abs(x))
    return np.copysign(np.where(np.isinf(e), np.inf, 0.5 * (e + e / (e + 1.0))), x)


def cosh(x: F64) -> F64:
    """Hyperbolic cosine."""
    e = exp(np.abs(x))
    return 0.5 * e + 0.5 / e


def softplus(x: F64) -> F64:
    """log(1 + e^x)."""
    return np.maximum(x, 0.0) + _log1p(exp(-np.abs(x)))


def _log1p(x: F64) -> F64:
    """log(1 + x) for x >= 0; the rounding of 1 + x is made good."""
    u = 1.0 + x
    inside = (u != 1.0) & np.isfinite(u)
    return np.where(inside, log(u) * (x / np.where(inside, u - 1.0, 1.0)), x)


def atan(x: F64) -> F64:
    """Arc tangent.

    Source: atan x = pi / 2 - atan 1/x above 1; x / (1 + sqrt(1 + x^2)), twice, halves the angle; then the series.
    """
    magnitude = np.abs(x)
    inverse = magnitude > 1.0
    t = np.where(inverse, 1.0 / np.where(inverse, magnitude, 1.0), magnitude)
    for _ in range(2):
        t = t / (1.0 + np.sqrt(1.0 + t * t))
    z = t * t
    series = np.full_like(z, 1.0 / (2 * _ATAN_TERMS + 1))
    for n in range(_ATAN_TERMS - 1, -1, -1):
        series = 1.0 / (2 * n + 1) - series * z
    angle = 4.0 * t * series
    return np.copysign(np.where(inverse, _HALF_PI - angle, angle), x)


def asin(x: F64) -> F64:
    """Arc sine; NaN outside [-1, 1]."""
    root = np.sqrt((1.0 - x) * (1.0 + x))
    edge = np.copysign(_HALF_PI, x)
    return np.where(root == 0, edge, atan(x / np.where(root == 0, 1.0, root)))


def acos(x: F64) -> F64:
    """Arc cosine; NaN outside [-1, 1]."""
    return 2.0 * atan(np.sqrt(1.0 - x) / np.sqrt(1.0 + x))


def asinh(x: F64) -> F64:
    """Inverse hyperbolic sine."""
    magnitude = np.abs(x)
    return np.copysign(_log1p(magnitude + magnitude * magnitude / (1.0 + np.sqrt(1.0 + magnitude * magnitude))), x)


def acosh(x: F64) -> F64:
    """Inverse hyperbolic cosine; NaN below 1."""
    t = np.where(x >= 1.0, x - 1.0, np.nan)
    return _log1p(t + np.sqrt(t * (t + 2.0)))


def atanh(x: F64) -> F64:
    """Inverse hyperbolic tangent."""
    magnitude = np.abs(x)
    return np.copysign(0.5 * _log1p(2.0 * magnitude / (1.0 - magnitude)), x)


def sin(x: F64) -> F64:
    """Sine."""
    return sincos(_finite(x))[0] + _nan_of(x)


def cos(x: F64) -> F64:
    """Cosine."""
    return sincos(_finite(x))[1] + _nan_of(x)


def tan(x: F64) -> F64:
    """Tangent."""
    sine, cosine = sincos(_finite(x))
    return sine / cosine + _nan_of(x)


def power(x: F64, y: F64) -> F64:
    """x^y, relative error about 1e-16 |y log x|; whole small exponents by products."""
    x, y = np.broadcast_arrays(x, y)
    whole = y == np.floor(y)
    odd = whole & (np.abs(y) < 2.0**53) & (np.fmod(y, 2.0) != 0)
    magnitude = exp(y * log(np.abs(x)))
    magnitude = np.where(y == 0.5, np.sqrt(np.abs(x)), magnitude)
    small = whole & (np.abs(y) <= 8)
    if small.any():
        magnitude = np.where(small, _small_power(np.abs(x), np.where(small, y, 0.0)), magnitude)
    magnitude = np.where((y == 0) | (x == 1) | ((x == -1) & np.isinf(y)), 1.0, magnitude)
    result = np.where(odd, np.copysign(magnitude, x), magnitude)
    return np.where((x < 0) & ~whole & np.isfinite(x), np.nan, result)


def _small_power(x: F64, y: F64) -> F64:
    result = np.ones_like(x)
    for n in range(8):
        result = np.where(n < np.abs(y), result * x, result)
    return np.where(y < 0, 1.0 / result, result)


def _finite(x: F64) -> F64:
    return np.where(np.isfinite(x), x, 0.0)


def _nan_of(x: F64) -> F64:
    return np.where(np.isfinite(x), 0.0, np.nan)
