"""The one door to Numba's `parallel=True`: loops over whole tensors at pack time, compiled on first use and cached.

A loop is compiled as plain code for a range of its units, and one parallel function, the same for all loops, calls it
by address from every thread: a parallel function for each loop takes 0.2 s longer to compile, for each.

Numba's `workqueue` threading layer aborts the process when two threads enter it at once, so one lock guards every
call. Numba knows nothing of CPU quotas; see `quota`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import prange, types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from modelc.cpu_quota import cpu_quota
from modelc.layout.loop_cache import LoopCache

Bytes: TypeAlias = npt.NDArray[np.uint8]
Compiled = TypeVar("Compiled", bound=Callable[..., Any])

LOCK = threading.Lock()
NJIT: Any = numba.njit  # its type hints leave out half of its options
# A second thread is waited for, on a busy machine for a time slice, which is longer than a small tensor takes.
# Measured with 211 tensors of 0.2 to 30 MB, 5 runnable threads on 2 cores: 2.5 s when two threads share each of them,
# 0.05 s when they share only the large ones.
MIN_THREAD_BYTES = 4 << 20
OPTIONS = {"nogil": True, "fastmath": False, "error_model": "numpy"}

BUFFER = types.CPointer(types.uint8)  # type: ignore[no-untyped-call]
STEP_ARGS = (BUFFER, types.int64, BUFFER, types.int64, types.int64, types.int64, types.int64)


def inlined(function: Compiled) -> Compiled:
    """Marks `function` as a part of a loop: compiled into it, callable from compiled code only."""
    return cast(Compiled, NJIT(no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)(function))


def instruction(function: Callable[..., Any]) -> Any:
    """Marks `function` as one that writes LLVM code: from Numba types it makes a signature and a code generator."""
    return intrinsic(function)


def parallel_loop(name: str, step: Callable[..., None]) -> Callable[[Bytes, int, Bytes, int, int, int], None]:
    """A loop over independent units of work, as a callable that many threads may call.

    Args:
        name: Unique name of the loop, of characters that are fit for a file name; the key in the cache.
        step: `step(source, source_bytes, target, target_bytes, n_blocks, start, stop)` does units start to stop - 1. It
            is compiled at the first call; it allocates nothing and raises nothing.

    Returns:
        `loop(source, source_bytes, target, target_bytes, n_blocks, n_units)`. `source` (read only) and `target`
        (written) are contiguous uint8; `source_bytes` and `target_bytes` are what one block takes in them, `n_blocks`
        the blocks of a unit. Nothing is checked.
    """

    @functools.cache
    def compiled() -> Any:
        step.__qualname__ = name
        callback: Any = CFunc(step, (STEP_ARGS, types.void), {}, {"nopython": True, **OPTIONS})
        callback._cache = LoopCache(step)  # type: ignore[no-untyped-call]
        callback.compile()
        return callback

    def loop(source: Bytes, source_bytes: int, target: Bytes, target_bytes: int, n_blocks: int, n_units: int) -> None:
        buffers = (source.ctypes.data, source_bytes, target.ctypes.data, target_bytes)
        with LOCK:
            allowed = numba.get_num_threads()
            threads = min(allowed, cpu_quota(), 1 + max(source.size, target.size) // MIN_THREAD_BYTES)
            numba.set_num_threads(threads)
            try:
                _parallel_run()(compiled().address, *buffers, n_blocks, n_units, threads)
            finally:
                numba.set_num_threads(allowed)

    return loop


@functools.cache
def _parallel_run() -> Any:
    def run(
        step: int,
        source: int,
        source_bytes: int,
        target: int,
        target_bytes: int,
        n_blocks: int,
        n_units: int,
        n_parts: int,
    ) -> None:
        for part in prange(n_parts):
            start, stop = n_units * part // n_parts, n_units * (part + 1) // n_parts
            _call(step, source, source_bytes, target, target_bytes, n_blocks, start, stop)

    dispatcher = NJIT(parallel=True, **OPTIONS)(run)
    dispatcher._cache = LoopCache(run)  # type: ignore[no-untyped-call]
    return dispatcher


@instruction
def _call(
    typing_context: Any,
    step: Any,
    source: Any,
    source_bytes: Any,
    target: Any,
    target_bytes: Any,
    n_blocks: Any,
    start: Any,
    stop: Any,
) -> Any:
    """Calls the step at an address; all arguments are int64."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        wanted = [context.get_value_type(argument) for argument in STEP_ARGS]
        function = builder.inttoptr(args[0], ir.FunctionType(ir.VoidType(), wanted).as_pointer())
        pointers = {0, 2}
        given = [builder.inttoptr(v, wanted[i]) if i in pointers else v for i, v in enumerate(args[1:])]
        builder.call(function, given)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), codegen
