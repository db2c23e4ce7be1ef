"""The door to Numba for loops over whole tensors; nothing here is imported where a loop is in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.extending import intrinsic

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

NJIT: Any = numba.njit  # its type hints leave out half of its options
OPTIONS = {
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

BUFFER = types.CPointer(types.uint8)  # type: ignore[no-untyped-call]
STEP_ARGS = (BUFFER, types.int64, BUFFER, types.int64, types.int64, types.int64, types.int64)


def inlined(function: Compiled) -> Compiled:
    """Marks `function` as a part of a loop: compiled into it, callable from compiled code only."""
    return cast(Compiled, NJIT(**OPTIONS)(function))


def instruction(function: Callable[..., Any]) -> Any:
    """Marks `function` as one that writes LLVM code: from Numba types it makes a signature and a code generator."""
    return intrinsic(function)


def compile_step(step: Callable[..., None]) -> tuple[str, bytes]:
    """Compile `step(source, source_bytes, target, target_bytes, n_blocks, start, stop)`: its symbol and object file."""
    dispatcher = NJIT(**OPTIONS)(step)
    dispatcher.compile(STEP_ARGS)
    compiled = dispatcher.overloads[STEP_ARGS]
    _, _, (code, _) = compiled.library.serialize_using_object_code()
    return compiled.fndesc.llvm_func_name, code
