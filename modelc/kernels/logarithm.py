"""Logarithm and power of float64, one number at a time: the same bits on every CPU, unlike libm's.

Sums and products are rounded one by one, in the order written; nothing is fused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from modelc.kernels.jit import intrinsic, kernel

i64 = np.int64

LN2_HIGH = 6.93147180369123816490e-01  # the upper bits of ln 2: a product with an exponent is exact
LN2_LOW = 1.90821492927058770002e-10
EXPONENT_ONE = i64(0x3FF0000000000000)
EXPONENT_STEP = i64(0x0010000000000000)
MANTISSA = i64(0x000FFFFFFFFFFFFF)
SQRT2_STEP = i64(0x95F6400000000)  # added to a mantissa's bits: carries into the exponent from sqrt 2 on


@intrinsic
def _bits_of_f64(typing_context: Any, value: Any) -> Any:
    return types.int64(types.float64), lambda c, b, s, args: b.bitcast(args[0], ir.IntType(64))


@intrinsic
def _f64_of_bits(typing_context: Any, bits: Any) -> Any:
    return types.float64(types.int64), lambda c, b, s, args: b.bitcast(args[0], ir.DoubleType())


@kernel
def log(x):
    """Natural logarithm of a normal positive float64; error below 1 ulp.

    Source: x = 2^k (1 + f), sqrt(1/2) < 1 + f < sqrt(2); fdlibm's polynomial in s = f / (2 + f).
    """
    bits = _bits_of_f64(x)
    carry = ((bits & MANTISSA) + SQRT2_STEP) & EXPONENT_STEP
    k = (bits >> i64(52)) - i64(1023) + (carry >> i64(52))
    f = _f64_of_bits((bits & MANTISSA) | (EXPONENT_ONE - carry)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    r = 1.479819860511658591e-01
    r = r * z + 1.531383769920937332e-01
    r = r * z + 1.818357216161805012e-01
    r = r * z + 2.222219843214978396e-01
    r = r * z + 2.857142874366239149e-01
    r = r * z + 3.999999999940941908e-01
    r = r * z + 6.666666666666735130e-01
    r = r * z
    half_square = 0.5 * f * f
    return np.float64(k) * LN2_HIGH - ((half_square - (s * (half_square + r) + np.float64(k) * LN2_LOW)) - f)


@kernel
def exp(x):
    """e^x of a float64 between -700 and 700 (beyond: of the limit); relative error below 1e-15.

    Source: reduction by ln 2 in two parts, the Taylor polynomial of degree 13.
    """
    x = min(max(x, -700.0), 700.0)
    k = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.388888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.1666666666666664e-02
    p = p * r + 1.6666666666666666e-01
    p = p * r + 0.5
    p = p * r * r + r + 1.0
    return p * _f64_of_bits((np.int64(k) + i64(1023)) << i64(52))


@kernel
def power(base, exponent):
    """base^exponent of a positive base."""
    return exp(exponent * log(base))
