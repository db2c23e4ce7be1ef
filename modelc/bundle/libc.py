"""The C library for code that is compiled like a kernel: functions, constants, calls and memory by address (int64)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from modelc.kernels.jit import intrinsic

I8, I64 = ir.IntType(8), ir.IntType(64)

# Linux and glibc; the same on x86-64 and AArch64.
O_RDWR = 2
O_RDONLY_CLOEXEC = 0o2000000
SEEK_END = 2
PROT_READ = 1
MAP_PRIVATE = 2
MAP_PRIVATE_POPULATE = 0x8002
MFD_CLOEXEC = 1
RTLD_NOW = 2
RTLD_NOW_GLOBAL = 0x102
STDERR = 2

_ADDRESS, _INT = types.int64, types.int32


def _c_function(name: str, result: Any, *arguments: Any) -> Any:
    return types.ExternalFunction(name, result(*arguments))


close = _c_function("close", _INT, _INT)
dlerror = _c_function("dlerror", _ADDRESS)
dlopen = _c_function("dlopen", _ADDRESS, _ADDRESS, _INT)
dlsym = _c_function("dlsym", _ADDRESS, _ADDRESS, _ADDRESS)
getenv = _c_function("getenv", _ADDRESS, _ADDRESS)
glibc_version = _c_function("gnu_get_libc_version", _ADDRESS)
lseek = _c_function("lseek", types.int64, _INT, types.int64, _INT)
malloc = _c_function("malloc", _ADDRESS, types.int64)
mmap = _c_function("mmap", _ADDRESS, _ADDRESS, types.int64, _INT, _INT, _INT, types.int64)
munmap = _c_function("munmap", _INT, _ADDRESS, types.int64)
open_file = _c_function("open", _INT, _ADDRESS, _INT)
strlen = _c_function("strlen", types.int64, _ADDRESS)
write = _c_function("write", types.int64, _INT, _ADDRESS, types.int64)


def constant(data: bytes) -> Any:
    """A kernel function that gives the address of `data`."""

    @intrinsic
    def address(typing_context: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            value = ir.Constant(ir.ArrayType(I8, len(data)), bytearray(data))
            place = cgutils.global_constant(builder, "text", value)  # type: ignore[no-untyped-call]
            return builder.ptrtoint(place, I64)

        return types.int64(), codegen

    return address


def c_text(text: str) -> Any:
    """The same for a text with a zero byte behind it."""
    return constant(text.encode() + b"\0")


@intrinsic
def word_at(typing_context: Any, address: Any) -> Any:
    """The 8 bytes at an address that need not be a multiple of 8."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        word = builder.load(builder.inttoptr(args[0], I64.as_pointer()), typ=I64)
        word.align = 1
        return word

    return types.int64(types.int64), codegen


@intrinsic
def call(typing_context: Any, function: Any, first: Any, second: Any) -> Any:
    """Call a C function by its address with two arguments; one that takes fewer does not see the rest."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        function_type = ir.FunctionType(ir.IntType(32), [I64, I64])
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), list(args[1:]))

    return types.int32(types.int64, types.int64, types.int64), codegen
