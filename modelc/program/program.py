"""What a Program is made of: weights, buffers, instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

PRIVATE = "private"  # each thread has a row of its own
ALL = "all"
ROWS = "rows"
OUT_ROWS = "out rows"


@dataclass(frozen=True, slots=True)
class Weight:
    """A stored weight tensor: `rows` outputs, `cols` inputs, at byte `offset` from the weights' base address.

    `low_rank`: what an adapter adds to products with it.
    """

    dtype: str
    rows: int
    cols: int
    offset: int
    low_rank: LowRank | None = None

    @property
    def groups(self) -> int:
        """Groups of 16 rows, the last one padded."""
        return (self.rows + 15) // 16


@dataclass(frozen=True, slots=True)
class LowRank:
    """B (A x), as two float weights, `a` (rank, cols) and `b` (rows, rank)."""

    a: Weight
    b: Weight


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """A buffer between instructions, compared by identity; its place is chosen when the Program is finished.

    Attributes:
        cols: columns in use.
        stride: columns of a row with their padding, which is zero (floats); bytes of a row (quants).
        rows: rows reserved.
        space: `floats` or `quants`.
        private: in one-row batches each thread has its own copy of the row.
    """

    cols: int
    stride: int
    rows: int
    space: str = "floats"
    private: bool = False

    @property
    def size(self) -> int:
        """Floats, or bytes of quants."""
        return self.rows * self.stride


@dataclass(frozen=True, slots=True)
class View:
    """Columns `start` to `start + cols` of a buffer."""

    buffer: Buffer
    start: int
    cols: int


Field: TypeAlias = int | Buffer | View


@dataclass(frozen=True, slots=True)
class Access:
    """One buffer that an instruction touches, and how threads divide it.

    Attributes:
        buffer: which one; None stands for keys and values at byte `start` of a page.
        writes: whether it is written.
        one: division in one-row batches; `private`, `all`, or a name: equal names are equal divisions.
        many: division in larger batches.
        start, stop: columns touched.
    """

    buffer: Buffer | None
    writes: bool
    one: str
    many: str
    start: int
    stop: int

    def division(self, mode: int) -> str:
        """The division in one-row (0) or larger (1) batches."""
        return self.many if mode else self.one


@dataclass(frozen=True, slots=True)
class Instruction:
    """An opcode, its fields 2 to 14 (buffers and views stand for their offsets), and what it touches."""

    opcode: str
    fields: tuple[Field, ...]
    accesses: tuple[Access, ...]
    layer: int


@dataclass(frozen=True, slots=True)
class KvLayer:
    """A layer's keys and values in a page, and how keys are rotated.

    Attributes:
        at: byte offset in a page.
        heads: kv heads.
        head_dim: columns of each.
        style: `pairs` or `halves`; None for keys without rotation.
        frequencies: index of the float64 frequencies in CONSTANTS, in doubles.
        rotated: columns of a key that are rotated.
    """

    at: int
    heads: int
    head_dim: int
    style: str | None
    frequencies: int
    rotated: int


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered model, ready to be linked.

    Attributes:
        table: int64 (instructions, 16).
        opcodes: names by opcode number.
        layers: the layer of each instruction, -1 outside.
        max_rows: rows in the largest batch.
        max_out: rows of logits in the largest batch.
        n_threads: size of the team it was lowered for.
        n_ctx: longest sequence.
        floats: size of FLOATS.
        quant_bytes: size of QUANTS.
        counters: attention counters in CONTROL.
        widest: most floats that an opcode keeps in a thread's scratch, beside attention's scores.
        constants: contents of CONSTANTS.
        page_bytes: keys and values of all layers for one page of positions.
        kv: element type of keys and values.
        kv_layers: what is in a page.
        vocab_size: columns of the logits in use.
        logits: float index of the logits in FLOATS, `max_out` rows.
        logits_stride: floats from one row of logits to the next.
        hidden: float index of the last hidden states of the rows whose logits are wanted; -1 where they are not kept.
        hidden_dim: columns of them.
        input: float index of the rows that are filled from outside; -1 where rows are tokens.
        input_stride: floats from one of them to the next.
        unit_rows: most rows of a sequence that attention takes as one unit of work.
    """

    table: npt.NDArray[np.int64]
    opcodes: list[str]
    layers: list[int]
    max_rows: int
    max_out: int
    n_threads: int
    n_ctx: int
    floats: int
    quant_bytes: int
    counters: int
    widest: int
    constants: npt.NDArray[np.float32]
    page_bytes: int
    kv: str
    kv_layers: list[KvLayer]
    vocab_size: int
    logits: int
    logits_stride: int
    hidden: int = -1
    hidden_dim: int = 0
    input: int = -1
    input_stride: int = 0
    unit_rows: int = 8
