"""Runs the backend test cases of the `onnx` package: each is a model with inputs and the outputs it must give."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np

from modelc.errors import ModelcError, UnsupportedError
from modelc.formats import open_model
from modelc.onnx.machine import Machine
from modelc.onnx.session import Session


@dataclass(frozen=True)
class Outcome:
    """What became of one case.

    Attributes:
        name: of the case.
        domain: of its operator.
        status: `right`, `unsupported`, `wrong`, or `failed` (another error).
        detail: the error, or what differs.
    """

    name: str
    domain: str
    status: str
    detail: str = ""


def node_cases() -> list[Any]:
    """All node cases of the installed `onnx` package."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(load_model_tests(kind="node"))


def outcomes(cases: Sequence[Any], machine: Machine) -> Iterator[Outcome]:
    """Runs cases one after another."""
    with TemporaryDirectory() as folder:
        for case in cases:
            yield run_case(case, machine, Path(folder))


def run_case(case: Any, machine: Machine, folder: Path) -> Outcome:
    """Runs one case three times, so that its recording runs too: every answer must be right."""
    domain = next((node.domain for node in case.model.graph.node if node.domain), "")
    path = folder / "case.onnx"
    path.write_bytes(case.model.SerializeToString())
    try:
        session = Session(open_model(path), machine)
        for inputs, expected in case.data_sets:
            names = [each.name for each in case.model.graph.input]
            feeds = {name: _value(value) for name, value in zip(names, inputs, strict=False)}
            for _ in range(3):
                difference = _difference(session.run_values(feeds), expected, case.rtol, case.atol, case.name)
                if difference:
                    return Outcome(case.name, domain, "wrong", difference)
    except UnsupportedError as error:
        return Outcome(case.name, domain, "unsupported", str(error))
    except ModelcError as error:
        return Outcome(case.name, domain, "failed", str(error))
    return Outcome(case.name, domain, "right")


def _value(value: Any) -> Any:
    from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def _difference(values: Sequence[Any], expected: Sequence[Any], rtol: float, atol: float, name: str) -> str:
    if len(values) < len(expected):
        return f"{len(values)} outputs instead of {len(expected)}"
    for i, (value, right) in enumerate(zip(values, map(_value, expected), strict=False)):
        found = _unlike(value, right, rtol, atol, name)
        if found:
            return f"output {i}: {found}"
    return ""


def _unlike(value: Any, right: Any, rtol: float, atol: float, name: str) -> str:
    if isinstance(right, list):
        if not isinstance(value, list) or len(value) != len(right):
            return "another sequence"
        return next(filter(None, (_unlike(a, b, rtol, atol, name) for a, b in zip(value, right, strict=True))), "")
    if right is None:
        return "" if value is None else "a value instead of none"
    right = np.asarray(right)
    if not isinstance(value, np.ndarray) or value.shape != right.shape:
        return f"shape {getattr(value, 'shape', None)} instead of {right.shape}"
    if value.dtype != right.dtype:
        return f"type {value.dtype} instead of {right.dtype}"
    if "bernoulli" in name or "training_dropout" in name:
        return ""  # random numbers: no two implementations agree on them
    if right.dtype.kind in "OSUiub" or "int" in right.dtype.name:
        return "" if np.array_equal(value, right) else "other values"
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    a, b = value.astype(wide), right.astype(wide)
    real = ml_dtypes.finfo(right.real.dtype if right.dtype.kind == "c" else right.dtype)
    if right.dtype.itemsize == 2:  # the expected values were rounded after each step, to 8 or 11 bits
        rtol = max(rtol, 2 * float(real.eps))
    elif right.size:  # what is left where large terms cancel each other
        atol = max(atol, 8 * float(real.eps) * float(np.nanmax(np.abs(b), where=np.isfinite(b), initial=0.0)))
    if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    return f"difference {np.nanmax(np.abs(a - b)) if a.size else 0}"
