"""Quantized activations in NumPy: the numbers of each block, and the bytes that kernels read."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from modelc.kernels.env import PANEL, RECORD_BYTES
from tests.kernels.float_math import F32, ROUND, ROUND_BITS

f32 = np.float32
I32 = npt.NDArray[np.int32]

Q_MAX = {"a8": f32(127), "a16": f32(32639)}


@dataclass(frozen=True)
class Quantized:
    """Activations in blocks of 32.

    Attributes:
        activation: `a8` or `a16`.
        q: int32 (tokens, blocks, 32).
        d: float32 (tokens, blocks).
    """

    activation: str
    q: I32
    d: F32

    @property
    def first(self) -> I32:
        """Sum of a block's first 16 q."""
        return self.q[..., :16].sum(-1, dtype=np.int32)

    @property
    def total(self) -> I32:
        """Sum of a block's 32 q."""
        return self.q.sum(-1, dtype=np.int32)


def quantize(x: F32, activation: str) -> Quantized:
    """x (tokens, cols) in float32 to blocks of 32."""
    blocks = x.reshape(len(x), -1, 32)
    largest = np.abs(blocks).max(-1)
    q_max = Q_MAX[activation]
    inverse = np.divide(q_max, largest, out=np.zeros_like(largest), where=largest > 0)
    q = (blocks * inverse[..., None] + ROUND).view(np.int32) - ROUND_BITS
    return Quantized(activation, q, largest / q_max)


def records(quantized: Quantized) -> npt.NDArray[np.uint8]:
    """The bytes (panels, blocks, 8, record): 8 rows interleaved by block; rows that are not there are full of 0xAA."""
    n, n_blocks = quantized.d.shape
    out = np.full(((n + PANEL - 1) // PANEL, n_blocks, PANEL, RECORD_BYTES[quantized.activation]), 0xAA, np.uint8)
    if quantized.activation == "a8":
        planes = [quantized.q.astype(np.int8).view(np.uint8)]
    else:
        low = quantized.q.astype(np.int8)  # the low byte, signed; the high one takes what is left
        planes = [((quantized.q - low) >> 8).astype(np.int8).view(np.uint8), low.view(np.uint8)]
    numbers = (quantized.d, quantized.d * quantized.total.astype(f32), quantized.first, quantized.total)
    parts = [*planes, *(v[..., None].view(np.uint8) for v in numbers)]
    whole = np.concatenate(parts, -1)  # (tokens, blocks, record)
    for t in range(n):
        out[t // PANEL, :, t % PANEL] = whole[t]
    return out
