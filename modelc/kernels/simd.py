"""SIMD vectors as first-class Numba values: `F32x16` (16 floats) and `I32x16` (16 int32, also 64 raw bytes).

All float operations are IEEE 754 without fast-math, and a fused multiply-add happens only where `fma` is written.
LLVM may cut a 512-bit value into 256- or 128-bit registers, but never changes a value: the bits are the same on every
CPU. Where an instruction set offers a shortcut (VNNI dot products, F16C), the version without it gives the same
integers or floats.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.errors import RequireLiteralValue
from numba.extending import overload, register_model

from modelc.kernels.half_floats import bfloat_to_f32, f32_to_half, half_to_f32
from modelc.kernels.jit import intrinsic
from modelc.kernels.llvm_vectors import F32, HALVES, I8, I32, LANES, VF, VI, call, constant, part, splat
from modelc.kernels.pointers import element_ptr
from modelc.kernels.soft_fma import soft_fma
from modelc.kernels.target_features import choose_first, once


class Vector(types.Type):
    """Numba type of a 16-lane vector; `llvm` is its LLVM type."""

    def __init__(self, name: str, llvm: ir.Type) -> None:
        self.llvm = llvm
        super().__init__(name=name)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.llvm)


F32x16 = Vector("F32x16", VF)
I32x16 = Vector("I32x16", VI)


# ------------------------------------------------------------------------------------------------ loads and stores

Convert = Callable[[Any, ir.IRBuilder, ir.Value], ir.Value]


def _make_load(memory: ir.Type, result: Vector, convert: Convert, doc: str) -> Any:
    @intrinsic
    def load(typing_context: Any, pointer: Any, index: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            value = builder.load(element_ptr(builder, signature.args[0], args[0], args[1], memory), typ=memory)
            value.align = 1
            return convert(context, builder, value)

        return result(pointer, types.intp), codegen

    load.__doc__ = doc
    return load


load_f32 = _make_load(VF, F32x16, lambda c, b, v: v, "16 float32 from element `index` on.")
load_f16 = _make_load(HALVES, F32x16, half_to_f32, "16 float16 from element `index` on, exact.")
load_bf16 = _make_load(HALVES, F32x16, bfloat_to_f32, "16 bfloat16 from element `index` on.")
load_bytes = _make_load(VI, I32x16, lambda c, b, v: v, "64 raw bytes from element `index` on.")
load_u8 = _make_load(ir.VectorType(I8, LANES), I32x16, lambda c, b, v: b.zext(v, VI), "16 uint8, widened.")
load_i8 = _make_load(ir.VectorType(I8, LANES), I32x16, lambda c, b, v: b.sext(v, VI), "16 int8, widened.")
splat_bytes4 = _make_load(I32, I32x16, lambda c, b, v: splat(b, v), "The 4 bytes at `index`, in every lane.")
splat_at = _make_load(F32, F32x16, lambda c, b, v: splat(b, v), "The float32 at `index`, in every lane.")


def _make_store(source: Vector, convert: Convert, doc: str) -> Any:
    @intrinsic
    def store(typing_context: Any, pointer: Any, index: Any, value: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            converted = convert(context, builder, args[2])
            target = element_ptr(builder, signature.args[0], args[0], args[1], converted.type)
            builder.store(converted, target).align = 1
            return context.get_dummy_value()

        return types.void(pointer, types.intp, source), codegen

    store.__doc__ = doc
    return store


store_f32 = _make_store(F32x16, lambda c, b, v: v, "Write 16 float32.")
store_f16 = _make_store(F32x16, f32_to_half, "Write 16 values as float16, rounded to nearest even.")
store_bytes = _make_store(I32x16, lambda c, b, v: v, "Write 64 raw bytes.")
store_i8 = _make_store(
    I32x16, lambda c, b, v: b.trunc(v, ir.VectorType(I8, LANES)), "Write the low byte of each lane, 16 bytes."
)


# ---------------------------------------------------------------------------------------- constants, conversions


@intrinsic
def splat_f32(typing_context: Any, scalar: Any) -> Any:
    """The float32 `scalar` in every lane."""
    return F32x16(types.float32), lambda c, b, s, args: splat(b, args[0])


@intrinsic
def splat_zero(typing_context: Any) -> Any:
    """0.0 in every lane."""
    return F32x16(), lambda c, b, s, args: constant(0.0, VF)


@intrinsic
def splat_i32(typing_context: Any, scalar: Any) -> Any:
    """The int32 `scalar` in every lane."""
    return I32x16(types.int32), lambda c, b, s, args: splat(b, args[0])


@intrinsic
def to_f32(typing_context: Any, value: Any) -> Any:
    """int32 -> float32 by value, round to nearest even."""
    return F32x16(I32x16), lambda c, b, s, args: b.sitofp(args[0], VF)


@intrinsic
def bits_of(typing_context: Any, value: Any) -> Any:
    """The float lanes' bits as int32."""
    return I32x16(F32x16), lambda c, b, s, args: b.bitcast(args[0], VI)


@intrinsic
def from_bits(typing_context: Any, value: Any) -> Any:
    """The floats whose bits are the int32 lanes."""
    return F32x16(I32x16), lambda c, b, s, args: b.bitcast(args[0], VF)


# ------------------------------------------------------------------------------------------------------ arithmetic


@intrinsic
def fma(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    """The fused x * y + z, rounded once, on every processor."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def define(body: ir.IRBuilder, *args: ir.Value) -> ir.Value:
            def instruction() -> ir.Value:
                return call(body, "llvm.fma.v16f32", VF, list(args))

            def emulation() -> ir.Value:
                return once(body, "modelc.soft_fma", VF, list(args), soft_fma, inline=False)

            return choose_first(context, body, [("fma", instruction), ("neon", instruction)], emulation)

        return once(builder, "modelc.fma", VF, list(args), define)

    return F32x16(F32x16, F32x16, F32x16), codegen


@intrinsic
def maximum(typing_context: Any, x: Any, y: Any) -> Any:
    """Lane by lane x where x > y, else y."""
    return F32x16(F32x16, F32x16), lambda c, b, s, a: b.select(b.fcmp_ordered(">", a[0], a[1]), a[0], a[1])


@intrinsic
def minimum(typing_context: Any, x: Any, y: Any) -> Any:
    """Lane by lane x where x < y, else y."""
    return F32x16(F32x16, F32x16), lambda c, b, s, a: b.select(b.fcmp_ordered("<", a[0], a[1]), a[0], a[1])


@intrinsic
def zero_below(typing_context: Any, x: Any, limit: Any, value: Any) -> Any:
    """Lane by lane 0 where x < limit, else `value`."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), constant(0.0, VF), args[2])

    return F32x16(F32x16, F32x16, F32x16), codegen


def _make_shuffle(indices: list[int], doc: str) -> Any:
    """A choice of lanes of x (0 to 15) and y (16 to 31), for floats and for ints."""

    @intrinsic
    def shuffle(typing_context: Any, x: Any, y: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            return builder.shuffle_vector(args[0], args[1], ir.Constant(ir.VectorType(I32, LANES), indices))

        return x(x, x), codegen

    shuffle.__doc__ = doc
    return shuffle


low_halves = _make_shuffle([*range(8), *range(16, 24)], "Lanes 0 to 7 of x, then of y.")
high_halves = _make_shuffle([*range(8, 16), *range(24, 32)], "Lanes 8 to 15 of x, then of y.")
even_quarters = _make_shuffle([i for q in range(0, 8, 2) for i in range(4 * q, 4 * q + 4)], "Quarters 0 and 2 of x, y.")
odd_quarters = _make_shuffle([i for q in range(1, 8, 2) for i in range(4 * q, 4 * q + 4)], "Quarters 1 and 3 of x, y.")
swap_pairs_of = _make_shuffle([i ^ 1 for i in range(LANES)], "Lane i ^ 1 of x.")
swap_twos_of = _make_shuffle([i ^ 2 for i in range(LANES)], "Lane i ^ 2 of x.")
swap_fours_of = _make_shuffle([i ^ 4 for i in range(LANES)], "Lane i ^ 4 of x.")
splat_first_half = _make_shuffle([0] * LANES, "Lane 0 of x in every lane.")
splat_second_half = _make_shuffle([8] * LANES, "Lane 8 of x in every lane.")


@intrinsic
def lane(typing_context: Any, value: Any, index: Any) -> Any:
    """The number in lane `index`."""
    scalar = types.float32 if value is F32x16 else types.int32
    return scalar(value, types.intp), lambda c, b, s, args: b.extract_element(args[0], args[1])


def _binary(op: Any, float_method: str | None, int_method: str | None) -> None:
    def make(method: str | None, vector: Vector) -> Any:
        if method is None:
            return None

        @intrinsic
        def binary(typing_context: Any, x: Any, y: Any) -> Any:
            return vector(vector, vector), lambda c, b, s, args: getattr(b, method)(args[0], args[1])

        return binary

    floats, ints = make(float_method, F32x16), make(int_method, I32x16)

    @overload(op)
    def overloaded(x, y):
        if x is F32x16 and y is F32x16 and floats is not None:
            return lambda x, y: floats(x, y)
        if x is I32x16 and y is I32x16 and ints is not None:
            return lambda x, y: ints(x, y)
        return None


_binary(operator.add, "fadd", "add")
_binary(operator.sub, "fsub", "sub")
_binary(operator.mul, "fmul", "mul")
_binary(operator.truediv, "fdiv", None)
_binary(operator.and_, None, "and_")
_binary(operator.or_, None, "or_")
_binary(operator.lshift, None, "shl")
_binary(operator.rshift, None, "lshr")  # a logical shift: bytes of a word, never a signed number


# ------------------------------------------------------------------------------------------------------ reductions


def _make_reduction(vector: Vector, scalar: types.Type, combine: Any, doc: str) -> Any:
    @intrinsic
    def reduce(typing_context: Any, value: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            value = args[0]
            for n in (8, 4, 2, 1):  # the fixed tree: lane i with lane i + n
                value = combine(builder, part(builder, value, 0, n), part(builder, value, n, n))
            return builder.extract_element(value, ir.Constant(I32, 0))

        return scalar(vector), codegen

    reduce.__doc__ = doc
    return reduce


sum_lanes = _make_reduction(F32x16, types.float32, lambda b, x, y: b.fadd(x, y), "Sum of 16 lanes, fixed tree 8-4-2-1.")
sum_lanes_i32 = _make_reduction(I32x16, types.int32, lambda b, x, y: b.add(x, y), "Exact sum of 16 int32 lanes.")
max_lanes = _make_reduction(
    F32x16, types.float32, lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y), "Largest of 16 lanes."
)


# -------------------------------------------------------------------------------------------------- register tiles


class Tile(types.Type):
    """A mutable local array of `count` vectors; lives in registers once loops with constant bounds are unrolled."""

    def __init__(self, vector: Vector, count: int) -> None:
        self.vector = vector
        super().__init__(name=f"Tile({vector},{count})")


@register_model(Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, manager: Any, tile: Tile) -> None:
        super().__init__(manager, tile, tile.vector.llvm.as_pointer())


def _make_tile(vector: Vector) -> Any:
    @intrinsic
    def tile(typing_context: Any, count: Any) -> Any:
        if not isinstance(count, types.IntegerLiteral):
            raise RequireLiteralValue("a tile's size must be a literal")
        n = count.literal_value

        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            slots = cgutils.alloca_once(builder, ir.ArrayType(vector.llvm, n))
            return builder.bitcast(slots, vector.llvm.as_pointer())

        return Tile(vector, n)(count), codegen

    return tile


tile_f32 = _make_tile(F32x16)
tile_i32 = _make_tile(I32x16)


@intrinsic
def _tile_get(typing_context: Any, tile: Any, index: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        llvm = signature.args[0].vector.llvm
        return builder.load(builder.gep(args[0], [args[1]], source_etype=llvm), typ=llvm)

    return tile.vector(tile, types.intp), codegen


@intrinsic
def _tile_set(typing_context: Any, tile: Any, index: Any, value: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        llvm = signature.args[0].vector.llvm
        builder.store(args[2], builder.gep(args[0], [args[1]], source_etype=llvm))
        return context.get_dummy_value()

    return types.void(tile, types.intp, tile.vector), codegen


@overload(operator.getitem)
def _getitem(tile, index):
    return (lambda tile, index: _tile_get(tile, index)) if isinstance(tile, Tile) else None


@overload(operator.setitem)
def _setitem(tile, index, value):
    return (lambda tile, index, value: _tile_set(tile, index, value)) if isinstance(tile, Tile) else None


# -------------------------------------------------------------------------------------------------------- prefetch


@intrinsic
def prefetch(typing_context: Any, pointer: Any, index: Any) -> Any:
    """Hint: fetch the cache line of element `index`. May run past the end of a buffer: it never faults."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        address = element_ptr(builder, signature.args[0], args[0], args[1], I8)
        hint = [ir.Constant(I32, 0), ir.Constant(I32, 3), ir.Constant(I32, 1)]  # a read, keep in every level, data
        call(builder, "llvm.prefetch.p0", ir.VoidType(), [address, *hint])
        return context.get_dummy_value()

    return types.void(pointer, types.intp), codegen
