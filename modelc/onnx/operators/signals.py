"""Signals: windows, Fourier transforms, mel filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.operator import Table, parametric
from modelc.onnx.operators.casts import element_type
from modelc.onnx.operators.matrices import product
from modelc.onnx.operators.shapes import whole_numbers
from modelc.onnx.values import Array


def _window(cosines: tuple[float, ...]) -> Any:
    """A window of a sum of cosines with alternating signs."""

    def run(call: Call, size: Array) -> Array:
        n = whole_numbers(call, size, "the size")[0]
        dtype = element_type(call, call.attribute("output_datatype", int, 1))
        call.room((n,), np.float64)
        span = n if call.attribute("periodic", int, 1) else n - 1
        angle = 2 * np.pi * np.arange(n) / max(span, 1)
        y = np.zeros(n)
        for i, factor in enumerate(cosines):
            y = y + (-1) ** i * factor * functions.cos(i * angle)
        return y.astype(dtype)

    return run


def dft(call: Call, x: Array, length: Array | None = None, axis: Array | None = None) -> Array:
    """The discrete Fourier transform along an axis; the last dimension has real and imaginary parts."""
    along = call.attribute("axis", int, 1) if call.opset < 20 else -2
    if axis is not None:
        along = whole_numbers(call, axis, "the axis")[0]
    n = None if length is None else whole_numbers(call, length, "the length")[0]
    return _dft(call, x, n, call.axis(along, x.ndim))


def _dft(call: Call, x: Array, length: int | None, axis: int) -> Array:
    inverse, onesided = bool(call.attribute("inverse", int, 0)), bool(call.attribute("onesided", int, 0))
    if x.ndim < 2 or x.shape[-1] not in (1, 2) or axis == x.ndim - 1:
        raise call.fail("not a signal", got=list(x.shape), expected="a last dimension of 1 or 2")
    wide = np.moveaxis(x.astype(np.float64), axis, -2)
    n = wide.shape[-2] if length is None else length
    if inverse and onesided:
        n = 2 * (wide.shape[-2] - 1) if length is None else length
        wide = _mirrored(wide, n)
    call.room((n, n), np.float64)
    kept = min(wide.shape[-2], n)
    real = wide[..., :kept, 0]
    imaginary = wide[..., :kept, 1] if wide.shape[-1] == 2 else np.zeros_like(real)
    turns = np.outer(np.arange(kept), np.arange(n)) % max(n, 1) / max(n, 1)
    cosine, sine = functions.cos(2 * np.pi * turns), functions.sin(2 * np.pi * turns)
    sine = sine if inverse else -sine
    parts = (
        product(call, real, cosine) - product(call, imaginary, sine),
        product(call, real, sine) + product(call, imaginary, cosine),
    )
    y = np.stack(parts, axis=-1)
    if inverse:
        y = y / n
        y = y[..., :1] if onesided else y
    elif onesided:
        y = y[..., : n // 2 + 1, :]
    return np.moveaxis(y, -2, axis).astype(x.dtype)


def _mirrored(half: Array, n: int) -> Array:
    """The whole spectrum of a real signal from its first half."""
    head = half[..., : n // 2 + 1, :]
    tail = head[..., 1 : (n + 1) // 2, :][..., ::-1, :] * np.array([1.0, -1.0])[: head.shape[-1]]
    return np.concatenate([head, tail], axis=-2)


def stft(call: Call, signal: Array, step: Array, window: Array | None = None, length: Array | None = None) -> Array:
    """Transforms of frames that overlap."""
    hop = whole_numbers(call, step, "the step")[0]
    if length is not None:
        n = whole_numbers(call, length, "the length")[0]
    elif window is not None:
        n = len(window)
    else:
        raise call.fail("neither a window nor a frame length")
    samples = signal[..., None] if signal.ndim == 2 else signal
    count = (samples.shape[1] - n) // hop + 1 if hop > 0 else 0
    if hop < 1 or n < 1 or count < 1:
        raise call.fail("the frames do not fit", got=f"length {n}, step {hop}", expected=f"{samples.shape[1]} samples")
    call.room((samples.shape[0], count, n, 2), np.float64)
    frames = samples[:, np.arange(count)[:, None] * hop + np.arange(n)]
    if window is not None:
        frames = frames * window[:, None]
    onesided = call.attribute("onesided", int, 1)
    return _frames_transformed(call, frames, bool(onesided)).astype(signal.dtype)


def _frames_transformed(call: Call, frames: Array, onesided: bool) -> Array:
    n = frames.shape[2]
    turns = np.outer(np.arange(n), np.arange(n // 2 + 1 if onesided else n)) % n / n
    cosine, sine = functions.cos(2 * np.pi * turns), -functions.sin(2 * np.pi * turns)
    real = frames[..., 0].astype(np.float64)
    a, b = product(call, real, cosine), product(call, real, sine)
    if frames.shape[-1] == 2:
        imaginary = frames[..., 1].astype(np.float64)
        a, b = a - product(call, imaginary, sine), b + product(call, imaginary, cosine)
    return np.stack([a, b], axis=-1)


def mel_weights(call: Call, bins: Array, length: Array, rate: Array, low: Array, high: Array) -> Array:
    """Triangular filters with centres at equal distances on the mel scale, (spectrum, bins)."""
    n_bins, n_fft = int(bins.reshape(())), int(length.reshape(()))
    dtype = element_type(call, call.attribute("output_datatype", int, 1))
    n_spectrum = n_fft // 2 + 1
    call.room((n_spectrum, max(n_bins, 0)), np.float64)
    ends = np.array([float(low.reshape(())), float(high.reshape(()))])
    mels = 2595.0 / math.log(10) * functions.log(1.0 + ends / 700.0)
    points = np.arange(n_bins + 2) * (mels[1] - mels[0]) / (n_bins + 2) + mels[0]
    hertz = 700.0 * (functions.exp(points * math.log(10) / 2595.0) - 1.0)
    edges = ((n_fft + 1) * hertz / float(rate.reshape(()))).astype(np.int64)
    y = np.zeros((n_spectrum, n_bins))
    place = np.arange(n_spectrum)
    for i in range(n_bins):
        left, centre, right = edges[i : i + 3]
        rising = (place >= left) & (place <= centre)
        falling = (place >= centre) & (place < right)
        y[:, i] = np.where(rising, (place - left) / max(centre - left, 1), y[:, i])
        y[:, i] = np.where(falling, (right - place) / max(right - centre, 1), y[:, i])
        if left == centre and 0 <= centre < n_spectrum:
            y[centre, i] = 1.0
    return y.astype(dtype)


SIGNALS: Table = {
    "BlackmanWindow": parametric(_window((0.42, 0.5, 0.08)), 0),
    "DFT": parametric(dft),
    "HammingWindow": parametric(_window((25 / 46, 21 / 46)), 0),
    "HannWindow": parametric(_window((0.5, 0.5)), 0),
    "MelWeightMatrix": parametric(mel_weights, 0),
    "STFT": parametric(stft),
}
