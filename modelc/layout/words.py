"""Integers at any byte offset of a buffer, as compiled loops read and write them.

Offsets are in bytes and need no alignment. Nothing is checked: `convert` compares every size before a loop runs.
Loads give int64 and stores take the low bits of one, because Numba widens all integer arithmetic to int64 anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from llvmlite import ir
from numba.core import types

from modelc.layout.loop_compiler import inlined, instruction

Buffer: TypeAlias = types.CPointer  # to bytes; the type of BUFFER in `parallel`
Words: TypeAlias = tuple[int, int, int, int, int, int, int, int]  # of four columns each, the first in the lowest byte

I32 = ir.IntType(32)
I64 = ir.IntType(64)
F32 = ir.FloatType()


def byte_pointer(builder: ir.IRBuilder, buffer: ir.Value, at: ir.Value, to: ir.Type) -> ir.Value:
    """Byte `at` of `buffer`, as a pointer to `to`."""
    return builder.bitcast(builder.gep(buffer, [at]), to.as_pointer())


def _loader(bits: int, signed: bool = False) -> Callable[[Buffer, int], int]:
    llvm = ir.IntType(bits)

    @instruction
    def load(typing_context: Any, buffer: Any, at: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            value = builder.load(byte_pointer(builder, args[0], args[1], llvm), align=1)
            return builder.sext(value, I64) if signed else builder.zext(value, I64)

        return types.int64(buffer, types.int64), codegen

    return cast(Callable[[Buffer, int], int], load)


def _storer(bits: int) -> Callable[[Buffer, int, int], None]:
    llvm = ir.IntType(bits)

    @instruction
    def store(typing_context: Any, buffer: Any, at: Any, value: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            value = builder.trunc(args[2], llvm)
            builder.store(value, byte_pointer(builder, args[0], args[1], llvm), align=1)
            return context.get_dummy_value()

        return types.void(buffer, types.int64, types.int64), codegen

    return cast(Callable[[Buffer, int, int], None], store)


load_u8 = _loader(8)
load_i8 = _loader(8, signed=True)
load_u16 = _loader(16)
load_u32 = _loader(32)
store_u8 = _storer(8)
store_u16 = _storer(16)
store_u32 = _storer(32)


@inlined
def or_u32(buffer: Buffer, at: int, value: int) -> None:
    """Sets the bits of `value` in the 32-bit word at byte `at`, and keeps the others."""
    store_u32(buffer, at, load_u32(buffer, at) | value)


@inlined
def or_u8(buffer: Buffer, at: int, value: int) -> None:
    """Sets the bits of `value` in byte `at`, and keeps the others."""
    store_u8(buffer, at, load_u8(buffer, at) | value)
