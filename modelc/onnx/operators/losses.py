"""Losses, which exported training graphs and evaluations have."""

from __future__ import annotations

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table
from modelc.onnx.operators.norms import softmax_of
from modelc.onnx.operators.reductions import total
from modelc.onnx.values import Array


def negative_log_likelihood(call: Call, x: Array, target: Array, weight: Array | None = None) -> Array:
    """-x of the target class, (batch, classes, ...) by weights, as they are, summed, or averaged over the weights."""
    return _loss(call, x, target, weight)


def softmax_cross_entropy(call: Call, x: Array, target: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """The same of the logarithm of softmax over classes, which is the second output."""
    logs = softmax_of(x.astype(np.float64), 1, "log").astype(x.dtype)
    return _loss(call, logs, target, weight), logs


def _loss(call: Call, x: Array, target: Array, weight: Array | None) -> Array:
    how = call.choice("reduction", "mean", ("none", "sum", "mean"))
    ignored = call.optional("ignore_index", int)
    if x.ndim < 2 or target.shape != (x.shape[0], *x.shape[2:]):
        raise call.fail("the target does not fit", got=list(target.shape), expected=[x.shape[0], *x.shape[2:]])
    counted = np.ones(target.shape, np.bool_) if ignored is None else target != ignored
    classes = np.where(counted, target, 0)
    if classes.size and (classes.min() < 0 or classes.max() >= x.shape[1]):
        raise call.fail("a class is out of range", got=int(classes.max()), expected=f"0 to {x.shape[1] - 1}")
    chosen = np.take_along_axis(x, classes[:, None], axis=1)[:, 0]
    shares = np.where(counted, 1.0 if weight is None else weight[classes].astype(np.float64), 0.0)
    losses = -chosen.astype(np.float64) * shares
    if how == "none":
        return losses.astype(x.dtype)
    summed = total(losses.reshape(-1))
    return np.asarray(summed if how == "sum" else summed / total(shares.reshape(-1))).astype(x.dtype)


LOSSES: Table = {
    "NegativeLogLikelihoodLoss": negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": softmax_cross_entropy,
}
