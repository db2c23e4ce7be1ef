"""The builder: an architecture calls it in the order of its forward pass, and gets a Program.

Each opcode is declared here once: its name and variant, its fields, and what it reads and writes with the way threads
divide each buffer. Places and barriers follow from that (`allocate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DTYPES
from modelc.kernels.env import (
    COUNTER_WORDS,
    FIRST_COUNTER,
    PAGE,
    PANEL,
    RECORD_BYTES,
)
from modelc.kernels.kv_pages import head_bytes
from modelc.program.allocate import place
from modelc.program.program import (
    ALL,
    OUT_ROWS,
    PRIVATE,
    ROWS,
    Access,
    Buffer,
    Field,
    Instruction,
    KvLayer,
    Program,
    View,
    Weight,
)
from modelc.program.table import table_of

NORMS = ("rms_norm", "layer_norm")
GATES = ("swiglu", "geglu")


def float_bits(value: float) -> int:
    """The bits of `value` as float32, the way an instruction carries it."""
    return int(np.float32(value).view(np.int32))


@dataclass(frozen=True, slots=True)
class Angles:
    """Rotation factors of the batch's rows, and what they were made from."""

    factors: Buffer
    style: str
    frequencies: int
    columns: int


@dataclass
class Builder:
    """Emits instructions; the methods are the opcodes.

    Attributes:
        max_rows: rows in the largest batch.
        max_out: rows of logits in the largest batch.
        n_threads: size of the team.
        n_ctx: longest sequence.
        activation: `a8` or `a16`, the format that block-quantized weights are multiplied with.
        kv: type of keys and values: `f16`, `f32`, `int8` or `mixed`.
        kv_hot_window: of `mixed`: a query reads so many positions, the last of them its own, in float32.
        layer: the layer being emitted, for profiles.
        vectors: rows are filled from outside, and no embedding is looked up; for a team of one thread.
    """

    max_rows: int
    max_out: int
    n_threads: int
    n_ctx: int
    activation: str = "a8"
    kv: str = "f16"
    kv_hot_window: int = 64
    layer: int = -1
    vectors: bool = False
    _page_bytes: int = 0
    _scratch: int = 256  # floats
    _unit_rows: int = PANEL
    _input: Buffer | None = None
    _counters: int = 0
    _constant_floats: int = 0
    _kv_layers: list[KvLayer] = field(default_factory=list)
    _constants: list[npt.NDArray[np.float32]] = field(default_factory=list)
    _instructions: list[Instruction] = field(default_factory=list)
    _never_written: set[Buffer] = field(default_factory=set)  # their maker quantizes them at once

    # ------------------------------------------------------------------------------------------------- storage

    def buffer(self, cols: int, *, rows: int | None = None, private: bool = False) -> Buffer:
        """A new float32 buffer of `cols` columns; a row for each row of the batch unless `rows` says how many."""
        n_rows = (rows or self.max_rows + PANEL) + (self.n_threads if private else 0)  # tiles read up to 7 rows more
        return Buffer(cols, (cols + 31) // 32 * 32, (n_rows + PANEL - 1) // PANEL * PANEL, private=private)

    def constant(self, values: npt.NDArray[np.float32] | npt.NDArray[np.float64]) -> int:
        """Put a vector into CONSTANTS, padded with zeros to 32 floats; returns its index in floats."""
        data = np.ascontiguousarray(values).view(np.float32)
        padded = np.zeros((data.size + 31) // 32 * 32, np.float32)
        padded[: data.size] = data
        self._constants.append(padded)
        self._constant_floats += padded.size
        return self._constant_floats - padded.size

    # ------------------------------------------------------------------------------------------------- opcodes

    def embed(self, weight: Weight, scale: float = 1.0) -> Buffer:
        """The rows of `weight` that the batch's tokens name, times `scale`; or rows that are filled from outside."""
        if self.vectors:
            return self.input(weight.cols)
        x = self.buffer(weight.cols, private=True)
        fields: list[Field] = [weight.offset, weight.cols, x, x.stride, float_bits(scale)]
        self._emit(f"embed.{weight.dtype}", fields, [_write(x, PRIVATE, ROWS)])
        return x

    def input(self, cols: int) -> Buffer:
        """Rows that are filled from outside before the program runs."""
        self._input = self.buffer(cols)
        return self._input

    def add_first(self, x: Buffer, weight: Weight) -> None:
        """x += the first row of `weight`."""
        fields: list[Field] = [weight.offset, weight.cols, x, x.stride, float_bits(1.0)]
        self._emit(f"embed.{weight.dtype}.first", fields, [_write(x, PRIVATE, ROWS)])

    def add_position(self, x: Buffer, weight: Weight) -> None:
        """x += the rows of `weight` that the batch's positions name."""
        fields: list[Field] = [weight.offset, weight.cols, x, x.stride, float_bits(1.0)]
        self._emit(f"embed.{weight.dtype}.position", fields, [_write(x, PRIVATE, ROWS)])

    def rms_norm(
        self, x: Buffer, weight: int, eps: float, add: Buffer | None = None, *, out_rows: bool = False
    ) -> Buffer:
        """x += add; returns x / rms(x) * weight, for all rows or for those whose logits are wanted."""
        return self._norm("rms_norm", x, weight, 0, eps, add, out_rows)

    def layer_norm(
        self, x: Buffer, weight: int, bias: int, eps: float, add: Buffer | None = None, *, out_rows: bool = False
    ) -> Buffer:
        """x += add; returns (x - mean) / deviation * weight + bias."""
        return self._norm("layer_norm", x, weight, bias, eps, add, out_rows)

    def _norm(
        self, opcode: str, x: Buffer, weight: int, bias: int, eps: float, add: Buffer | None, out_rows: bool
    ) -> Buffer:
        out = self.buffer(x.cols, private=True)
        rows = OUT_ROWS if out_rows else ROWS
        residual: Field = -1 if add is None else add
        fields: list[Field] = [x, x.stride, residual, weight, out, float_bits(eps), x.cols, int(out_rows)]
        fields += [int(x.private), int(add is not None and add.private), bias]
        one = PRIVATE if x.private else ALL
        access = [_read(x, one, rows) if add is None else _write(x, one, rows), _write(out, PRIVATE, rows)]
        if add is not None:
            access.append(_read(add, PRIVATE if add.private else ALL, rows))
        self._emit(opcode, fields, access)
        return out

    def head_norm(self, x: View, weight: int, head_dim: int, eps: float) -> None:
        """RMS norm of each head of x, in place."""
        heads = x.cols // head_dim
        access = [_write(x.buffer, f"{heads} heads", ROWS, x.start, x.start + x.cols)]
        fields: list[Field] = [x, x.buffer.stride, heads, weight, float_bits(eps)]
        self._emit(f"head_norm.{head_dim}", fields, access)

    def matmul(self, x: Buffer, *weights: Weight, out_rows: bool = False, keep: bool = False) -> Buffer:
        """x @ W^T for each weight, side by side, each part padded to 16 columns; `keep`: x is read again later."""
        out = self._output(weights, out_rows)
        blocks = [DTYPES[w.dtype].is_block for w in weights]
        adapted = any(w.low_rank for w in weights)
        q = self._quantize(x, out_rows, alone=all(blocks) and not adapted and not keep) if any(blocks) else None
        for weight, part in _parts(out, weights):
            self._matmul(x, q, weight, part, out_rows)
        if adapted:
            self._add_low_rank(x, out, weights, out_rows)
        return out

    def _output(self, weights: Sequence[Weight], out_rows: bool) -> Buffer:
        return self.buffer(sum(w.groups * 16 for w in weights), rows=self.max_out if out_rows else None)

    def _add_low_rank(self, x: Buffer, out: Buffer, weights: Sequence[Weight], out_rows: bool) -> None:
        """out += x @ A^T @ B^T for the weights that have an adapter; all A together, so that threads meet once."""
        adapted = [(weight.low_rank, part) for weight, part in _parts(out, weights) if weight.low_rank]
        inner = self._output([pair.a for pair, _ in adapted], out_rows)
        inner_parts = _parts(inner, [pair.a for pair, _ in adapted])
        for a, part in inner_parts:
            self._matmul(x, None, a, part, out_rows)
        for (pair, part), (a, inner_part) in zip(adapted, inner_parts, strict=True):
            division = f"{pair.b.groups} groups"  # that of the weight's own product
            fields: list[Field] = [pair.b.offset, pair.b.cols, pair.b.groups, inner_part, part, out.stride]
            access = [_read(inner, ALL, ALL, inner_part.start, inner_part.start + a.rows)]
            access.append(_write(out, division, division, part.start, part.start + part.cols))
            self._emit(f"matmul_add.{pair.b.dtype}", [*fields, int(out_rows), 0, inner.stride], access)

    def _matmul(self, x: Buffer, q: Buffer | None, weight: Weight, out: View, out_rows: bool) -> None:
        division = f"{weight.groups} groups"
        written = _write(out.buffer, division, division, out.start, out.start + out.cols)
        target: list[Field] = [out, out.buffer.stride, int(out_rows)]
        fields: list[Field] = [weight.offset, weight.cols, weight.groups]
        if q is not None and DTYPES[weight.dtype].is_block:
            opcode = f"matmul.{weight.dtype}.{self.activation}"
            read = _read(q, PRIVATE if q.private else ALL, ALL)
            self._emit(opcode, [*fields, q, *target, int(q.private)], [read, written])
        else:
            read = _read(x, PRIVATE if x.private else ALL, ALL)
            self._emit(f"matmul.{weight.dtype}", [*fields, x, *target, int(x.private), x.stride], [read, written])

    def bias(self, y: Buffer | View, constant: int, activation: str = "none", *, out_rows: bool = False) -> None:
        """y = activation(y + the vector at `constant`) in place; y is a matmul's output, or the part of one weight.

        Args:
            y: float32, whole groups of 16 columns.
            constant: index of the vector, see `constant`.
            activation: `none` or `relu`.
            out_rows: only the rows whose logits are wanted.
        """
        view = y if isinstance(y, View) else View(y, 0, y.cols)
        groups = (view.cols + 15) // 16
        division = f"{groups} groups"  # that of a matmul with so many
        access = _write(view.buffer, division, division, view.start, view.start + 16 * groups)
        self._emit(f"bias.{activation}", [view, view.buffer.stride, constant, groups, int(out_rows)], [access])

    def _quantize(self, x: Buffer, out_rows: bool, alone: bool) -> Buffer:
        """x in the activation format; `alone`: nothing else reads x, so its maker may quantize it right away.

        A row that is quantized by the instruction that makes it stays in the nearest cache and is never written as
        float32 (measured: prefill 1.03 times as fast).
        """
        maker = self._instructions[-1] if self._instructions else Instruction("", (), (), -1)  # rows from outside
        fused = alone and maker.opcode in (*NORMS, *GATES) and maker.fields[4] is x
        panels = (self.max_rows + PANEL - 1) // PANEL + self.n_threads
        row_bytes = x.cols // 32 * RECORD_BYTES[self.activation]
        private = not (fused and maker.opcode in GATES)  # whose threads share the columns of the row
        q = Buffer(x.cols, row_bytes, panels * PANEL, "quants", private)
        rows = OUT_ROWS if out_rows else ROWS
        if fused:
            self._instructions.pop()
            self._never_written.add(x)
            fields = [q if i == 4 else value for i, value in enumerate(maker.fields)]
            access = [a for a in maker.accesses if a.buffer is not x]
            made = next(a for a in maker.accesses if a.buffer is x)
            access.append(_write(q, made.one, made.many))
            self._emit(f"{maker.opcode}_quantize.{self.activation}", fields, access)
        else:
            fields = [x, x.stride, x.cols // 32, q, int(x.private), int(out_rows)]
            read = _read(x, PRIVATE if x.private else ALL, rows)
            self._emit(f"quantize.{self.activation}", fields, [read, _write(q, PRIVATE, rows)])
        return q

    def gated(self, gate_up: Buffer, cols: int, opcode: str = "swiglu") -> Buffer:
        """activation(gate) * up from the two halves of a matmul's output; `swiglu` or `geglu`."""
        groups = gate_up.cols // 32
        out = self.buffer(cols)
        division = f"{groups} groups"
        fields: list[Field] = [gate_up, View(gate_up, 16 * groups, cols), gate_up.stride, groups, out, out.stride]
        self._emit(opcode, fields, [_read(gate_up, division, division), _write(out, division, division)])
        return out

    def rope_angles(self, frequencies: npt.NDArray[np.float64], style: str, factor: float = 1.0) -> Angles:
        """Rotation factors of each row's position, scaled by `factor`; `style` is `pairs` or `halves`.

        Two columns of a head for each frequency are rotated: all, or its first ones.
        """
        columns = 2 * len(frequencies)
        out = self.buffer(2 * columns, private=True)
        at = self.constant(frequencies) // 2
        fields: list[Field] = [at, out, columns, float_bits(factor)]
        self._emit(f"rope_angles.{style}", fields, [_write(out, PRIVATE, ROWS)])
        return Angles(out, style, at, columns)

    def rope(self, x: View, angles: Angles, head_dim: int) -> None:
        """Rotate the heads of x in place."""
        heads = x.cols // head_dim
        access = [
            _write(x.buffer, f"{heads} heads", ROWS, x.start, x.start + x.cols),
            _read(angles.factors, PRIVATE, ROWS),
        ]
        fields: list[Field] = [x, x.buffer.stride, heads, angles.factors, head_dim]
        self._emit(f"rope.{angles.style}.{angles.columns}", fields, access)

    def kv_write(self, keys: View, values: View, head_dim: int, angles: Angles | None) -> int:
        """Keys (rotated by `angles`) and values into the pages; returns the layer's byte offset in a page."""
        heads = keys.cols // head_dim
        at = self._page_bytes
        self._page_bytes += heads * head_bytes(head_dim, self.kv)
        style, frequencies, rotated = (angles.style, angles.frequencies, angles.columns) if angles else (None, 0, 0)
        self._kv_layers.append(KvLayer(at, heads, head_dim, style, frequencies, rotated))
        division = f"{heads} heads"
        access = [_read(v.buffer, division, ROWS, v.start, v.start + v.cols) for v in (keys, values)]
        access.append(Access(None, True, division, ROWS, at, at + 1))
        self._emit(f"kv_write.{head_dim}.{self.kv}", [keys, keys.buffer.stride, heads, values, at], access)
        return at

    def attention(self, q: View, kv_heads: int, head_dim: int, kv_at: int, scale: float, window: int = 0) -> Buffer:
        """softmax(q k * scale) v over the sequence's pages, causal; of the last `window` positions, unless it is 0."""
        heads = q.cols // head_dim
        variant = f"{head_dim}.{heads // kv_heads}.{self.kv}"
        scores = Buffer((self.n_ctx + PAGE - 1) // PAGE * PAGE, (self.n_ctx + PAGE - 1) // PAGE * PAGE, heads)
        out = self.buffer(heads * head_dim)
        counter = self._counter()
        fields: list[Field] = [q, q.buffer.stride, heads, kv_heads, kv_at, float_bits(scale), scores, scores.stride]
        read = [_read(q.buffer, ALL, ALL, q.start, q.start + q.cols), Access(None, False, ALL, ALL, kv_at, kv_at + 1)]
        windows = [self.kv_hot_window if self.kv == "mixed" else 0, window]
        written = _write(scores, "pages", PRIVATE)
        self._emit(f"attention_scores.{variant}", [*fields, 0, 0, 0, *windows], [*read, written])
        access = [*read, _read(scores, ALL, PRIVATE), _write(out, "slabs", "units")]
        self._emit(f"attention.{variant}", [*fields, out, out.stride, counter, *windows], access)
        return out

    def full_attention(self, q: View, k: View, v: View, head_dim: int, scale: float) -> Buffer:
        """softmax(q k^T * scale) v; each row sees all rows of its sequence in the batch, which has it as a whole."""
        heads = q.cols // head_dim
        out = self.buffer(q.cols)
        positions = (self.n_ctx + PAGE - 1) // PAGE * PAGE
        self._scratch = max(self._scratch, (head_dim + PANEL) * positions)  # keys of a head, scores of PANEL rows
        self._unit_rows = self.max_rows
        fields: list[Field] = [q, q.buffer.stride, heads, k, v, float_bits(scale), out, out.stride, self._counter()]
        read = [_read(part.buffer, ALL, ALL, part.start, part.start + part.cols) for part in (q, k, v)]
        self._emit(f"full_attention.{head_dim}", fields, [*read, _write(out, "units", "units")])
        return out

    def _counter(self) -> int:
        """The place in CONTROL of a counter that threads take their work from."""
        self._counters += 1
        return FIRST_COUNTER + COUNTER_WORDS * (self._counters - 1)

    # ------------------------------------------------------------------------------------------------ assembly

    def _emit(self, opcode: str, fields: Sequence[Field], accesses: Sequence[Access]) -> None:
        if any(access.buffer in self._never_written for access in accesses):
            raise ValueError("a buffer that was quantized for one matmul is read again: give that matmul all weights")
        self._instructions.append(Instruction(opcode, tuple(fields), tuple(accesses), self.layer))

    def head(self, hidden: Buffer, weight: Weight, vocab_size: int) -> Program:
        """The end of a decoder: logits from the last hidden states of the rows that are wanted, which are kept too."""
        return self.finish(self.matmul(hidden, weight, out_rows=True, keep=True), vocab_size, hidden)

    def finish(self, logits: Buffer, vocab_size: int, hidden: Buffer | None = None) -> Program:
        """Place the buffers, derive the barriers, and number the opcodes."""
        instructions = self._instructions
        kept, given = ([buffer for buffer in some if buffer is not None] for some in ((logits, hidden), (self._input,)))
        placement = place(instructions, kept, given)
        table, opcodes = table_of(instructions, placement.offsets)
        return Program(
            table=table,
            opcodes=opcodes,
            layers=[i.layer for i in instructions],
            max_rows=self.max_rows,
            max_out=self.max_out,
            n_threads=self.n_threads,
            n_ctx=self.n_ctx,
            floats=placement.floats,
            quant_bytes=placement.quant_bytes,
            counters=self._counters,
            widest=max(self._scratch, *(a.buffer.stride for i in instructions for a in i.accesses if a.buffer)),
            constants=np.concatenate(self._constants) if self._constants else np.zeros(32, np.float32),
            page_bytes=self._page_bytes,
            kv=self.kv,
            kv_layers=self._kv_layers,
            vocab_size=vocab_size,
            logits=placement.offsets[logits],
            logits_stride=logits.stride,
            hidden=-1 if hidden is None else placement.offsets[hidden],
            hidden_dim=0 if hidden is None else hidden.cols,
            input=-1 if self._input is None else placement.offsets[self._input],
            input_stride=0 if self._input is None else self._input.stride,
            unit_rows=self._unit_rows,
        )


def _parts(out: Buffer, weights: Sequence[Weight]) -> list[tuple[Weight, View]]:
    """Each weight with its columns of a matmul's output."""
    parts, column = [], 0
    for weight in weights:
        parts.append((weight, View(out, column, weight.groups * 16)))
        column += weight.groups * 16
    return parts


def _read(buffer: Buffer, one: str, many: str, start: int = 0, stop: int | None = None) -> Access:
    return Access(buffer, False, one, many, start, buffer.stride if stop is None else stop)


def _write(buffer: Buffer, one: str, many: str, start: int = 0, stop: int | None = None) -> Access:
    return Access(buffer, True, one, many, start, buffer.stride if stop is None else stop)
