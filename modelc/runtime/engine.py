"""The engine: a linked Program with its memory and its thread team; turns a batch of rows into logits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from modelc.kernels import env
from modelc.kernels.objects import python_function
from modelc.kernels.source import KernelSource, Progress
from modelc.program import Program
from modelc.program.program import KvLayer
from modelc.runtime.memory import allocate
from modelc.runtime.step_costs import StepCosts
from modelc.runtime.team import Team

STALL_S = 2e-3  # a wait at a barrier that is longer than any imbalance of work: other processes have the core
TIMED_POLLS = 2000


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive positions of one sequence.

    Attributes:
        slot: the sequence's row in the page table.
        position: of the first token.
        tokens: one a row.
        outputs: how many of the last rows' logits are wanted.
    """

    slot: int
    position: int
    tokens: Sequence[int]
    outputs: int


def shift_name(program: Program, layer: KvLayer) -> str:
    """The compiled function that shifts a layer's keys and values."""
    return f"shift.{layer.style}.{layer.head_dim}.{program.kv}"


class Engine:
    """Runs batches. Not thread-safe: one thread owns it.

    Attributes:
        program: what it runs.
        n_slots: sequences that may have pages at the same time.
        pages: int64 (n_slots, pages of a whole context), the pages of each.
        costs: what steps cost so far.

    Args:
        program: what to run.
        weights: address that the program's weight offsets count from.
        n_slots: sequences that may have pages at the same time.
        n_pages: pages of keys and values.
        objects: where compiled opcodes come from.
        progress: told about each opcode that has to be compiled.
        lender: engine of the same model with other adapters, whose keys, values and page table this one works on; one
            thread owns both.
        owned: memory of weights that must live as long as the engine.
    """

    def __init__(
        self,
        program: Program,
        weights: int,
        n_slots: int,
        n_pages: int,
        objects: KernelSource,
        progress: Progress | None = None,
        lender: Engine | None = None,
        owned: object = None,
    ) -> None:
        self.program = program
        self.n_slots = n_slots
        self.costs: StepCosts = StepCosts(program.max_out) if lender is None else lender.costs
        self._objects = objects  # owns the machine code
        self._owned = owned
        self._shifts: dict[str, Callable[..., tuple[int, ...]]] = {}
        names = [*program.opcodes, "execute", "spin", "worker"]
        addresses = objects.addresses(names, progress)
        self._table = allocate(program.table.size, np.int64).reshape(program.table.shape)
        self._table[:] = program.table
        self._table[:, env.I_ADDRESS] = [addresses[program.opcodes[n]] for n in program.table[:, env.I_OPCODE]]

        pages_per_slot = (program.n_ctx + env.PAGE - 1) // env.PAGE
        scratch_floats = max(8 * pages_per_slot * env.PAGE, program.widest)
        self._floats = allocate(program.floats + 256, np.float32)
        self._quants = allocate(program.quant_bytes + 256, np.uint8)
        self._scratch = allocate(scratch_floats * program.n_threads + 256, np.float32)
        self._kv: npt.NDArray[np.uint8] = (
            allocate(n_pages * program.page_bytes, np.uint8) if lender is None else lender._kv
        )
        self._constants = allocate(program.constants.size, np.float32)
        self._constants[:] = program.constants
        self._tokens, self._positions, self._slots = (allocate(program.max_rows, np.int64) for _ in range(3))
        self._units = allocate(2 * program.max_rows, np.int64)
        self._out_rows = allocate(program.max_out, np.int64)
        pages = allocate(n_slots * pages_per_slot, np.int64).reshape(n_slots, pages_per_slot)
        self.pages: npt.NDArray[np.int64] = pages if lender is None else lender.pages
        self._control = allocate(env.FIRST_COUNTER + env.COUNTER_WORDS * (program.counters + 1), np.int64)
        self._cycles = allocate(len(program.table), np.int64)
        self._env = allocate(env.N_ENV, np.int64)
        self._env[env.WEIGHTS] = weights
        for slot, array in (
            (env.CONSTANTS, self._constants),
            (env.FLOATS, self._floats),
            (env.QUANTS, self._quants),
            (env.SCRATCH, self._scratch),
            (env.KV, self._kv),
            (env.TOKENS, self._tokens),
            (env.POSITIONS, self._positions),
            (env.SLOTS, self._slots),
            (env.PAGES, self.pages),
            (env.UNITS, self._units),
            (env.OUT_ROWS, self._out_rows),
            (env.CONTROL, self._control),
        ):
            self._env[slot] = array.ctypes.data
        self._env[env.PAGES_PER_SLOT] = pages_per_slot
        self._env[env.PAGE_BYTES] = program.page_bytes
        self._env[env.SCRATCH_FLOATS] = scratch_floats
        self._env[env.SPINS] = self._polls_until_stall(python_function(addresses["spin"], 2, 0))
        self._steps, self._seconds = 0, 0.0
        execute = python_function(addresses["execute"], 6, 0)
        worker = python_function(addresses["worker"], 5, 1)
        self._team = Team(self._table, self._env, self._control, execute, worker, program.n_threads)

    def _polls_until_stall(self, spin: Callable[..., tuple[int, ...]]) -> int:
        address = self._control.ctypes.data
        durations = []
        for _ in range(3):
            start = time.perf_counter()
            spin(address, TIMED_POLLS)
            durations.append(time.perf_counter() - start)
        return int(STALL_S / min(durations) * TIMED_POLLS)

    def run(self, batch: Sequence[Rows]) -> npt.NDArray[np.float32]:
        """Logits of the wanted rows, in order: float32 (wanted, vocab_size), a view valid until the next call.

        The pages of each slot up to its last position must be set in `pages`; token ids and positions must be in range.
        """
        p = self.program
        fits = 0 < sum(len(rows.tokens) for rows in batch) <= p.max_rows and sum(r.outputs for r in batch) <= p.max_out
        if not fits:
            raise ValueError(f"a batch has 1 to {p.max_rows} rows and at most {p.max_out} outputs")
        n = n_out = n_units = 0
        for rows in batch:
            count = len(rows.tokens)
            if count == 1:  # a step of an answer: a few scalars are quicker than slices
                self._tokens[n], self._positions[n], self._slots[n] = rows.tokens[0], rows.position, rows.slot
                self._units[2 * n_units], self._units[2 * n_units + 1] = n, 1
                n_units += 1
            else:
                self._tokens[n : n + count] = rows.tokens
                self._positions[n : n + count] = np.arange(rows.position, rows.position + count)
                self._slots[n : n + count] = rows.slot
                for first in range(0, count, p.unit_rows):
                    self._units[2 * n_units] = n + first
                    self._units[2 * n_units + 1] = min(p.unit_rows, count - first)
                    n_units += 1
            for row in range(n + count - rows.outputs, n + count):
                self._out_rows[n_out] = row
                n_out += 1
            n += count
        self._env[env.N_ROWS], self._env[env.N_UNITS], self._env[env.N_OUT] = n, n_units, n_out
        seconds = self._team.run(n)
        self._seconds += seconds
        self._steps += 1
        if n_out == n and p.page_bytes:
            self.costs.note(n, len(batch), seconds)
        return self._rows(p.logits, n_out, p.logits_stride, p.vocab_size)

    def hidden(self, n: int) -> npt.NDArray[np.float32]:
        """Last hidden states of the first n rows that the last batch wanted: float32 (n, dim), a view like `run`'s."""
        p = self.program
        return self._rows(p.hidden, n, (p.hidden_dim + 31) // 32 * 32, p.hidden_dim)

    def run_vectors(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """As `run`, with float32 (n, columns) in place of tokens; each stands at the beginning of slot 0."""
        p = self.program
        n, cols = vectors.shape
        self._floats[p.input : p.input + n * p.input_stride].reshape(n, p.input_stride)[:, :cols] = vectors
        self._env[env.N_ROWS] = self._env[env.N_OUT] = n
        self._env[env.N_UNITS] = self._units[1] = 1
        self._seconds += self._team.run(n)
        self._steps += 1
        return self._rows(p.logits, n, p.logits_stride, p.vocab_size)

    def _rows(self, at: int, n: int, stride: int, cols: int) -> npt.NDArray[np.float32]:
        return self._floats[at : at + n * stride].reshape(n, stride)[:, :cols]

    def copy_page(self, source: int, target: int) -> None:
        """Copy a page's keys and values, of all layers."""
        size = self.program.page_bytes
        self._kv[target * size : (target + 1) * size] = self._kv[source * size : (source + 1) * size]

    def shift(self, old: Sequence[int], new: Sequence[int], anchor: int, dropped: int, computed: int) -> None:
        """Move positions anchor + dropped ... computed of a sequence down by `dropped`, from `old` pages to `new`."""
        old_pages, new_pages = np.array(old, np.int64), np.array(new, np.int64)
        block = np.zeros(env.N_SHIFT, np.int64)
        block[env.SHIFT_PAGE_BYTES] = self.program.page_bytes
        block[env.SHIFT_OLD_PAGES], block[env.SHIFT_NEW_PAGES] = old_pages.ctypes.data, new_pages.ctypes.data
        block[env.SHIFT_ANCHOR], block[env.SHIFT_DROPPED], block[env.SHIFT_COMPUTED] = anchor, dropped, computed
        block[env.SHIFT_FACTORS] = self._scratch.ctypes.data
        for layer in self.program.kv_layers:
            name = shift_name(self.program, layer)
            if name not in self._shifts:
                self._shifts[name] = python_function(self._objects.addresses([name])[name], 1, 0)
            block[env.SHIFT_KV] = self._kv.ctypes.data + layer.at
            block[env.SHIFT_HEADS] = layer.heads
            block[env.SHIFT_FREQUENCIES] = self._constants.ctypes.data + 8 * layer.frequencies
            block[env.SHIFT_ROTATED] = layer.rotated
            self._shifts[name](block.ctypes.data)

    def start_profile(self) -> None:
        """Count the cycles of each instruction from now on."""
        self._cycles[:] = 0
        self._steps, self._seconds = 0, 0.0
        self._env[env.PROFILE] = self._cycles.ctypes.data

    def profile(self) -> tuple[npt.NDArray[np.int64], int, float]:
        """Cycles of each instruction, steps and seconds since `start_profile`."""
        return self._cycles.copy(), self._steps, self._seconds

    def close(self) -> None:
        """End the team's threads."""
        self._team.close()
