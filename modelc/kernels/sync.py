"""Atomics and waiting: what the thread team needs to meet without the operating system."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from modelc.kernels.jit import intrinsic
from modelc.kernels.llvm_vectors import I32, call
from modelc.kernels.pointers import element_ptr
from modelc.kernels.target_features import choose

I64 = ir.IntType(64)


@intrinsic
def atomic_add(typing_context: Any, pointer: Any, index: Any, value: Any) -> Any:
    """Add `value` to an int64 element; returns what was there before."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        address = element_ptr(builder, signature.args[0], args[0], args[1], I64)
        return builder.atomic_rmw("add", address, args[2], "acq_rel")

    return types.int64(pointer, types.intp, types.int64), codegen


@intrinsic
def atomic_load(typing_context: Any, pointer: Any, index: Any) -> Any:
    """Read an int64 element with acquire order."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        address = element_ptr(builder, signature.args[0], args[0], args[1], I64)
        return builder.load_atomic(address, "acquire", 8, typ=I64)

    return types.int64(pointer, types.intp), codegen


@intrinsic
def atomic_store(typing_context: Any, pointer: Any, index: Any, value: Any) -> Any:
    """Write an int64 element with release order."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        address = element_ptr(builder, signature.args[0], args[0], args[1], I64)
        builder.store_atomic(args[2], address, "release", 8)
        return context.get_dummy_value()

    return types.void(pointer, types.intp, types.int64), codegen


@intrinsic
def pause(typing_context: Any) -> Any:
    """Tell the core that this is a waiting loop."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def arm() -> None:
            call(builder, "llvm.aarch64.hint", ir.VoidType(), [ir.Constant(I32, 1)])  # YIELD

        def not_x86() -> None:
            choose(context, builder, "neon", arm, lambda: None)

        def x86() -> None:
            call(builder, "llvm.x86.sse2.pause", ir.VoidType(), [])

        choose(context, builder, "sse2", x86, not_x86)
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def sched_yield(typing_context: Any) -> Any:
    """Offer the core to another thread."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        call(builder, "sched_yield", I32, [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def usleep(typing_context: Any, microseconds: Any) -> Any:
    """Sleep for at least `microseconds` (uint32)."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        call(builder, "usleep", I32, [args[0]])
        return context.get_dummy_value()

    return types.void(types.uint32), codegen


@intrinsic
def cycles(typing_context: Any) -> Any:
    """The cycle counter (x86: time-stamp counter); on AArch64 that of time, the other one is the system's alone."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def arm() -> ir.Value:
            register = builder.module.add_metadata(["cntvct_el0"])
            return call(builder, "llvm.read_volatile_register.i64", I64, [register])

        return choose(context, builder, "neon", arm, lambda: call(builder, "llvm.readcyclecounter", I64, []))

    return types.int64(), codegen
