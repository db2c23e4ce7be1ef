"""The error function, hyperbolic tangent, logarithm and what networks make of them, lane by lane; NaN stays NaN.

Polynomials with explicit FMA, as in `elementary`: the same bits on every CPU.
"""

from __future__ import annotations

import numpy as np

from modelc.kernels import elementary
from modelc.kernels.jit import inlined
from modelc.kernels.lanes import or_nan, shift_right, square_root, where_below
from modelc.kernels.simd import bits_of, fma, from_bits, maximum, minimum, splat_f32, splat_i32, to_f32

f32 = np.float32
i32 = np.int32


@inlined
def exp(x):
    """e^x; infinite above 88.72."""
    near = elementary.exp(minimum(x, splat_f32(f32(88.0))))
    # Between 88 and 88.72 the exponent of 2 would leave the range: e^(x/2) twice.
    half = elementary.exp(x * splat_f32(f32(0.5)))
    infinite = splat_f32(f32(np.inf))
    far = where_below(x, splat_f32(f32(88.72284)), half * half, infinite)
    return or_nan(x, where_below(x, splat_f32(f32(88.0)), near, far))


@inlined
def log(x):
    """Natural logarithm; relative error below 2e-7; -inf for 0, NaN below 0, inf for inf.

    Source: Cephes logf (mantissa in [sqrt(1/2), sqrt(2)), degree-8 polynomial).
    """
    tiny = where_below(x, splat_f32(f32(1.17549435e-38)), splat_f32(f32(1.0)), splat_f32(f32(0.0)))
    scaled = where_below(x, splat_f32(f32(1.17549435e-38)), x * splat_f32(f32(8388608.0)), x)
    bits = bits_of(scaled) - splat_i32(i32(0x3F3504F3))  # exponents count from sqrt(1/2)
    exponent = to_f32(shift_right(bits, i32(23))) - tiny * splat_f32(f32(23.0))
    mantissa = from_bits((bits & splat_i32(i32(0x007FFFFF))) + splat_i32(i32(0x3F3504F3)))
    r = mantissa - splat_f32(f32(1.0))
    z = r * r
    p = splat_f32(f32(7.0376836292e-2))
    p = fma(p, r, splat_f32(f32(-1.1514610310e-1)))
    p = fma(p, r, splat_f32(f32(1.1676998740e-1)))
    p = fma(p, r, splat_f32(f32(-1.2420140846e-1)))
    p = fma(p, r, splat_f32(f32(1.4249322787e-1)))
    p = fma(p, r, splat_f32(f32(-1.6668057665e-1)))
    p = fma(p, r, splat_f32(f32(2.0000714765e-1)))
    p = fma(p, r, splat_f32(f32(-2.4999993993e-1)))
    p = fma(p, r, splat_f32(f32(3.3333331174e-1)))
    y = p * r * z
    y = fma(exponent, splat_f32(f32(-2.12194440e-4)), y)
    y = fma(splat_f32(f32(-0.5)), z, y)
    y = fma(exponent, splat_f32(f32(0.693359375)), r + y)
    zero = splat_f32(f32(0.0))
    y = where_below(splat_f32(f32(3.4028235e38)), x, x, y)  # infinity
    y = where_below(zero, x, y, splat_f32(f32(-np.inf)))
    return or_nan(x, where_below(x, zero, splat_f32(f32(np.nan)), y))


@inlined
def erf(x):
    """The error function; relative error below 5e-7.

    Source: erf(x) = x + x P(x^2) up to 0.92, 1 - e^Q(|x|) above, polynomials fitted for least relative error.
    """
    magnitude = maximum(x, splat_f32(f32(0.0)) - x)
    t = minimum(magnitude, splat_f32(f32(4.0)))
    s = t * t
    q = fma(splat_f32(f32(-1.72853470e-5)), t, splat_f32(f32(3.83197126e-4)))
    u = fma(splat_f32(f32(-3.88396438e-3)), t, splat_f32(f32(2.42546219e-2)))
    q = fma(q, s, u)
    q = fma(q, t, splat_f32(f32(-1.06777877e-1)))
    q = fma(q, t, splat_f32(f32(-6.34846687e-1)))
    q = fma(q, t, splat_f32(f32(-1.28717512e-1)))
    q = fma(q, t, splat_f32(f32(0.0)) - t)
    far = splat_f32(f32(1.0)) - elementary.exp(q)
    p = splat_f32(f32(-5.96761703e-4))
    p = fma(p, s, splat_f32(f32(4.99119423e-3)))
    p = fma(p, s, splat_f32(f32(-2.67681349e-2)))
    p = fma(p, s, splat_f32(f32(1.12819925e-1)))
    p = fma(p, s, splat_f32(f32(-3.76125336e-1)))
    p = fma(p, s, splat_f32(f32(1.28379166e-1)))
    near = fma(p, t, t)
    result = where_below(t, splat_f32(f32(0.927734375)), near, far)
    return or_nan(x, where_below(x, splat_f32(f32(0.0)), splat_f32(f32(0.0)) - result, result))


@inlined
def tanh(x):
    """Hyperbolic tangent; relative error below 3e-7.

    Source: Cephes tanhf: x + x^3 P(x^2) up to 0.625, 1 - 2 / (e^2x + 1) above.
    """
    magnitude = maximum(x, splat_f32(f32(0.0)) - x)
    t = minimum(magnitude, splat_f32(f32(10.0)))
    one = splat_f32(f32(1.0))
    far = one - splat_f32(f32(2.0)) / (elementary.exp(t + t) + one)
    z = t * t
    p = splat_f32(f32(-5.70498872745e-3))
    p = fma(p, z, splat_f32(f32(2.06390887954e-2)))
    p = fma(p, z, splat_f32(f32(-5.37397155531e-2)))
    p = fma(p, z, splat_f32(f32(1.33314422036e-1)))
    p = fma(p, z, splat_f32(f32(-3.33332819422e-1)))
    near = fma(p * z, t, t)
    result = where_below(t, splat_f32(f32(0.625)), near, far)
    return or_nan(x, where_below(x, splat_f32(f32(0.0)), splat_f32(f32(0.0)) - result, result))


@inlined
def sigmoid(x):
    """1 / (1 + e^-x)."""
    zero = splat_f32(f32(0.0))
    clamped = maximum(x, splat_f32(f32(-88.0)))
    return or_nan(x, splat_f32(f32(1.0)) / (splat_f32(f32(1.0)) + elementary.exp(zero - clamped)))


@inlined
def silu(x):
    """x * sigmoid(x)."""
    return x * sigmoid(x)


@inlined
def gelu(x):
    """x / 2 * (1 + erf(x / sqrt 2))."""
    half = x * splat_f32(f32(0.5))
    return fma(half, erf(x * splat_f32(f32(0.70710678118655))), half)


@inlined
def gelu_tanh(x):
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))."""
    half = x * splat_f32(f32(0.5))
    inner = x * fma(splat_f32(f32(0.0356774081363)), x * x, splat_f32(f32(0.7978845608028654)))
    return fma(half, tanh(inner), half)


@inlined
def softplus(x):
    """log(1 + e^x) = max(x, 0) + log(1 + e^-|x|); the rounding of u = 1 + e is made good by e / (u - 1)."""
    zero, one = splat_f32(f32(0.0)), splat_f32(f32(1.0))
    e = elementary.exp(zero - maximum(x, zero - x))
    u = one + e
    tail = where_below(one, u, log(u) * (e / (u - one)), e)
    return or_nan(x, maximum(x, zero) + tail)


@inlined
def sqrt(x):
    """Square root."""
    return square_root(x)


@inlined
def reciprocal(x):
    """1 / x."""
    return splat_f32(f32(1.0)) / x


@inlined
def absolute(x):
    """|x|."""
    return from_bits(bits_of(x) & splat_i32(i32(0x7FFFFFFF)))


@inlined
def negative(x):
    """-x."""
    return from_bits(bits_of(x) + splat_i32(i32(-0x80000000)))


@inlined
def square(x):
    """x * x."""
    return x * x


# ------------------------------------------------------------------------------- with one or two parameters a and b


@inlined
def leaky_relu(x, a, b):
    """A * x below 0, else x."""
    return where_below(x, splat_f32(f32(0.0)), x * a, x)


@inlined
def elu(x, a, b):
    """A * (e^x - 1) below 0, else b * x."""
    return where_below(x, splat_f32(f32(0.0)), a * (exp(x) - splat_f32(f32(1.0))), b * x)


@inlined
def hard_sigmoid(x, a, b):
    """A * x + b between 0 and 1."""
    zero, one = splat_f32(f32(0.0)), splat_f32(f32(1.0))
    return or_nan(x, maximum(minimum(x * a + b, one), zero))


@inlined
def hard_swish(x, a, b):
    """X * hard_sigmoid(x)."""
    return x * hard_sigmoid(x, a, b)


@inlined
def clip(x, a, b):
    """Between a and b."""
    return or_nan(x, minimum(maximum(x, a), b))


@inlined
def affine(x, a, b):
    """A * x + b."""
    return x * a + b


PLAIN = {
    "abs": absolute,
    "erf": erf,
    "exp": exp,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "log": log,
    "neg": negative,
    "reciprocal": reciprocal,
    "relu": elementary.relu,
    "sigmoid": sigmoid,
    "silu": silu,
    "softplus": softplus,
    "sqrt": sqrt,
    "square": square,
    "tanh": tanh,
}
WITH_PARAMETERS = {
    "affine": affine,
    "clip": clip,
    "elu": elu,
    "hard_sigmoid": hard_sigmoid,
    "hard_swish": hard_swish,
    "leaky_relu": leaky_relu,
}
