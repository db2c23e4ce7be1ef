"""Calls one opcode the way the executor does: by its address, with an instruction row and an environment block."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.kernels import env
from modelc.kernels.executor import OPCODE_ARGS
from modelc.kernels.objects import ObjectCache, python_function

Number: TypeAlias = int | np.integer[Any] | npt.NDArray[Any]  # an array stands for its address

UNWRITTEN = np.uint32(0xFFC0BEEF).view(np.float32)  # a NaN: whoever reads it shows it


@functools.cache
def objects() -> ObjectCache:
    """The user's object cache: a second run of the tests compiles nothing."""
    return ObjectCache()


@functools.cache
def address_of(function: Any) -> int:
    """Machine address of a test's own kernel function with an opcode's arguments."""
    function.compile(OPCODE_ARGS)
    compiled = function.overloads[OPCODE_ARGS]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def run(
    opcode: str | Any, fields: Sequence[Number], environment: Mapping[int, Number] | None = None, n_threads: int = 1
) -> None:
    """Run an opcode as each of `n_threads` threads, one after another.

    The last thread goes first: no thread may need what another one writes in the same instruction.

    Args:
        opcode: a name from the catalogue, or a kernel function of a test.
        fields: I[2] and up.
        environment: slots of E. SCRATCH and CONTROL are made here when missing; scratch holds NaNs.
        n_threads: size of the team.
    """
    given = dict(environment or {})
    scratch_floats = int(given.setdefault(env.SCRATCH_FLOATS, 2048))
    given.setdefault(env.SCRATCH, unwritten(scratch_floats * n_threads))
    given.setdefault(env.CONTROL, np.zeros(env.FIRST_COUNTER + env.COUNTER_WORDS * 4, np.int64))
    E = np.zeros(env.N_ENV, np.int64)
    for slot, value in given.items():
        E[slot] = _number(value)
    I = np.zeros(env.I_WORDS, np.int64)
    I[2 : 2 + len(fields)] = [_number(value) for value in fields]
    address = objects().addresses([opcode])[opcode] if isinstance(opcode, str) else address_of(opcode)
    call = python_function(address, 4, 0)
    for tid in reversed(range(n_threads)):
        call(I.ctypes.data, E.ctypes.data, tid, n_threads)


def unwritten(*shape: int) -> npt.NDArray[np.float32]:
    """A float32 array full of UNWRITTEN."""
    return np.full(shape, UNWRITTEN, np.float32)


def is_unwritten(values: npt.NDArray[np.float32]) -> bool:
    """Whether nothing was written to any of `values`."""
    return bool((np.ascontiguousarray(values).view(np.uint32) == UNWRITTEN.view(np.uint32)).all())


def float_bits(value: float) -> int:
    """The bits of `value` as float32: how an instruction carries a float."""
    return int(np.float32(value).view(np.int32))


def _number(value: Number) -> int:
    return value.ctypes.data if isinstance(value, np.ndarray) else int(value)
