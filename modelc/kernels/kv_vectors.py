"""Key and value vectors of a head into their places in a page, and back.

**int8.** With m = max |x|: the scale is m / 127, a code x * (127 / m) rounded to nearest even. x is taken within
+-LARGEST, and a vector that is below SMALLEST everywhere has codes of 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.elementary import ROUND, ROUND_BITS
from modelc.kernels.env import CHUNK
from modelc.kernels.jit import inlined, kernel
from modelc.kernels.kv_pages import ELEMENT_BYTES, Form, forms
from modelc.kernels.pointers import f32_ptr, i8_ptr, i16_ptr, i32_ptr, u8_ptr
from modelc.kernels.simd import (
    bits_of,
    from_bits,
    load_f16,
    load_f32,
    load_i8,
    max_lanes,
    maximum,
    minimum,
    splat_f32,
    splat_i32,
    splat_zero,
    store_f16,
    store_f32,
    store_i8,
    to_f32,
)

f32 = np.float32
i32 = np.int32

LARGEST_HALF = f32(65504.0)
LARGEST = f32(1e38)  # neither a rotation nor 127 scales overflow
SMALLEST = f32(1e-30)  # 127 / m does not overflow


@inlined
def within(x, limit):
    """x within +-limit: an infinity would reach rows that must not see it, as 0 times infinity."""
    return minimum(maximum(x, splat_f32(-limit)), splat_f32(limit))


@inlined
def load_codes(p, at):
    """16 int8 from byte `at` on, as floats."""
    return to_f32(load_i8(p, at))


@inlined
def store_half(p, at, x, inverse):
    """16 values as float16 from byte `at` on."""
    store_f16(p, at, within(x, LARGEST_HALF))


@inlined
def store_float(p, at, x, inverse):
    """16 values as float32 from byte `at` on."""
    store_f32(p, at, within(x, LARGEST))


@inlined
def store_codes(p, at, x, inverse):
    """16 values times `inverse` as int8 from byte `at` on."""
    store_i8(p, at, bits_of(within(x, LARGEST) * inverse + splat_f32(ROUND)) - splat_i32(ROUND_BITS))


LOADS: dict[str, Any] = {"f16": load_f16, "f32": load_f32, "int8": load_codes}
STORES: dict[str, Any] = {"f16": store_half, "f32": store_float, "int8": store_codes}
POINTERS: dict[str, Any] = {"f16": i16_ptr, "f32": i32_ptr, "int8": i8_ptr}  # to move an element as it is


def make_store_key(head_dim: int, kv: str) -> Any:
    """store_key(head, at, x, i, work): float32 x[i ... i + head_dim] becomes key `at` of a page, in every form.

    `head` is the address of the head's part of the page, `work` that of 64 bytes to work in.
    """
    return _in_every_form([_store_key(head_dim, form) for form in forms(head_dim, kv)])


def make_store_value(head_dim: int, kv: str) -> Any:
    """store_value(head, at, x, i, work): as `store_key`, for values."""
    return _in_every_form([_store_value(head_dim, form) for form in forms(head_dim, kv)])


def make_load_key(head_dim: int, kv: str) -> Any:
    """load_key(head, at, x, i, work): the reverse of `store_key`, from the most exact form."""
    form = forms(head_dim, kv)[-1]
    keys_at, scales_at, size = form.keys, form.key_scales, ELEMENT_BYTES[form.dtype]
    load, pointer, coded = LOADS[form.dtype], POINTERS[form.dtype], form.dtype == "int8"

    @kernel
    def load_key(head, at, x, i, work):
        keys = pointer(head + keys_at + key_offset(at, head_dim, size))
        column = pointer(work)
        scale = splat_f32(f32_ptr(head + scales_at)[at]) if coded else splat_f32(f32(1.0))
        for c in range(0, head_dim, 16):
            for j in range(16):
                column[j] = keys[(c + j) * CHUNK]
            store_f32(x, i + c, load(u8_ptr(work), 0) * scale)

    return load_key


def make_copy_value(head_dim: int, kv: str) -> Any:
    """copy_value(source, at, target, to): value `at` of one page becomes value `to` of another, in every form."""
    first, *others = [_copy_value(head_dim, form) for form in forms(head_dim, kv)]
    if not others:
        return first
    second = others[0]

    @kernel
    def copy_value(source, at, target, to):
        first(source, at, target, to)
        second(source, at, target, to)

    return copy_value


@inlined
def key_offset(at, head_dim, size):
    """Byte offset of the first element of key `at`; its columns are CHUNK elements apart."""
    return (at // CHUNK * head_dim * CHUNK + at % CHUNK) * size


def _in_every_form(stores: list[Any]) -> Any:
    first, *others = stores
    if not others:
        return first
    second = others[0]

    @kernel
    def store(head, at, x, i, work):
        first(head, at, x, i, work)
        second(head, at, x, i, work)

    return store


def _make_take_scale(head_dim: int, form: Form) -> Any:
    """take_scale(x, i, scales, at): writes the scale of a vector; returns its inverse in all lanes (1 for floats)."""
    coded = form.dtype == "int8"

    @kernel
    def take_scale(x, i, scales, at):
        if not coded:
            return splat_f32(f32(1.0))
        magnitude = splat_i32(i32(0x7FFFFFFF))
        lanes = splat_zero()
        for c in range(0, head_dim, 16):
            lanes = maximum(lanes, from_bits(bits_of(within(load_f32(x, i + c), LARGEST)) & magnitude))
        largest = max_lanes(lanes)
        f32_ptr(scales)[at] = largest / f32(127.0)
        return splat_f32(f32(127.0) / largest if largest >= SMALLEST else f32(0.0))

    return take_scale


def _store_key(head_dim: int, form: Form) -> Any:
    keys_at, scales_at, size = form.keys, form.key_scales, ELEMENT_BYTES[form.dtype]
    store, pointer = STORES[form.dtype], POINTERS[form.dtype]
    take_scale = _make_take_scale(head_dim, form)

    @kernel
    def store_key(head, at, x, i, work):
        keys = pointer(head + keys_at + key_offset(at, head_dim, size))
        column = pointer(work)
        inverse = take_scale(x, i, head + scales_at, at)
        for c in range(0, head_dim, 16):
            store(u8_ptr(work), 0, load_f32(x, i + c), inverse)
            for j in range(16):
                keys[(c + j) * CHUNK] = column[j]

    return store_key


def _store_value(head_dim: int, form: Form) -> Any:
    values_at, scales_at, size = form.values, form.value_scales, ELEMENT_BYTES[form.dtype]
    store = STORES[form.dtype]
    take_scale = _make_take_scale(head_dim, form)

    @kernel
    def store_value(head, at, x, i, work):
        values = u8_ptr(head + values_at + at * head_dim * size)
        inverse = take_scale(x, i, head + scales_at, at)
        for c in range(0, head_dim, 16):
            store(values, c * size, load_f32(x, i + c), inverse)

    return store_value


def _copy_value(head_dim: int, form: Form) -> Any:
    values_at, scales_at, row_bytes = form.values, form.value_scales, head_dim * ELEMENT_BYTES[form.dtype]
    coded = form.dtype == "int8"

    @kernel
    def copy_value(source, at, target, to):
        old = u8_ptr(source + values_at + at * row_bytes)
        new = u8_ptr(target + values_at + to * row_bytes)
        for i in range(0, row_bytes, 16):
            store_i8(new, i, load_i8(old, i))
        if coded:
            f32_ptr(target + scales_at)[to] = f32_ptr(source + scales_at)[at]

    return copy_value
