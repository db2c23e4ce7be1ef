"""LSTM, GRU and RNN: the inputs' share of all time steps in one product, then step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.lowering import contiguous, copy, is_f32, pair_f32
from modelc.onnx.machine import address, float_bits
from modelc.onnx.operator import Lowered, Table
from modelc.onnx.operators.maps import sigmoid
from modelc.onnx.operators.matrices import panels_of, product
from modelc.onnx.values import Array

Activation = Callable[[Array], Any]
LONGEST = 10_000  # time steps that become instructions


class _Layer:
    """The inputs of a recurrent node, checked and with the time in front.

    Attributes:
        x: (time, batch, features).
        hidden: size of the state.
        directions: 1 or 2.
        lengths: int64 (batch,) or None where all sequences have the whole length.
        clip: limit of what activations get, inf for none.
    """

    def __init__(self, call: Call, x: Array, w: Array, r: Array, b: Array | None, lengths: Array | None, gates: int):
        if x.ndim != 3 or w.ndim != 3 or r.ndim != 3:
            raise call.fail("X, W and R must have three dimensions", got=f"{x.ndim}, {w.ndim}, {r.ndim}")
        self.batch_first = bool(call.attribute("layout", int, 0))
        self.x = np.swapaxes(x, 0, 1) if self.batch_first else x
        self.time, self.batch, features = self.x.shape
        self.hidden = call.attribute("hidden_size", int, r.shape[2])
        direction = call.choice("direction", "forward", ("forward", "reverse", "bidirectional"))
        self.directions = 2 if direction == "bidirectional" else 1
        self.reversed = [direction == "reverse", True][: self.directions]
        size = gates * self.hidden
        wanted: dict[str, tuple[Array, tuple[int, ...]]] = {
            "W": (w, (self.directions, size, features)),
            "R": (r, (self.directions, size, self.hidden)),
        }
        if b is not None:
            wanted["B"] = (b, (self.directions, 2 * size))
        for name, (array, shape) in wanted.items():
            if array.shape != shape:
                raise call.fail(f"{name} does not fit", got=list(array.shape), expected=list(shape))
        self.lengths = None if lengths is None else np.ascontiguousarray(lengths, np.int64)
        if self.lengths is not None and self.lengths.shape != (self.batch,):
            raise call.fail("the lengths do not fit", got=list(self.lengths.shape), expected=[self.batch])
        self.clip = call.attribute("clip", float, float("inf"))
        self._call = call

    def state(self, initial: Array | None, dtype: Any) -> Array:
        """An initial state, (directions, batch, hidden)."""
        shape = (self.directions, self.batch, self.hidden)
        if initial is None:
            return np.zeros(shape, dtype)
        state = np.swapaxes(initial, 0, 1) if self.batch_first else initial
        if state.shape != shape:
            raise self._call.fail("an initial state does not fit", got=list(state.shape), expected=list(shape))
        return state

    def turned(self, array: Array) -> Array:
        """(time, batch, ...) with each sequence turned around within its length."""
        if self.lengths is None:
            return array[::-1]
        steps = np.arange(self.time)[:, None]
        places = np.where(steps < self.lengths, self.lengths - 1 - steps, steps)
        return array[places, np.arange(self.batch)]

    def outputs(self, y: Array, *states: Array) -> tuple[Array, ...]:
        """Y (time, directions, batch, hidden) and states, in the node's layout."""
        if not self.batch_first:
            return (y, *states)
        return (np.transpose(y, (2, 0, 1, 3)), *(np.swapaxes(state, 0, 1) for state in states))

    def scan(self, d: int, states: Sequence[Array], step: Callable[[int], Sequence[Array]]) -> Array:
        """Runs `step` for each time step of direction `d`; returns what it made first, (time, batch, hidden).

        `step` gives new values for the states, (directions, batch, hidden) each; a sequence that has ended keeps its.
        """
        out = np.zeros((self.time, self.batch, self.hidden), states[0].dtype)
        for t in range(self.time):
            made = step(t)
            alive = np.bool_(True) if self.lengths is None else (t < self.lengths)[:, None]
            for state, new in zip(states, made, strict=True):
                state[d] = np.where(alive, new, state[d])
            out[t] = np.where(alive, made[0], 0)
        return self.turned(out) if self.reversed[d] else out

    def activations(self, defaults: list[str]) -> list[Activation]:
        """The functions of one direction after another."""
        names = self._call.attribute("activations", list, defaults * self.directions)
        alphas = list(self._call.attribute("activation_alpha", list, []))
        betas = list(self._call.attribute("activation_beta", list, []))
        if len(names) != len(defaults) * self.directions:
            raise self._call.fail("a wrong number of activations", got=len(names))
        made = []
        for name in names:
            if str(name).lower() not in _ACTIVATIONS:
                raise self._call.unsupported(f"the activation '{name}'")
            function, default_a, default_b = _ACTIVATIONS[str(name).lower()]
            a = alphas.pop(0) if default_a is not None and alphas else default_a
            b = betas.pop(0) if default_b is not None and betas else default_b
            made.append(_bound(function, a, b, self.clip))
        return made


def _bound(function: Any, a: float | None, b: float | None, clip: float) -> Activation:
    def apply(x: Array) -> Any:
        wide = x.astype(np.float64)
        return function(np.clip(wide, -clip, clip) if clip < np.inf else wide, a, b)

    return apply


_ACTIVATIONS: dict[str, tuple[Any, float | None, float | None]] = {
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "elu": (lambda x, a, b: np.where(x < 0, a * functions.expm1(x), x), 1.0, None),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0.0, 1.0), 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: np.where(x < 0, a * x, x), 0.01, None),
    "relu": (lambda x, a, b: np.maximum(x, 0.0), None, None),
    "scaledtanh": (lambda x, a, b: a * functions.tanh(b * x), 1.0, 1.0),
    "sigmoid": (lambda x, a, b: sigmoid(x), None, None),
    "softplus": (lambda x, a, b: functions.softplus(x), None, None),
    "softsign": (lambda x, a, b: x / (1.0 + np.abs(x)), None, None),
    "tanh": (lambda x, a, b: functions.tanh(x), None, None),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, 0.0), 1.0, None),
}


def lstm(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    peepholes: Array | None = None,
) -> Any:
    """Long short-term memory; gates in the order input, output, forget, cell."""
    layer = _Layer(call, x, w, r, b, lengths, 4)
    if peepholes is not None and peepholes.shape != (layer.directions, 3 * layer.hidden):
        expected = [layer.directions, 3 * layer.hidden]
        raise call.fail("the peepholes do not fit", got=list(peepholes.shape), expected=expected)
    h_first, c_first = layer.state(h0, x.dtype), layer.state(c0, x.dtype)
    plain = "activations" not in call.node.attributes and layer.time <= LONGEST
    if plain and lengths is None and is_f32(x, w, r, b, h0, c0, peepholes) and not layer.batch_first:
        return _lowered_lstm(call, layer, (w, r, b, peepholes), h0, c0)
    hidden, coupled = layer.hidden, bool(call.attribute("input_forget", int, 0))
    h, c = np.array(h_first), np.array(c_first)
    y = np.zeros((layer.time, layer.directions, layer.batch, hidden), x.dtype)
    functions_ = layer.activations(["Sigmoid", "Tanh", "Tanh"])
    for d in range(layer.directions):
        f, g, k = functions_[3 * d : 3 * d + 3]
        shares = _input_shares(call, layer, d, w, b)
        p = np.zeros(3 * hidden, x.dtype) if peepholes is None else peepholes[d]

        def step(t: int, d: int = d, f: Any = f, g: Any = g, k: Any = k, p: Any = p, shares: Any = shares) -> Any:
            gates = shares[t] + product(call, h[d], r[d].T)
            i, o, e, z = (gates[:, n * hidden : (n + 1) * hidden] for n in range(4))
            opened = f(i + p[:hidden] * c[d])
            kept = 1.0 - opened if coupled else f(e + p[2 * hidden :] * c[d])
            new = (kept * c[d] + opened * g(z)).astype(x.dtype)
            return (f(o + p[hidden : 2 * hidden] * new) * k(new)).astype(x.dtype), new

        y[:, d] = layer.scan(d, (h, c), step)
    return layer.outputs(y, h, c)


def _lowered_lstm(call: Call, layer: _Layer, weights: Any, h0: Array | None, c0: Array | None) -> Any:
    """As instructions: one product for the inputs, then for each step a product and the cell."""
    w, r, b, peepholes = weights
    hidden, batch, time = layer.hidden, layer.batch, layer.time
    y = call.empty((time, layer.directions, batch, hidden))
    h, c = call.empty((layer.directions, batch, hidden)), call.empty((layer.directions, batch, hidden))
    zero = call.lasting(np.zeros((), np.float32))
    copy(call, zero if h0 is None else h0, h)
    copy(call, zero if c0 is None else c0, c)
    x = contiguous(call, layer.x)
    for d in range(layer.directions):
        bias = None if b is None else call.prepared(3, b, f"sum {d}", partial(_bias_sum, call, b[d]))
        of_w = call.prepared(1, w, f"panels {d}", partial(panels_of, call, w[d].T))
        of_r = call.prepared(2, r, f"panels {d}", partial(panels_of, call, r[d].T))
        gates = call.empty((time, batch, 4 * hidden))
        _product(call, x.reshape(time * batch, -1), of_w, gates, 0 if bias is None else address(bias), False)
        own = None if peepholes is None else contiguous(call, peepholes[d])
        for step in range(time):
            t = time - 1 - step if layer.reversed[d] else step
            _product(call, h[d], of_r, gates[t], 0, True)
            places = (gates[t], c[d], h[d], y[t, d])
            cell = (*map(address, places), 0 if own is None else address(own), batch, hidden, float_bits(layer.clip))
            coupled = call.attribute("input_forget", int, 0)
            call.emit("array_lstm_cell", *cell, coupled, work=40 * batch * hidden)
    return Lowered(y, h, c)


def _bias_sum(call: Call, b: Array) -> Array:
    """The biases of inputs and of states are only ever used together."""
    half = len(b) // 2
    return pair_f32(call, "add", b[:half], b[half:])


def _product(call: Call, a: Array, panels: Array, y: Array, bias: int, add: bool) -> None:
    """Y = a @ panels [+ y] [+ bias], all rows contiguous."""
    m, k = a.shape
    n = y.shape[-1]
    if y.size and (k or not add):
        none = call.numbers([0, 0, 0])
        fields = (address(a), address(panels), address(y), m, n, k, k, n, bias, 1, none, int(add))
        call.emit("array_gemm", *fields, work=m * n * k)


def _input_shares(call: Call, layer: _Layer, d: int, w: Array, b: Array | None) -> Array:
    """X W^T + both biases for all time steps of direction `d`, turned around where it reads backwards."""
    x = layer.turned(layer.x) if layer.reversed[d] else layer.x
    shares = product(call, np.ascontiguousarray(x), w[d].T)
    if b is None:
        return shares
    half = b.shape[1] // 2
    return shares + (b[d, :half] + b[d, half:])


def gru(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
) -> Any:
    """Gated recurrent unit; gates in the order update, reset, hidden."""
    layer = _Layer(call, x, w, r, b, lengths, 3)
    hidden, after = layer.hidden, bool(call.attribute("linear_before_reset", int, 0))
    h = np.array(layer.state(h0, x.dtype))
    y = np.zeros((layer.time, layer.directions, layer.batch, hidden), x.dtype)
    functions_ = layer.activations(["Sigmoid", "Tanh"])
    for d in range(layer.directions):
        f, g = functions_[2 * d : 2 * d + 2]
        turned = layer.turned(layer.x) if layer.reversed[d] else layer.x
        shares = product(call, np.ascontiguousarray(turned), w[d].T)
        bias_w = np.zeros(3 * hidden, x.dtype) if b is None else b[d, : 3 * hidden]
        bias_r = np.zeros(3 * hidden, x.dtype) if b is None else b[d, 3 * hidden :]
        shares = shares + bias_w

        def step(t: int, d: int = d, f: Any = f, g: Any = g, shares: Any = shares, bias_r: Any = bias_r) -> Any:
            open_ = shares[t, :, : 2 * hidden] + product(call, h[d], r[d, : 2 * hidden].T) + bias_r[: 2 * hidden]
            update, reset = f(open_[:, :hidden]), f(open_[:, hidden:]).astype(x.dtype)
            if after:
                inner = reset * (product(call, h[d], r[d, 2 * hidden :].T) + bias_r[2 * hidden :])
            else:
                inner = product(call, reset * h[d], r[d, 2 * hidden :].T) + bias_r[2 * hidden :]
            new = g(shares[t, :, 2 * hidden :] + inner)
            return (((1.0 - update) * new + update * h[d]).astype(x.dtype),)

        y[:, d] = layer.scan(d, (h,), step)
    return layer.outputs(y, h)


def rnn(
    call: Call,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
) -> Any:
    """The simple recurrent layer: h = f(W x + R h + biases)."""
    layer = _Layer(call, x, w, r, b, lengths, 1)
    h = np.array(layer.state(h0, x.dtype))
    y = np.zeros((layer.time, layer.directions, layer.batch, layer.hidden), x.dtype)
    functions_ = layer.activations(["Tanh"])
    for d in range(layer.directions):
        shares = _input_shares(call, layer, d, w, b)

        def step(t: int, d: int = d, shares: Any = shares) -> Any:
            return (functions_[d](shares[t] + product(call, h[d], r[d].T)).astype(x.dtype),)

        y[:, d] = layer.scan(d, (h,), step)
    return layer.outputs(y, h)


RECURRENT: Table = {"GRU": gru, "LSTM": lstm, "RNN": rnn}
