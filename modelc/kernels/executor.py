"""The executor: walks a Program's instructions, and is run by every thread of the team at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from modelc.kernels.env import (
    ARRIVED,
    CONTROL,
    GENERATION,
    I_ADDRESS,
    I_BARRIER,
    I_WORDS,
    N_ROWS,
    ORDER,
    PROFILE,
    SPINS,
    STALLS,
    STOP,
    THREAD_BITS,
)
from modelc.kernels.jit import intrinsic, kernel
from modelc.kernels.pointers import I64_PTR, i64_ptr, offset
from modelc.kernels.sync import atomic_add, atomic_load, atomic_store, cycles, pause, sched_yield, usleep

OPCODE_ARGS = (I64_PTR, I64_PTR, types.int64, types.int64)  # (instruction, environment, thread, threads)


@intrinsic
def call_opcode(typing_context: Any, address: Any, I: Any, E: Any, tid: Any, nth: Any) -> Any:
    """Call a compiled opcode by its machine address. Opcodes raise nothing, so the status is not looked at."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        function_type = context.call_conv.get_function_type(types.none, OPCODE_ARGS)
        function = builder.inttoptr(args[0], function_type.as_pointer())
        context.call_conv.call_function(builder, function, types.none, OPCODE_ARGS, list(args[1:]))
        return context.get_dummy_value()

    return types.void(types.int64, *OPCODE_ARGS), codegen


@kernel
def barrier(control, nth, spins):
    """Wait until all threads are here; after `spins` polls that counts as a stall, and the core is given away."""
    if nth == 1:
        return
    generation = atomic_load(control, GENERATION)
    if atomic_add(control, ARRIVED, 1) + 1 == nth:
        atomic_store(control, ARRIVED, 0)
        atomic_store(control, GENERATION, generation + 1)
        return
    polls = 0
    while atomic_load(control, GENERATION) == generation:
        polls += 1
        if polls < spins:
            pause()
        else:
            if polls == spins:
                atomic_add(control, STALLS, 1)
            sched_yield()


@kernel
def spin(address, polls):
    """Poll the zero word at `address` as often as told, as `barrier` does: the time tells how long a poll takes."""
    word = i64_ptr(address)
    for _ in range(polls):
        if atomic_load(word, 0) != 0:
            break
        pause()


@kernel
def execute(program, n, environment, tid, nth, order):
    """Run the n instructions at address `program` for the batch in `environment`, as thread `tid` of `nth`.

    The first thread gives `order` to the others, after all that Python wrote for this step; 0 gives none.
    """
    instructions = i64_ptr(program)
    E = i64_ptr(environment)
    control = i64_ptr(E[CONTROL])
    if order:
        atomic_store(control, ORDER, order)
    mask = 1 if E[N_ROWS] == 1 else 2
    profile = E[PROFILE] if tid == 0 else 0
    before = cycles()
    for i in range(n):
        I = offset(instructions, i * I_WORDS)
        if I[I_BARRIER] & mask:
            barrier(control, nth, E[SPINS])
        call_opcode(I[I_ADDRESS], I, E, tid, nth)
        if profile:
            now = cycles()
            spent = i64_ptr(profile)
            spent[i] = spent[i] + now - before
            before = now
    barrier(control, nth, E[SPINS])


@kernel
def worker(program, n, environment, tid, order):
    """A team member's loop: wait for the next order, take part if asked to, again.

    Polls for about 0.1 ms, then yields, then sleeps; returns the last order seen after about 20 ms without work, so
    that Python can park the thread, and -1 when told to stop.
    """
    E = i64_ptr(environment)
    control = i64_ptr(E[CONTROL])
    while True:
        polls = 0
        new = atomic_load(control, ORDER)
        while new == order:
            polls += 1
            if polls < 4000:
                pause()
            elif polls < 4200:
                sched_yield()
            elif polls < 4500:
                usleep(np.uint32(50))
            else:
                return order
            new = atomic_load(control, ORDER)
        order = new
        if atomic_load(control, STOP) != 0:
            return np.int64(-1)
        nth = order & ((1 << THREAD_BITS) - 1)
        if tid < nth:
            execute(program, n, environment, tid, nth, 0)
