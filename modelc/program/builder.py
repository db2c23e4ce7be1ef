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
    I_BARRIER,
    I_OPCODE,
    I_WORDS,
    PAGE,
    PANEL,
    RECORD_BYTES,
)
from modelc.kernels.kv_pages import head_bytes
from modelc.program.allocate import barriers, place
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
    """

    max_rows: int
    max_out: int
    n_threads: int
    n_ctx: int
    activation: str = "a8"
    kv: str = "f16"
    kv_hot_window: int = 64
    layer: int = -1
    _page_bytes: int = 0
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
        """The rows of `weight` that the batch's tokens name, times `scale`."""
        x = self.buffer(weight.cols, private=True)
        fields: list[Field] = [weight.offset, weight.cols, x, x.stride, float_bits(scale)]
        self._emit(f"embed.{weight.dtype}", fields, [_write(x, PRIVATE, ROWS)])
        return x

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

    def matmul(self, x: Buffer, *weights: Weight, out_rows: bool = False) -> Buffer:
        """x @ W^T for each weight, side by side in one buffer, each part padded to 16 columns."""
        out = self.buffer(sum(w.groups * 16 for w in weights), rows=self.max_out if out_rows else None)
        blocks = [DTYPES[w.dtype].is_block for w in weights]
        q = self._quantize(x, out_rows, alone=all(blocks)) if any(blocks) else None
        column = 0
        for weight in weights:
            self._matmul(x, q, weight, out, column, out_rows)
            column += weight.groups * 16
        return out

    def _matmul(self, x: Buffer, q: Buffer | None, weight: Weight, out: Buffer, column: int, out_rows: bool) -> None:
        width = weight.groups * 16
        written = _write(out, f"{weight.groups} groups", f"{weight.groups} groups", column, column + width)
        target: list[Field] = [View(out, column, width), out.stride, int(out_rows)]
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
        maker = self._instructions[-1]
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
        self._emit(opcode, fields, [_read(gate_up, division, ROWS), _write(out, division, ROWS)])
        return out

    def rope_angles(
        self, frequencies: npt.NDArray[np.float64], style: str, head_dim: int, factor: float = 1.0
    ) -> Angles:
        """Rotation factors of each row's position, scaled by `factor`; `style` is `pairs` or `halves`."""
        out = self.buffer(2 * head_dim, private=True)
        at = self.constant(frequencies) // 2
        fields: list[Field] = [at, out, head_dim, float_bits(factor)]
        self._emit(f"rope_angles.{style}", fields, [_write(out, PRIVATE, ROWS)])
        return Angles(out, style, at)

    def rope(self, x: View, angles: Angles, head_dim: int) -> None:
        """Rotate the heads of x in place."""
        heads = x.cols // head_dim
        access = [
            _write(x.buffer, f"{heads} heads", ROWS, x.start, x.start + x.cols),
            _read(angles.factors, PRIVATE, ROWS),
        ]
        self._emit(f"rope.{angles.style}.{head_dim}", [x, x.buffer.stride, heads, angles.factors], access)

    def kv_write(self, keys: View, values: View, head_dim: int, angles: Angles | None) -> int:
        """Keys (rotated by `angles`) and values into the pages; returns the layer's byte offset in a page."""
        heads = keys.cols // head_dim
        at = self._page_bytes
        self._page_bytes += heads * head_bytes(head_dim, self.kv)
        style, frequencies = (angles.style, angles.frequencies) if angles else (None, -1)
        self._kv_layers.append(KvLayer(at, heads, head_dim, style, frequencies))
        division = f"{heads} heads"
        access = [_read(v.buffer, division, ROWS, v.start, v.start + v.cols) for v in (keys, values)]
        access.append(Access(None, True, division, ROWS, at, at + 1))
        self._emit(f"kv_write.{head_dim}.{self.kv}", [keys, keys.buffer.stride, heads, values, at], access)
        return at

    def attention(self, q: View, kv_heads: int, head_dim: int, kv_at: int, scale: float) -> Buffer:
        """softmax(q k * scale) v over the sequence's pages, causal."""
        heads = q.cols // head_dim
        variant = f"{head_dim}.{heads // kv_heads}.{self.kv}"
        scores = Buffer((self.n_ctx + PAGE - 1) // PAGE * PAGE, (self.n_ctx + PAGE - 1) // PAGE * PAGE, heads)
        out = self.buffer(heads * head_dim)
        counter = FIRST_COUNTER + COUNTER_WORDS * self._counters
        self._counters += 1
        fields: list[Field] = [q, q.buffer.stride, heads, kv_heads, kv_at, float_bits(scale), scores, scores.stride]
        read = [_read(q.buffer, ALL, ALL, q.start, q.start + q.cols), Access(None, False, ALL, ALL, kv_at, kv_at + 1)]
        window = self.kv_hot_window if self.kv == "mixed" else 0
        self._emit(f"attention_scores.{variant}", [*fields, 0, 0, 0, window], [*read, _write(scores, "pages", PRIVATE)])
        written = [_read(scores, ALL, PRIVATE), _write(out, "slabs", "units")]
        self._emit(f"attention.{variant}", [*fields, out, out.stride, counter, window], [*read, *written])
        return out

    # ------------------------------------------------------------------------------------------------ assembly

    def _emit(self, opcode: str, fields: Sequence[Field], accesses: Sequence[Access]) -> None:
        if any(access.buffer in self._never_written for access in accesses):
            raise ValueError("a buffer that was quantized for one matmul is read again: give that matmul all weights")
        self._instructions.append(Instruction(opcode, tuple(fields), tuple(accesses), self.layer))

    def finish(self, logits: Buffer, vocab_size: int) -> Program:
        """Place the buffers, derive the barriers, and number the opcodes."""
        instructions = self._instructions
        placement = place(instructions, logits)
        masks = barriers(instructions, placement.offsets)
        numbers: dict[str, int] = {}
        table = np.zeros((len(instructions), I_WORDS), np.int64)
        for row, instruction, mask in zip(table, instructions, masks, strict=True):
            row[I_OPCODE] = numbers.setdefault(instruction.opcode, len(numbers))
            row[I_BARRIER] = mask
            row[2 : 2 + len(instruction.fields)] = [_resolve(f, placement.offsets) for f in instruction.fields]
        return Program(
            table=table,
            opcodes=list(numbers),
            layers=[i.layer for i in instructions],
            max_rows=self.max_rows,
            max_out=self.max_out,
            n_threads=self.n_threads,
            n_ctx=self.n_ctx,
            floats=placement.floats,
            quant_bytes=placement.quant_bytes,
            counters=self._counters,
            widest=max(256, *(a.buffer.stride for i in instructions for a in i.accesses if a.buffer)),
            constants=np.concatenate(self._constants) if self._constants else np.zeros(32, np.float32),
            page_bytes=self._page_bytes,
            kv=self.kv,
            kv_layers=self._kv_layers,
            vocab_size=vocab_size,
            logits=placement.offsets[logits],
            logits_stride=logits.stride,
        )


def _resolve(value: Field, offsets: dict[Buffer, int]) -> int:
    if isinstance(value, View):
        return offsets[value.buffer] + value.start
    return offsets[value] if isinstance(value, Buffer) else value


def _read(buffer: Buffer, one: str, many: str, start: int = 0, stop: int | None = None) -> Access:
    return Access(buffer, False, one, many, start, buffer.stride if stop is None else stop)


def _write(buffer: Buffer, one: str, many: str, start: int = 0, stop: int | None = None) -> Access:
    return Access(buffer, True, one, many, start, buffer.stride if stop is None else stop)
