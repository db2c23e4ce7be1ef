"""exp, erf, sine and cosine on NumPy arrays: additions and products in a fixed order, so the same bits everywhere.

NumPy's and libm's own differ between CPUs and versions in the last bits. Everything is float64; what is rounded to
float32 from it is the nearest float32 but for a few in a million.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

F64: TypeAlias = npt.NDArray[np.float64]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_PER_LN2 = 1.4426950408889634
# Below and above, e^x is 0 or infinite in float64.
_EXP_LEAST, _EXP_MOST = -746.0, 710.0
_EXP_COEFFICIENTS = tuple(1.0 / f for f in (6227020800, 479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120))
_ERF_TERMS, _ERFC_LEVELS, _ERF_SPLIT = 36, 40, 2.2
_TWO_PER_SQRT_PI = 1.1283791670955126
# pi / 2 in three parts, the first two with zeros at the end, so that their products with small integers are exact.
_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
_SIN = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
)
_COS = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
)


def exp(x: F64) -> F64:
    """e^x, float64; relative error below 1e-15; NaN stays NaN.

    Source: range reduction by ln 2 in two parts (fdlibm's), then the exponential series to the 13th power.
    """
    inside = np.clip(np.where(np.isnan(x), 0.0, x), _EXP_LEAST, _EXP_MOST)
    n = np.rint(inside * _PER_LN2)
    r = (inside - n * _LN2_HIGH) - n * _LN2_LOW
    p = np.full_like(r, _EXP_COEFFICIENTS[0])
    for coefficient in _EXP_COEFFICIENTS[1:]:
        p = p * r + coefficient
    p = (((p * r + 1 / 24) * r + 1 / 6) * r + 0.5) * r * r + r + 1.0
    with np.errstate(over="ignore", under="ignore"):
        result = np.ldexp(p, n.astype(np.int32))
    return np.where(np.isnan(x), x, result)


def erf(x: F64) -> F64:
    """The error function, float64; absolute error below 1e-13; NaN stays NaN.

    Source: for small x the series 2 / sqrt(pi) * e^-x^2 * sum of 2^n x^(2n+1) / (2n+1)!!, which has positive terms
    only; for others the continued fraction of erfc (Abramowitz and Stegun 7.1.6 and 7.1.14).
    """
    z = np.minimum(np.abs(x), 10.0)
    bell = _TWO_PER_SQRT_PI * exp(-z * z)
    near = np.minimum(z, _ERF_SPLIT)
    total = np.ones_like(near)
    for n in range(_ERF_TERMS, 0, -1):
        total = 1.0 + total * (2.0 * near * near / (2 * n + 1))
    far = np.maximum(z, _ERF_SPLIT)
    fraction = far
    for level in range(_ERFC_LEVELS, 0, -1):
        fraction = far + (0.5 * level) / fraction
    magnitude = np.where(z < _ERF_SPLIT, bell * near * total, 1.0 - bell * 0.5 / fraction)
    return np.copysign(magnitude, x)


def sincos(angle: F64) -> tuple[F64, F64]:
    """Sine and cosine of angles in radians, float64; absolute error below 1e-15 up to 2^22.

    Source: Cody-Waite reduction by pi / 2 in three parts, fdlibm's kernel polynomials.
    """
    n = np.floor(angle * 0.6366197723675814 + 0.5)
    r = ((angle - n * _HALF_PI[0]) - n * _HALF_PI[1]) - n * _HALF_PI[2]
    z = r * r
    s, c = np.full_like(z, _SIN[0]), np.full_like(z, _COS[0])
    for sine_term, cosine_term in zip(_SIN[1:], _COS[1:], strict=True):
        s, c = s * z + sine_term, c * z + cosine_term
    s = r + r * z * ((s * z + 8.33333333332248946124e-03) * z - 1.66666666666666324348e-01)
    c = 1.0 - 0.5 * z + z * z * ((c * z - 1.38888888888741095749e-03) * z + 4.16666666666666019037e-02)
    quadrant = n.astype(np.int64) & 3
    swapped = (quadrant & 1).astype(bool)
    sine, cosine = np.where(swapped, c, s), np.where(swapped, s, c)
    return np.where(quadrant >= 2, -sine, sine), np.where((quadrant == 1) | (quadrant == 2), -cosine, cosine)
