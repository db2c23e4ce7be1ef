"""Sums of products by Einstein's convention, as transpositions and products of matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table
from modelc.onnx.operators.matrices import product
from modelc.onnx.operators.reductions import total
from modelc.onnx.values import Array

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def einsum(call: Call, *arrays: Array) -> Array:
    """The equation's sum over all letters that the result does not have."""
    equation = call.attribute("equation", str).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays) or not all(map(_TERM.fullmatch, [*terms, right])):
        raise call.fail("the equation does not fit the inputs", got=f"'{equation}'")
    most = max(
        (x.ndim - len(t.replace("...", "")) for t, x in zip(terms, arrays, strict=True) if "..." in t), default=0
    )
    dots = [str(i) for i in range(most)]  # the dimensions of the ellipsis, from the left
    labels = [_labels(call, term, x.ndim, dots) for term, x in zip(terms, arrays, strict=True)]
    every = [label for term in labels for label in term]
    if arrow:
        wanted = _labels(call, right, len(right.replace("...", "")) + (most if "..." in right else 0), dots)
    else:
        wanted = dots + sorted({label for label in every if every.count(label) == 1} - set(dots))
    if not set(wanted) <= set(every) or len(set(wanted)) != len(wanted):
        raise call.fail("the equation's result has other letters than its terms", got=f"'{equation}'")
    result, names = _own(arrays[0], labels[0], [*wanted, *(label for term in labels[1:] for label in term)])
    for i in range(1, len(arrays)):
        needed = [*wanted, *(label for term in labels[i + 1 :] for label in term)]
        other, other_names = _own(arrays[i], labels[i], [*needed, *names])
        result, names = _joined(call, result, names, other, other_names, needed)
    result, names = _own(result, names, wanted)
    return np.transpose(result, [names.index(label) for label in wanted])


def _labels(call: Call, term: str, n_dims: int, dots: Sequence[str]) -> list[str]:
    before, ellipsis, after = term.partition("...")
    middle = n_dims - len(before) - len(after)
    if middle < 0 or (middle and not ellipsis):
        raise call.fail("a term of the equation does not fit its input", got=f"'{term}' for {n_dims} dimensions")
    return [*before, *(dots[len(dots) - middle :] if middle else []), *after]


def _own(x: Array, names: Sequence[str], needed: Sequence[str]) -> tuple[Array, list[str]]:
    """Diagonals of letters that occur twice, and sums over letters that nobody needs."""
    names = list(names)
    for label in dict.fromkeys(names):
        while names.count(label) > 1:
            first = names.index(label)
            second = names.index(label, first + 1)
            x = np.moveaxis(np.diagonal(x, 0, first, second), -1, first)
            del names[second]
    for label in [name for name in names if name not in needed]:
        axis = names.index(label)
        x = total(np.moveaxis(x, axis, -1)).astype(x.dtype)
        del names[axis]
    return x, names


def _joined(
    call: Call, a: Array, names_a: list[str], b: Array, names_b: list[str], needed: Sequence[str]
) -> tuple[Array, list[str]]:
    """A and B multiplied and summed over what both have and nobody needs."""
    shared = [label for label in names_a if label in names_b]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    only_a = [label for label in names_a if label not in shared]
    only_b = [label for label in names_b if label not in shared]
    left = np.transpose(a, [names_a.index(label) for label in (*batch, *only_a, *inner)])
    right = np.transpose(b, [names_b.index(label) for label in (*batch, *inner, *only_b)])
    n, m = len(batch), len(only_a)
    sizes = left.shape[n + m :], right.shape[n : n + len(inner)]
    common = np.broadcast_shapes(*sizes)
    left = np.broadcast_to(left, (*left.shape[: n + m], *common))
    right = np.broadcast_to(right, (*right.shape[:n], *common, *right.shape[n + len(inner) :]))
    rows = left.reshape(*left.shape[:n], int(np.prod(left.shape[n : n + m])), -1)
    columns = right.reshape(*right.shape[:n], int(np.prod(common)), -1)
    call.room((*np.broadcast_shapes(rows.shape[:n], columns.shape[:n]), rows.shape[-2], columns.shape[-1]), a.dtype)
    y = product(call, rows, columns)
    shape = (*y.shape[:n], *left.shape[n : n + m], *right.shape[n + len(inner) :])
    return y.reshape(shape), [*batch, *only_a, *only_b]


EINSUM: Table = {"Einsum": einsum}
