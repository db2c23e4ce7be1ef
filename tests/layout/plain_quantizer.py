"""The quantizers of the types with one scale for 32 columns, in plain NumPy, operation by operation in float32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
f32 = np.float32
SIGNED = {"q4_0": (-8, 7), "q5_0": (-16, 15), "q8_0": (-127, 127)}
ABOVE = {"q4_1": 15, "q5_1": 31}


def quantize(name: str, values: F32) -> Bytes:
    """float32 (n, 32) into blocks, uint8 (n, block bytes)."""
    with np.errstate(all="ignore"):
        if name in SIGNED:
            least, most = SIGNED[name]
            scales, minimums = halves(fit_signed(values, least, most)), np.zeros(len(values), np.float16)
            bias = 0 if name == "q8_0" else -least
        else:
            least, most, bias = 0, ABOVE[name], 0
            scales, minimums = map(halves, fit_above(values, most))
        offsets = (values - minimums.astype(f32)[:, None]) * inverse_of(scales.astype(f32))[:, None]
    codes = (np.clip(np.rint(offsets), least, most) + bias).astype(np.int8).view(np.uint8)
    parts = [scales.view(np.uint8).reshape(-1, 2)]
    if name in ABOVE:
        parts.append(minimums.view(np.uint8).reshape(-1, 2))
    if name.startswith("q5"):
        parts.append(np.packbits(codes >> 4 & 1, axis=1, bitorder="little"))
    if name == "q8_0":
        parts.append(codes)
    else:
        parts.append(codes[:, :16] & 15 | codes[:, 16:] << 4)
    return np.concatenate(parts, axis=1)


def fit_signed(values: F32, least: int, most: int) -> F32:
    low, high = values.min(axis=1), values.max(axis=1)
    exact = np.where(-low >= high, low, high) / f32(least)
    step = exact * f32(0.2) / f32(least)
    first = exact - step * f32(5)
    best = first + try_scales(values, first, step, least, most) * step
    codes = np.clip(np.rint(values * inverse_of(best)[:, None]), f32(least), f32(most))
    products, squares = (sum_lanes(terms[:, :16] + terms[:, 16:]) for terms in (codes * values, codes * codes))
    return np.where(squares > 0, products / squares, best)


def sum_lanes(lanes: F32) -> F32:
    for n in (8, 4, 2, 1):
        lanes = lanes[:, :n] + lanes[:, n : 2 * n]
    return lanes[:, 0]


def try_scales(values: F32, first: F32, step: F32, least: int, most: int) -> F32:
    scales = np.arange(16, dtype=f32) * step[:, None] + first[:, None]
    inverses = inverse_of(scales)
    total = np.zeros_like(scales)
    for column in values.T:
        codes = np.clip(np.rint(inverses * column[:, None]), f32(least), f32(most))
        rest = column[:, None] - codes * scales
        total += rest * rest
    return total.argmin(axis=1).astype(f32)


def fit_above(values: F32, most: int) -> tuple[F32, F32]:
    ceiling = f32(65504)
    low = np.minimum(values.min(axis=1), ceiling)
    inverse = inverse_of(values.max(axis=1) - low)
    scale, minimum = fit_line(values, low, inverse * f32(most - 1.2), inverse * f32(0.15), most, ceiling)
    for _ in range(2):
        inverse = inverse_of(scale)
        scale, minimum = fit_line(values, minimum, inverse * f32(0.96), inverse * f32(0.005), most, ceiling)
    return scale, minimum


def fit_line(values: F32, origin: F32, first: F32, step: F32, most: int, ceiling: f32) -> tuple[F32, F32]:
    inverses = np.arange(16, dtype=f32) * step[:, None] + first[:, None]
    c, cc, v, vc = (np.zeros_like(inverses) for _ in range(4))
    for column in values.T:
        value = (column - origin)[:, None]
        codes = np.clip(np.rint(inverses * value), f32(0), f32(most))
        c += codes
        cc += codes * codes
        v += value
        vc += codes * value
    n = f32(values.shape[1])
    spread = cc * n - c * c
    minimum = np.where(spread > 0, (cc * v - c * vc) / spread, f32(0))
    minimum = np.minimum(minimum, (ceiling - origin)[:, None])
    scale = np.where(cc > 0, (vc - minimum * c) / cc, f32(0))
    gain = scale * (vc + vc - scale * cc - (minimum + minimum) * c) + minimum * (v + v - minimum * n)
    best = gain.argmax(axis=1)
    rows = np.arange(len(values))
    return scale[rows, best], minimum[rows, best] + origin


def inverse_of(scale: F32) -> F32:
    return np.where(scale != 0, f32(1) / scale, f32(0))


def halves(values: F32) -> npt.NDArray[np.float16]:
    return np.clip(values, -65504, 65504).astype(np.float16)
