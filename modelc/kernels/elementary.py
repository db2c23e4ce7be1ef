"""Elementary functions as polynomials with explicit FMA: the same bits on every CPU, unlike libm's or NumPy's."""

from __future__ import annotations

import numpy as np

from modelc.kernels.jit import inlined
from modelc.kernels.simd import bits_of, fma, from_bits, maximum, minimum, splat_f32, splat_i32, zero_below

f32 = np.float32
i32 = np.int32

ROUND = f32(12582912.0)  # 1.5 * 2^23: adding it leaves the rounded integer in the low bits of the sum
ROUND_BITS = i32(0x4B400000)


@inlined
def exp(x):
    """e^x lane by lane; relative error below 1e-7; exactly 0 below -87.3; e^88.3 from there on and for NaN.

    Source: range reduction by ln 2 in two parts, degree-6 minimax polynomial (Cephes expf).
    """
    clamped = maximum(minimum(x, splat_f32(f32(88.3))), splat_f32(f32(-87.3)))
    shifted = fma(clamped, splat_f32(f32(1.4426950408889634)), splat_f32(ROUND))
    n = shifted - splat_f32(ROUND)
    r = fma(n, splat_f32(f32(-0.693359375)), clamped)
    r = fma(n, splat_f32(f32(2.12194440e-4)), r)
    p = splat_f32(f32(1.9875691500e-4))
    p = fma(p, r, splat_f32(f32(1.3981999507e-3)))
    p = fma(p, r, splat_f32(f32(8.3334519073e-3)))
    p = fma(p, r, splat_f32(f32(4.1665795894e-2)))
    p = fma(p, r, splat_f32(f32(1.6666665459e-1)))
    p = fma(p, r, splat_f32(f32(5.0000001201e-1)))
    p = fma(p, r * r, r) + splat_f32(f32(1.0))
    scaled = from_bits(bits_of(p) + ((bits_of(shifted) - splat_i32(ROUND_BITS)) << splat_i32(i32(23))))
    return zero_below(x, splat_f32(f32(-87.3)), scaled)


@inlined
def silu(x):
    """Lane by lane x / (1 + e^-x)."""
    return x / (splat_f32(f32(1.0)) + exp(splat_f32(f32(0.0)) - x))


@inlined
def gelu_tanh(x):
    """GELU by tanh lane by lane: x / (1 + e^-2u), u = sqrt(2 / pi) * (x + 0.044715 x^3)."""
    minus_2u = x * fma(splat_f32(f32(-0.0713548162726)), x * x, splat_f32(f32(-1.5957691216057)))
    return x / (splat_f32(f32(1.0)) + exp(minus_2u))


@inlined
def gelu(x):
    """GELU lane by lane: x / 2 * (1 + erf(x / sqrt 2)); absolute error of erf below 2e-7.

    Source: Abramowitz and Stegun 7.1.26 for erf of |x|.
    """
    one = splat_f32(f32(1.0))
    half = splat_f32(f32(0.5))
    z = x * splat_f32(f32(0.70710678118655))
    magnitude = maximum(z, splat_f32(f32(0.0)) - z)
    t = one / fma(splat_f32(f32(0.3275911)), magnitude, one)
    p = splat_f32(f32(1.061405429))
    p = fma(p, t, splat_f32(f32(-1.453152027)))
    p = fma(p, t, splat_f32(f32(1.421413741)))
    p = fma(p, t, splat_f32(f32(-0.284496736)))
    p = fma(p, t, splat_f32(f32(0.254829592)))
    tail = p * t * exp(splat_f32(f32(0.0)) - magnitude * magnitude)  # 1 - erf(|z|)
    below = x * half * tail
    zero = splat_f32(f32(0.0))
    return zero_below(zero - x, zero, below) + zero_below(x, zero, x - below)


@inlined
def relu(x):
    """Lane by lane 0 where x < 0, else x."""
    return zero_below(x, splat_f32(f32(0.0)), x)


@inlined
def same(x):
    """The value itself."""
    return x


ACTIVATIONS = {"none": same, "relu": relu, "silu": silu, "gelu": gelu, "gelu_tanh": gelu_tanh}


@inlined
def sincos(angle):
    """(sin, cos) of a float64 angle in radians; absolute error below 1e-15 up to 2^22, 1e-9 up to 2^24.

    Source: Cody-Waite reduction by pi/2 in three parts, fdlibm's kernel polynomials in Horner form.
    """
    n = np.floor(angle * 0.6366197723675814 + 0.5)
    r = ((angle - n * 1.5707963267341256) - n * 6.077100506303966e-11) - n * 2.0222662487959506e-21
    z = r * r
    s = 1.58969099521155010221e-10
    s = s * z - 2.50507602534068634195e-08
    s = s * z + 2.75573137070700676789e-06
    s = s * z - 1.98412698298579493134e-04
    s = s * z + 8.33333333332248946124e-03
    s = s * z - 1.66666666666666324348e-01
    s = r + r * z * s
    c = -1.13596475577881948265e-11
    c = c * z + 2.08757232129817482790e-09
    c = c * z - 2.75573143513906633035e-07
    c = c * z + 2.48015872894767294178e-05
    c = c * z - 1.38888888888741095749e-03
    c = c * z + 4.16666666666666019037e-02
    c = 1.0 - 0.5 * z + z * z * c
    quadrant = np.int64(n) & 3
    if quadrant == 0:
        return s, c
    if quadrant == 1:
        return c, -s
    if quadrant == 2:
        return -s, -c
    return -c, s
