"""The kernels' float arithmetic in NumPy, bit for bit: fused multiply-add, sums of lanes, elementary functions."""

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
f32 = np.float32

LANES = 16
ROUND = f32(12582912.0)  # 1.5 * 2^23
ROUND_BITS = 0x4B400000


def fma(x: npt.ArrayLike, y: npt.ArrayLike, z: npt.ArrayLike) -> F32:
    """x * y + z in float32, rounded once.

    The product is exact in float64. Its sum with z is rounded to odd there, which keeps enough of the lost bits for the
    second rounding, to float32, to be the right one (Boldo and Melquiond, 2008).
    """
    with np.errstate(all="ignore"):
        a, b, c = (np.asarray(v, f32).astype(np.float64) for v in (x, y, z))
        product = a * b
        total = np.atleast_1d(product + c)
        back = total - product
        error = (product - (total - back)) + (c - back)
        bits = total.view(np.int64)
        outward = np.where((error > 0) == (total > 0), 1, -1)
        is_even = (bits & 1) == 0
        odd = np.where(np.isfinite(total) & (error != 0) & is_even, bits + outward, bits)
        return odd.view(np.float64).astype(f32).reshape(np.broadcast_shapes(a.shape, b.shape, c.shape))


def sum_lanes(x: F32) -> F32:
    """Sum over a last axis of 16 lanes by the fixed tree: lane i with i + 8, then 4, 2, 1."""
    for n in (8, 4, 2, 1):
        x = x[..., :n] + x[..., n : 2 * n]
    return x[..., 0]


def exp(x: F32) -> F32:
    """`elementary.exp`."""
    with np.errstate(invalid="ignore"):
        clamped = np.where(x < f32(88.3), x, f32(88.3))
    clamped = np.where(clamped > f32(-87.3), clamped, f32(-87.3))
    shifted = fma(clamped, f32(1.4426950408889634), ROUND)
    n = shifted - ROUND
    r = fma(n, f32(-0.693359375), clamped)
    r = fma(n, f32(2.12194440e-4), r)
    p: F32 = np.full_like(r, f32(1.9875691500e-4))
    for c in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        p = fma(p, r, f32(c))
    p = fma(p, r * r, r) + f32(1)
    scaled = (p.view(np.int32) + ((shifted.view(np.int32) - ROUND_BITS) << 23)).view(f32)
    return np.where(x < f32(-87.3), f32(0), scaled)


def silu(x: F32) -> F32:
    """`elementary.silu`."""
    return x / (f32(1) + exp(f32(0) - x))


def sincos(angle: F64) -> tuple[F64, F64]:
    """`elementary.sincos`."""
    n = np.floor(angle * 0.6366197723675814 + 0.5)
    r = ((angle - n * 1.5707963267341256) - n * 6.077100506303966e-11) - n * 2.0222662487959506e-21
    z = r * r
    s = np.full_like(r, 1.58969099521155010221e-10)
    for k in (
        -2.50507602534068634195e-08,
        2.75573137070700676789e-06,
        -1.98412698298579493134e-04,
        8.33333333332248946124e-03,
        -1.66666666666666324348e-01,
    ):
        s = s * z + k
    s = r + r * z * s
    c = np.full_like(r, -1.13596475577881948265e-11)
    for k in (
        2.08757232129817482790e-09,
        -2.75573143513906633035e-07,
        2.48015872894767294178e-05,
        -1.38888888888741095749e-03,
        4.16666666666666019037e-02,
    ):
        c = c * z + k
    c = 1.0 - 0.5 * z + z * z * c
    quadrant = n.astype(np.int64) & 3
    return np.choose(quadrant, [s, c, -s, -c]), np.choose(quadrant, [c, -s, -c, s])


def assert_same_bits(values: F32, expected: F32) -> None:
    """Equal bits; where IEEE 754 leaves a NaN's bits open, any NaN equals any other."""
    assert values.dtype == expected.dtype == f32
    assert values.shape == expected.shape
    same = (values.view(np.int32) == expected.view(np.int32)) | (np.isnan(values) & np.isnan(expected))
    wrong = np.argwhere(~same)
    assert same.all(), (
        f"{len(wrong)} of {same.size} differ; at {wrong[0]}: {values[~same][0]}, not {expected[~same][0]}"
    )


def tricky_floats(n_random: int, seed: int) -> F32:
    """Where conversions and sums go wrong: limits, ties, subnormals, infinities, NaN; then random bits. All float32."""
    random = np.random.default_rng(seed).integers(0, 1 << 32, n_random, np.uint32).view(f32)
    powers = f32(2.0) ** np.arange(-149, 128, dtype=np.int32).astype(f32)
    near = np.concatenate([np.nextafter(powers, f32(0)), powers, np.nextafter(powers, f32(np.inf))])
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(f32)
    ties = (halves[:-1] + halves[1:]) / f32(2)
    around = np.concatenate([np.nextafter(ties, f32(0)), ties, np.nextafter(ties, f32(np.inf))])
    limits = np.array([0.0, 65504.0, 65519.99, 65520.0, 65536.0, np.inf, np.nan], f32)
    positive = np.concatenate([limits, near, around])
    return np.concatenate([positive, -positive, random])
