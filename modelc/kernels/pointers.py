"""Typed raw pointers for kernels: no array struct, no reference count, no bounds.

A pointer is made from an int64 address (`f32_ptr(address)`); `p[i]` reads and writes an element, `offset(p, i)` moves
on by elements. Bounds are the caller's: whoever builds a Program checks every offset before it runs.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.extending import overload, register_model

from modelc.kernels.jit import intrinsic

__all__ = [
    "I64_PTR",
    "Pointer",
    "element_ptr",
    "f32_of_bits",
    "f32_ptr",
    "f64_ptr",
    "i8_ptr",
    "i16_ptr",
    "i32_ptr",
    "i64_ptr",
    "offset",
    "u8_ptr",
]

I8 = ir.IntType(8)
I32 = ir.IntType(32)


class Pointer(types.Type):
    """Numba type of a pointer to `element`; `llvm` is the element's LLVM type."""

    def __init__(self, element: types.Type, llvm: ir.Type) -> None:
        self.element = element
        self.llvm = llvm
        super().__init__(name=f"Pointer({element})")


@register_model(Pointer)
class _PointerModel(models.PrimitiveModel):
    def __init__(self, manager: Any, pointer: Pointer) -> None:
        super().__init__(manager, pointer, pointer.llvm.as_pointer())


def _pointer_from_address(element: types.Type, llvm: ir.Type) -> tuple[Pointer, Any]:
    pointer = Pointer(element, llvm)

    @intrinsic
    def from_address(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            return builder.inttoptr(args[0], llvm.as_pointer())

        return pointer(types.int64), codegen

    return pointer, from_address


F64_PTR, f64_ptr = _pointer_from_address(types.float64, ir.DoubleType())
F32_PTR, f32_ptr = _pointer_from_address(types.float32, ir.FloatType())
I32_PTR, i32_ptr = _pointer_from_address(types.int32, I32)
I16_PTR, i16_ptr = _pointer_from_address(types.int16, ir.IntType(16))
I8_PTR, i8_ptr = _pointer_from_address(types.int8, I8)
U8_PTR, u8_ptr = _pointer_from_address(types.uint8, I8)
I64_PTR, i64_ptr = _pointer_from_address(types.int64, ir.IntType(64))


@intrinsic
def offset(typing_context: Any, pointer: Any, index: Any) -> Any:
    """`pointer` moved on by `index` elements."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.gep(args[0], [args[1]], source_etype=signature.args[0].llvm)

    return pointer(pointer, types.intp), codegen


@intrinsic
def _get(typing_context: Any, pointer: Any, index: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        llvm = signature.args[0].llvm
        return builder.load(builder.gep(args[0], [args[1]], source_etype=llvm), typ=llvm)

    return pointer.element(pointer, types.intp), codegen


@intrinsic
def _set(typing_context: Any, pointer: Any, index: Any, value: Any) -> Any:
    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        builder.store(args[2], builder.gep(args[0], [args[1]], source_etype=signature.args[0].llvm))
        return context.get_dummy_value()

    return types.void(pointer, types.intp, pointer.element), codegen


@overload(operator.getitem)
def _getitem(pointer, index):
    if isinstance(pointer, Pointer):
        return lambda pointer, index: _get(pointer, index)
    return None


@overload(operator.setitem)
def _setitem(pointer, index, value):
    if isinstance(pointer, Pointer):
        return lambda pointer, index, value: _set(pointer, index, value)
    return None


@intrinsic
def f32_of_bits(typing_context: Any, bits: Any) -> Any:
    """The float32 whose bits are the low 32 of the int64 `bits` (how an instruction carries a float)."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.bitcast(builder.trunc(args[0], I32), ir.FloatType())

    return types.float32(types.int64), codegen


def element_ptr(builder: ir.IRBuilder, pointer: Pointer, value: ir.Value, index: ir.Value, target: ir.Type) -> ir.Value:
    """For other intrinsics: the address of element `index` of `value`, as a pointer to `target`."""
    return builder.bitcast(builder.gep(value, [index], source_etype=pointer.llvm), target.as_pointer())
