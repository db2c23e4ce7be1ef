"""The one door to Numba for everything that serving can reach.

Every function behind this door is compiled without the GIL, without fast-math and without Python or C wrappers, so
that the same function can be compiled just in time (`kernels.objects`) or ahead of time into a shared library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.extending import intrinsic as numba_intrinsic

__all__ = ["inlined", "intrinsic", "kernel"]


OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def intrinsic(define: Callable[..., Any]) -> Any:
    """A kernel function written in LLVM: `define(typing_context, *types)` returns its signature and code generator."""
    return numba_intrinsic(define)


def kernel(function: Callable[..., Any]) -> Any:
    """Mark `function` as kernel code: compiled for raw pointers and scalars, callable from other kernels only."""
    return njit(**OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Mark a part of a kernel that must end up inside its caller, or the caller's register tiles would go to memory."""
    return njit(forceinline=True, **OPTIONS)(function)
