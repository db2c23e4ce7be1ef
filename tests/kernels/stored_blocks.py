"""Weight tensors as random source bytes, and what the blocks mean, decoded in NumPy apart from `modelc.layout`.

Source: the block structures and dequantization formulas of ggml (`ggml-common.h`), GGUF version 3.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DTYPES
from modelc.layout.codebook import CODEBOOK

Bytes: TypeAlias = npt.NDArray[np.uint8]
F32 = npt.NDArray[np.float32]

FLOAT_TYPES = ("f32", "f16", "bf16")
BLOCK_TYPES = tuple(name for name, dtype in DTYPES.items() if dtype.is_block)

# For each block type: byte of the scale, byte of the min (None without), and the min that centres the values, over d.
_SCALES: dict[str, tuple[int, int | None, float]] = {
    "q4_0": (0, None, 0.0),
    "q4_1": (0, 2, -7.5),
    "q5_0": (0, None, 0.0),
    "q5_1": (0, 2, -15.5),
    "q8_0": (0, None, 0.0),
    "q2_k": (80, 82, 1.5),
    "q3_k": (108, None, 0.0),
    "q4_k": (0, 2, 7.5),
    "q5_k": (0, 2, 15.5),
    "q6_k": (208, None, 0.0),
    "iq4_nl": (0, None, 0.0),
    "iq4_xs": (0, None, 0.0),
}


def random_weights(name: str, rows: int, cols: int, rng: np.random.Generator, spread: float = 0.02) -> Bytes:
    """Source bytes of a (rows, cols) tensor: random codes, finite scales of both signs, values of about `spread`."""
    dtype = DTYPES[name]
    if not dtype.is_block:
        values = (rng.standard_normal((rows, cols)) * spread).astype(np.float32)
        if name == "bf16":
            return (values.view(np.uint32) >> 16).astype(np.uint16).reshape(-1).view(np.uint8)
        return values.astype(dtype.numpy).reshape(-1).view(np.uint8)
    blocks = rng.integers(0, 256, (rows * cols // dtype.block_cols, dtype.block_bytes), np.uint8)
    scale_at, min_at, center = _SCALES[name]
    d = rng.uniform(0.5, 1.0, len(blocks)) * rng.choice([-1, 1], len(blocks))
    for unit in (1.0, spread):
        if unit != 1.0:
            d *= unit / decode(name, blocks.reshape(-1), rows, cols).values().std()
        _put_half(blocks, scale_at, d)
        if min_at is not None:
            _put_half(blocks, min_at, center * d)
    return blocks.reshape(-1)


def _put_half(blocks: Bytes, at: int, values: npt.NDArray[np.float64]) -> None:
    blocks[:, at : at + 2] = values.astype(np.float16)[:, None].view(np.uint8)


def decode_floats(name: str, plain: Bytes, rows: int, cols: int) -> F32:
    """The float32 values (rows, cols) of a float type."""
    if name == "bf16":
        return (plain.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(rows, cols)
    return plain.view(DTYPES[name].numpy).astype(np.float32).reshape(rows, cols)


@dataclass(frozen=True)
class Blocks:
    """What a block tensor holds: value = scale * code - minimum.

    Attributes:
        codes: int64 (rows, cols), signed: the zero point is subtracted already.
        scale: float32 (rows, cols / width).
        minimum: the same shape; None for types without.
        width: columns of a scale, 32 or 16.
    """

    codes: npt.NDArray[np.int64]
    scale: F32
    minimum: F32 | None
    width: int

    def values(self) -> F32:
        """The float32 values (rows, cols)."""
        values = np.repeat(self.scale, self.width, 1) * self.codes.astype(np.float32)
        return values if self.minimum is None else values - np.repeat(self.minimum, self.width, 1)


def decode(name: str, plain: Bytes, rows: int, cols: int) -> Blocks:
    """Decode the source bytes of a (rows, cols) block tensor."""
    dtype = DTYPES[name]
    blocks = plain.reshape(rows, cols // dtype.block_cols, dtype.block_bytes)
    codes, scale, minimum = (_decode_32 if dtype.block_cols == 32 else _decode_256)(name, blocks)
    width = cols // (scale[0].size)
    flat = None if minimum is None else minimum.reshape(rows, -1)
    return Blocks(codes.reshape(rows, cols).astype(np.int64), scale.reshape(rows, -1), flat, width)


_Parts: TypeAlias = tuple[npt.NDArray[np.int64], F32, F32 | None]


def _decode_32(name: str, blocks: Bytes) -> _Parts:
    d = _half(blocks, 0)
    if name == "q8_0":
        return _wide(blocks[..., 2:].view(np.int8)), d, None
    at = 4 if name.endswith("_1") else 2
    minimum = -_half(blocks, 2) if name.endswith("_1") else None
    nibbles = _low_then_high(blocks[..., -16:])
    if name == "iq4_nl":
        return np.array(CODEBOOK)[nibbles], d, None
    if name.startswith("q4"):
        return nibbles - (8 if minimum is None else 0), d, minimum
    fifth = np.unpackbits(blocks[..., at : at + 4], -1, bitorder="little").astype(np.int64)
    return (nibbles | fifth << 4) - (16 if minimum is None else 0), d, minimum


def _decode_256(name: str, blocks: Bytes) -> _Parts:
    if name in ("q4_k", "q5_k"):
        packed = _wide(blocks[..., 4:16])
        low, middle, high = packed[..., :4], packed[..., 4:8], packed[..., 8:]
        scales = np.concatenate([low & 63, (high & 15) | (low >> 6) << 4], -1)
        mins = np.concatenate([middle & 63, (high >> 4) | (middle >> 6) << 4], -1)
        codes = _low_then_high(blocks[..., -128:].reshape(*blocks.shape[:-1], 4, 32)).reshape(*blocks.shape[:-1], 256)
        if name == "q5_k":
            codes |= _bit_planes(blocks[..., 16:48], 8) << 4
        return codes, _half(blocks, 0) * scales.astype(np.float32), _half(blocks, 2) * mins.astype(np.float32)
    if name == "q2_k":
        factors = _wide(blocks[..., :16])
        scale = _half(blocks, 80) * (factors & 15).astype(np.float32)
        return _two_bit_planes(blocks[..., 16:80]), scale, _half(blocks, 82) * (factors >> 4).astype(np.float32)
    if name == "q3_k":
        packed = _wide(blocks[..., 96:108])
        i = np.arange(16)
        low, high = packed[..., i % 8] >> 4 * (i // 8) & 15, packed[..., 8 + i % 4] >> 2 * (i // 4) & 3
        codes = _two_bit_planes(blocks[..., 32:96]) | _bit_planes(blocks[..., :32], 8) << 2
        return codes - 4, _half(blocks, 108) * ((low | high << 4) - 32).astype(np.float32), None
    if name == "q6_k":
        quarter = blocks[..., :128].reshape(*blocks.shape[:-1], 2, 64)
        low = np.stack([quarter & 15, quarter >> 4], -2).reshape(*blocks.shape[:-1], 256)
        codes = _wide(low) | _two_bit_planes(blocks[..., 128:192]) << 4
        scale = _half(blocks, 208) * blocks[..., 192:208].view(np.int8).astype(np.float32)
        return codes - 32, scale, None
    assert name == "iq4_xs"
    high = _wide(blocks[..., 2:3]) | _wide(blocks[..., 3:4]) << 8
    b = np.arange(8)
    scales = (_wide(blocks[..., 4:8])[..., b // 2] >> 4 * (b % 2) & 15) | (high >> 2 * b & 3) << 4
    nibbles = _low_then_high(blocks[..., 8:].reshape(*blocks.shape[:-1], 8, 16))
    codes = np.array(CODEBOOK)[nibbles].reshape(*blocks.shape[:-1], 256)
    return codes, _half(blocks, 0) * (scales - 32).astype(np.float32), None


def _half(blocks: Bytes, at: int) -> F32:
    return np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16).astype(np.float32)  # (rows, blocks, 1)


def _wide(values: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    return values.astype(np.int64)


def _low_then_high(packed: Bytes) -> npt.NDArray[np.int64]:
    """All low nibbles of the last axis, then all high ones."""
    return _wide(np.concatenate([packed & 15, packed >> 4], -1))


def _bit_planes(packed: Bytes, n: int) -> npt.NDArray[np.int64]:
    """Bit b of byte i is that of column 32 b + i."""
    return _wide(np.stack([packed >> b & 1 for b in range(n)], -2)).reshape(*packed.shape[:-1], 32 * n)


def _two_bit_planes(packed: Bytes) -> npt.NDArray[np.int64]:
    """In each half of 128 columns, bits 2j and 2j + 1 of byte i are those of column 32 j + i."""
    halves = packed.reshape(*packed.shape[:-1], 2, 32)
    return _wide(np.stack([halves >> 2 * j & 3 for j in range(4)], -2)).reshape(*packed.shape[:-1], 256)
