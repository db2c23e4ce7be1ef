"""Operators of the domain `ai.onnx.ml`: linear models, trees and what prepares their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table
from modelc.onnx.operators.maps import sigmoid
from modelc.onnx.operators.matrices import product
from modelc.onnx.operators.norms import softmax_of
from modelc.onnx.operators.reductions import total
from modelc.onnx.values import Array

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC")
_KINDS = {"strings": object, "int64s": np.int64, "floats": np.float32}


def label_encoder(call: Call, x: Array) -> Array:
    """Each key's value, or the default."""
    keys, _ = _column(call, "keys")
    values, dtype = _column(call, "values")
    if len(keys) != len(values):
        raise call.fail("keys and values differ in number", got=f"{len(keys)} and {len(values)}")
    known = dict(zip(keys, values, strict=True))
    default = _default(call, dtype)
    not_a_number = next((value for key, value in known.items() if key != key), default)  # noqa: PLR0124
    found = [not_a_number if key != key else known.get(key, default) for key in x.reshape(-1).tolist()]  # noqa: PLR0124
    y = np.empty(len(found), dtype)
    y[:] = found
    return y.reshape(x.shape)


def _column(call: Call, name: str) -> tuple[list[Any], Any]:
    """The attribute `name_strings`, `name_int64s`, `name_floats` or `name_tensor`, and its element type."""
    for kind, dtype in _KINDS.items():
        if f"{name}_{kind}" in call.node.attributes:
            return call.attribute(f"{name}_{kind}", list), dtype
    if f"{name}_tensor" not in call.node.attributes:
        raise call.fail(f"there are no {name}")
    tensor = call.constant_value(call.node.attributes[f"{name}_tensor"])
    return tensor.reshape(-1).tolist(), tensor.dtype


def _default(call: Call, dtype: Any) -> Any:
    if "default_tensor" in call.node.attributes:
        return call.constant_value(call.node.attributes["default_tensor"]).reshape(-1)[0]
    if np.dtype(dtype) == object:
        return call.attribute("default_string", str, "_Unused")
    if np.dtype(dtype).kind in "iu":
        return call.attribute("default_int64", int, -1)
    return call.attribute("default_float", float, -0.0)


def feature_extractor(call: Call, x: Array, places: Array) -> Array:
    """Some columns."""
    index = places.reshape(-1).astype(np.int64)
    if index.size and not 0 <= index.min() <= index.max() < x.shape[-1]:
        raise call.fail("a column is out of range", got=index.tolist()[:5], expected=f"0 to {x.shape[-1] - 1}")
    y = np.take(x, index, -1)
    return y.reshape(1, -1) if x.ndim == 1 else y


def binarizer(call: Call, x: Array) -> Array:
    """1 above the threshold, else 0."""
    return (x > call.attribute("threshold", float, 0.0)).astype(x.dtype)


def scaler(call: Call, x: Array) -> Array:
    """(x - offset) * scale, for all columns or each."""
    offset, scale = (np.array(call.attribute(name, list), np.float32) for name in ("offset", "scale"))
    return (x.astype(np.float32) - offset) * scale


def normalizer(call: Call, x: Array) -> Array:
    """Rows over their norm."""
    norm = call.choice("norm", "MAX", ("MAX", "L1", "L2"))
    wide = np.atleast_2d(x).astype(np.float64)
    if norm == "MAX":
        size = np.max(np.abs(wide), axis=-1)
    else:
        size = total(np.abs(wide)) if norm == "L1" else np.sqrt(total(wide * wide))
    divisor = np.where(size == 0, 1.0, size)[..., None]
    return (wide / divisor).reshape(x.shape).astype(np.float32)


def imputer(call: Call, x: Array) -> Array:
    """X with other values where one that stands for a missing one is."""
    kind = "int64" if x.dtype.kind in "iu" else "float"
    values = np.array(call.attribute(f"imputed_value_{kind}s", list), x.dtype)
    replaced = call.attribute(
        f"replaced_value_{kind}", int if kind == "int64" else float, 0 if kind == "int64" else 0.0
    )
    missing = np.isnan(x) if kind == "float" and np.isnan(replaced) else x == replaced
    return np.where(missing, values, x)


def linear_regressor(call: Call, x: Array) -> Array:
    """X times coefficients, plus intercepts."""
    _only(call, ("NONE",))
    return _linear(call, x, call.attribute("targets", int, 1)).astype(np.float32)


def linear_classifier(call: Call, x: Array) -> tuple[Array, Array]:
    """The class with the largest score, and the scores."""
    labels = _labels(call)
    transform = _only(call, _TRANSFORMS)
    rows = len(call.attribute("coefficients", list)) // max(np.atleast_2d(x).shape[-1], 1)
    scores = _linear(call, x, rows)
    if rows == 1 and len(labels) == 2:
        picked, both = _of_two(labels, scores[:, 0], transform, 0.5 if transform == "LOGISTIC" else 0.0)
        if transform == "NONE":  # as ONNX Runtime has it
            both[:, 0] = 1.0 - both[:, 1]
        return picked, both
    return _chosen(call, labels, scores, transform)


def _linear(call: Call, x: Array, rows: int) -> Array:
    wide = np.atleast_2d(x).astype(np.float64)
    coefficients = np.array(call.attribute("coefficients", list), np.float64)
    if rows < 1 or coefficients.size != rows * wide.shape[-1]:
        raise call.fail("the coefficients do not fit", got=coefficients.size, expected=f"{rows} x {wide.shape[-1]}")
    y = product(call, wide, coefficients.reshape(rows, -1).T)
    return y + np.array(call.attribute("intercepts", list, [0.0] * rows))


def _labels(call: Call) -> Array:
    for name, dtype in (("classlabels_ints", np.int64), ("classlabels_int64s", np.int64)):
        if name in call.node.attributes:
            return np.array(call.integers(name), dtype)
    return np.array(call.attribute("classlabels_strings", list), object)


def _only(call: Call, transforms: tuple[str, ...]) -> str:
    return call.choice("post_transform", "NONE", transforms)


def _transformed(scores: Array, transform: str) -> Array:
    if transform == "SOFTMAX":
        return softmax_of(scores, -1)
    return sigmoid(scores) if transform == "LOGISTIC" else scores


def _chosen(call: Call, labels: Array, scores: Array, transform: str) -> tuple[Array, Array]:
    if scores.shape[1] != len(labels):
        raise call.fail("classes and scores differ in number", got=f"{len(labels)} and {scores.shape[1]}")
    return labels[np.argmax(scores, axis=1)], _transformed(scores, transform).astype(np.float32)


def _of_two(labels: Array, score: Array, transform: str, limit: float) -> tuple[Array, Array]:
    """Two classes with one score, that of the second."""
    second = _transformed(score, transform) if transform == "LOGISTIC" else score
    first = 1.0 - second if transform == "LOGISTIC" or limit else -second
    return labels[(second > limit).astype(np.int64)], np.stack([first, second], axis=1).astype(np.float32)


class _Trees:
    """The nodes of an ensemble, walked by all rows at once."""

    def __init__(self, call: Call) -> None:
        count = len(call.integers("nodes_treeids"))
        self.trees, ids = (np.array(call.integers(f"nodes_{name}", None, count)) for name in ("treeids", "nodeids"))
        modes = call.attribute("nodes_modes", list)
        wrong = next((mode for mode in modes if mode not in _MODES), None)
        if wrong is not None or len(modes) != count:
            raise call.fail("a wrong mode of a node", got=wrong or f"{len(modes)} modes", expected=", ".join(_MODES))
        self.modes = np.array([_MODES.index(mode) for mode in modes])
        self.features = np.array(call.integers("nodes_featureids", None, count))
        self.values = np.array(call.attribute("nodes_values", list), np.float32)
        self.missing = np.array(call.integers("nodes_missing_value_tracks_true", [0] * count, count), np.bool_)
        self.place = {key: i for i, key in enumerate(zip(self.trees.tolist(), ids.tolist(), strict=True))}
        branches = self.modes != _MODES.index("LEAF")
        self.next = []
        for name in ("falsenodeids", "truenodeids"):
            targets = call.integers(f"nodes_{name}", None, count)
            found = [self.place.get(key, -1) for key in zip(self.trees.tolist(), targets, strict=True)]
            self.next.append(np.where(branches, found, np.arange(count)))
        if len(self.values) != count or min(map(np.min, self.next), default=0) < 0:
            raise call.fail("the nodes of the trees do not fit together")
        self.roots = [int(np.flatnonzero(self.trees == tree)[0]) for tree in np.unique(self.trees)]
        self._call = call

    def leaves(self, x: Array) -> Array:
        """The leaf of each row in each tree, (rows, trees)."""
        if self.features.size and not 0 <= self.features.min() <= self.features.max() < x.shape[1]:
            raise self._call.fail(
                "a feature is out of range", got=int(self.features.max()), expected=f"below {x.shape[1]}"
            )
        rows = np.arange(len(x))[:, None]
        at = np.broadcast_to(np.array(self.roots), (len(x), len(self.roots))).copy()
        leaf = _MODES.index("LEAF")
        for _ in range(len(self.modes) + 1):
            mode = self.modes[at]
            if (mode == leaf).all():
                return at
            have, limit = x[rows, self.features[at]], self.values[at]
            true = np.select([mode == i for i in range(6)], [f(have, limit) for f in _COMPARISONS], False)
            true = np.where(np.isnan(have), self.missing[at], true)
            at = np.where(true, self.next[1][at], self.next[0][at])
        raise self._call.fail("a tree has a cycle")


_COMPARISONS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)


def _tree_scores(call: Call, x: Array, what: str, count: int) -> Array:
    """Sums of the leaves' weights, float64 (rows, count), trees in ascending order."""
    trees = _Trees(call)
    names = ("treeids", "nodeids", "ids")
    owners, nodes, ids = (np.array(call.integers(f"{what}_{name}")) for name in names)
    weights = np.array(call.attribute(f"{what}_weights", list), np.float64)
    if not len(owners) == len(nodes) == len(ids) == len(weights) or (
        ids.size and not 0 <= ids.min() <= ids.max() < count
    ):
        raise call.fail("the weights of the leaves do not fit together")
    of_node = np.zeros((len(trees.modes), count))
    for key, target, weight in zip(zip(owners.tolist(), nodes.tolist(), strict=True), ids, weights, strict=True):
        if key not in trees.place:
            raise call.fail("a weight belongs to no node", got=key)
        of_node[trees.place[key], target] += weight
    leaves = trees.leaves(np.atleast_2d(x).astype(np.float32))
    call.room((len(leaves), count), np.float64)
    scores = np.zeros((len(leaves), count))
    for tree in range(leaves.shape[1]):
        scores = scores + of_node[leaves[:, tree]]
    return scores


def tree_regressor(call: Call, x: Array) -> Array:
    """Sums or means of the trees' leaves."""
    _only(call, ("NONE",))
    count = call.attribute("n_targets", int, 1)
    scores = _tree_scores(call, x, "target", count)
    if call.choice("aggregate_function", "SUM", ("SUM", "AVERAGE")) == "AVERAGE":
        scores = scores / max(len(set(call.integers("nodes_treeids"))), 1)
    return (scores + np.array(call.attribute("base_values", list, [0.0] * count))).astype(np.float32)


def tree_classifier(call: Call, x: Array) -> tuple[Array, Array]:
    """The class with the largest sum of leaves, and the sums."""
    labels = _labels(call)
    transform = _only(call, _TRANSFORMS)
    scores = _tree_scores(call, x, "class", len(labels))
    base = call.attribute("base_values", list, [])
    if len(labels) == 2 and set(call.integers("class_ids")) == {0}:  # one score for both
        score = scores[:, 0] + (base[-1] if base else 0.0)
        positive = min(call.attribute("class_weights", list), default=0.0) >= 0
        if transform == "LOGISTIC":
            picked, both = _of_two(labels, score, transform, 0.5)
            return (labels[(score > (0.5 if positive else 0.0)).astype(np.int64)] if positive else picked), both
        return _of_two(labels, score, "NONE", 0.5 if positive else 0.0)
    return _chosen(call, labels, scores + np.array(base or [0.0]), transform)


def zip_map(call: Call, x: Array) -> list[dict[Any, float]]:
    """Each row as numbers by label."""
    labels = _labels(call).tolist()
    if x.ndim != 2 or x.shape[1] != len(labels):
        raise call.fail("labels and columns differ in number", got=list(x.shape), expected=len(labels))
    return [dict(zip(labels, row, strict=True)) for row in x.tolist()]


CLASSICAL: Table = {
    "ArrayFeatureExtractor": feature_extractor,
    "Binarizer": binarizer,
    "Imputer": imputer,
    "LabelEncoder": {2: label_encoder},
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Normalizer": normalizer,
    "Scaler": scaler,
    "TreeEnsembleClassifier": tree_classifier,
    "TreeEnsembleRegressor": tree_regressor,
    "ZipMap": zip_map,
}
