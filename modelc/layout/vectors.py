"""Vectors of float32 while LLVM code is written: arithmetic that reads like arithmetic.

Every operation is one of IEEE 754, in the order written: nothing is fused or reordered, so all CPUs give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from llvmlite import ir

from modelc.layout.rounding import ROUNDER
from modelc.layout.words import F32, I32, byte_pointer

Operand: TypeAlias = "Floats | ir.Value | float"


class Floats:
    """A vector of float32; the other side of an operation may be a vector, a float32 value or a number."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder = builder
        self.value = value

    def __add__(self, other: Operand) -> Floats:
        return Floats(self.builder, self.builder.fadd(self.value, self._operand(other)))

    def __sub__(self, other: Operand) -> Floats:
        return Floats(self.builder, self.builder.fsub(self.value, self._operand(other)))

    def __mul__(self, other: Operand) -> Floats:
        return Floats(self.builder, self.builder.fmul(self.value, self._operand(other)))

    def __truediv__(self, other: Operand) -> Floats:
        return Floats(self.builder, self.builder.fdiv(self.value, self._operand(other)))

    def rounded(self) -> Floats:
        """The nearest whole numbers, half to even; of numbers below 2**22."""
        return (self + ROUNDER) - ROUNDER

    def at_least(self, other: Operand) -> Floats:
        """The larger of both, lane by lane."""
        return self.where(self.builder.fcmp_ordered(">", self.value, self._operand(other)), other)

    def at_most(self, other: Operand) -> Floats:
        """The smaller of both, lane by lane."""
        return self.where(self.builder.fcmp_ordered("<", self.value, self._operand(other)), other)

    def where(self, condition: ir.Value, other: Operand) -> Floats:
        """These lanes where the condition's lane is true, the other's elsewhere."""
        return Floats(self.builder, self.builder.select(condition, self.value, self._operand(other)))

    def is_above(self, other: Operand) -> ir.Value:
        """A truth value for each lane."""
        return self.builder.fcmp_ordered(">", self.value, self._operand(other))

    def lane(self, index: int) -> ir.Value:
        """One lane, float32."""
        return self.builder.extract_element(self.value, ir.Constant(I32, index))

    def half(self, upper: bool) -> Floats:
        """The lower or upper half of the lanes."""
        count = self.value.type.count // 2
        lanes = [count * upper + i for i in range(count)]
        mask = ir.Constant(ir.VectorType(I32, count), lanes)
        return Floats(self.builder, self.builder.shuffle_vector(self.value, self.value, mask))

    def _operand(self, other: Operand) -> ir.Value:
        if isinstance(other, Floats):
            return other.value
        if isinstance(other, ir.Value):
            return splat(self.builder, other, self.value.type.count).value
        return ir.Constant(self.value.type, [other] * self.value.type.count)


def splat(builder: ir.IRBuilder, scalar: ir.Value, count: int) -> Floats:
    """A vector whose lanes are all the float32 `scalar`."""
    undefined = ir.Constant(ir.VectorType(F32, count), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    mask = ir.Constant(ir.VectorType(I32, count), [0] * count)
    return Floats(builder, builder.shuffle_vector(first, undefined, mask))


def constants(builder: ir.IRBuilder, numbers: Iterable[float]) -> Floats:
    """A vector of these numbers."""
    lanes = [float(number) for number in numbers]
    return Floats(builder, ir.Constant(ir.VectorType(F32, len(lanes)), lanes))


def load(builder: ir.IRBuilder, buffer: ir.Value, at: ir.Value, count: int) -> Floats:
    """The `count` floats at byte `at` of `buffer`."""
    return Floats(builder, builder.load(byte_pointer(builder, buffer, at, ir.VectorType(F32, count)), align=1))
