"""Look-up of token embeddings in a weight tensor that is stored 16 rows side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.env import FLOATS, N_ROWS, POSITIONS, SCRATCH, SCRATCH_FLOATS, TOKENS, WEIGHTS
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_of_bits, f32_ptr, i64_ptr, u8_ptr
from modelc.kernels.simd import store_bytes, store_f32, tile_f32
from modelc.kernels.split import private_row, split_rows
from modelc.kernels.weights import BLOCK_FORMATS, FLOAT_FORMATS

f32 = np.float32
i32 = np.int32


def make_embed(dtype: str, index: str = "token") -> Any:
    """Opcode: x[t] = W[token[t]] * scale, f32; with index `position`: x[t] += W[position[t]] * scale, `first`: W[0].

    I: 2 weight byte offset, 3 columns, 4 x, 5 row stride of x, 6 scale (bits). A value is (code - zero) * s - min, in
        that order.
    """
    return _make_float_embed(dtype, index) if dtype in FLOAT_FORMATS else _make_block_embed(dtype, index)


def _make_float_embed(dtype: str, index: str) -> Any:
    load, size = FLOAT_FORMATS[dtype]
    added, numbers = index != "token", POSITIONS if index == "position" else TOKENS
    every = index != "first"

    @kernel
    def embed(I, E, tid, nth):
        w = u8_ptr(E[WEIGHTS])
        x = f32_ptr(E[FLOATS])
        rows = i64_ptr(E[numbers])
        column = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)
        cols = I[3]
        scale = f32_of_bits(I[6])
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        for t in range(start, stop):
            row = rows[t] if every else 0
            lane = row % 16
            p = I[2] + row // 16 * cols * size
            out = I[4] + (t + private_row(E, tid)) * I[5]
            for k in range(cols):
                store_f32(column, 0, load(w, p + k * size))
                value = column[lane] * scale
                x[out + k] = x[out + k] + value if added else value

    return embed


def _make_block_embed(dtype: str, index: str) -> Any:
    form = BLOCK_FORMATS[dtype]
    added, numbers = index != "token", POSITIONS if index == "position" else TOKENS
    every = index != "first"
    word, scales, blocks = form.word, form.scales, form.blocks
    header, block_bytes, record_bytes = form.header_bytes, form.block_bytes, form.record_bytes
    zero, has_min, halves = form.zero, form.has_min, form.halves

    @kernel
    def embed(I, E, tid, nth):
        w = u8_ptr(E[WEIGHTS])
        x = f32_ptr(E[FLOATS])
        rows = i64_ptr(E[numbers])
        scratch = E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4
        codes = u8_ptr(scratch)  # (8 words, 16 lanes, 4)
        factors = f32_ptr(scratch + 512)  # (4, 16 lanes)
        s = tile_f32(4)
        nb = I[3] // 32
        scale = f32_of_bits(I[6])
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        for t in range(start, stop):
            row = rows[t] if every else 0
            lane = row % 16
            group = I[2] + row // 16 * (nb // blocks) * record_bytes
            out = I[4] + (t + private_row(E, tid)) * I[5]
            for b in range(nb):
                record = group + b // blocks * record_bytes
                scales(w, record, b % blocks, s, 0)
                for j in range(8):
                    store_bytes(codes, 64 * j, word(w, record + header + b % blocks * block_bytes, j))
                for j in range(4):
                    store_f32(factors, 16 * j, s[j])
                for c in range(32):
                    half = c // 16 if halves else 0
                    code = f32(i32(codes[64 * (c // 4) + 4 * lane + c % 4]) - i32(zero))
                    value = code * factors[16 * half + lane]
                    if has_min:
                        value = value - factors[16 * ((2 if halves else 1) + half) + lane]
                    value = value * scale
                    x[out + 32 * b + c] = x[out + 32 * b + c] + value if added else value

    return embed
