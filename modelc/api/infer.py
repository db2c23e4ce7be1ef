"""`POST /infer`: numbers in, numbers out."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import numpy as np
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from modelc.api.answers import json_answer
from modelc.api.off_loop import computing
from modelc.api.request import ApiRequest
from modelc.errors import BadInputError

Numbers = list[Any]  # nested lists of numbers; the model says which shapes it takes


class InferFields(msgspec.Struct, kw_only=True):
    """One input, or a list of them in `inputs`; for graphs with several inputs, `inputs` has them by name."""

    input: Numbers | None = None
    inputs: list[Numbers] | dict[str, Any] | None = None


class InferAnswer(msgspec.Struct, kw_only=True):
    """What came of `input`, or of `inputs`."""

    output: Numbers | UnsetType = UNSET
    outputs: list[Any] | dict[str, Any] | UnsetType = UNSET


@post("/infer", status_code=200, opt={"body": InferFields, "answer": InferAnswer})
async def infer(request: ApiRequest) -> ASGIApp:
    """Run the model on numbers.

    A language model takes a vector in place of the first token's, cut or filled with zeros to its hidden size, and
    gives logits.
    """
    fields = await request.decode(InferFields)
    model = request.loaded
    model.require("infer")
    given = fields.inputs if fields.input is None else fields.input
    if given is None:
        raise BadInputError("a field is missing", param="input", expected="numbers, or a list of inputs in 'inputs'")

    def answer() -> ASGIApp:
        start_s = time.perf_counter()
        found = model.infer(given)
        request.server.metrics.durations.observe(time.perf_counter() - start_s)
        if isinstance(found, dict):
            outputs: Any = {name: _as_lists(array) for name, array in found.items()}
            return json_answer(InferAnswer(outputs=outputs), request.fallback_headers)
        outputs = _as_lists(found)
        body = InferAnswer(outputs=outputs) if fields.input is None else InferAnswer(output=outputs)
        return json_answer(body, request.fallback_headers)

    try:
        return await computing(request, answer)
    except BadInputError as error:
        if fields.input is None and error.param == "input" and "input" not in given:  # that is no name of the graph's
            error.param = "inputs"
        raise


def _as_lists(array: Any) -> list[Any]:
    if isinstance(array, list):  # an echo, or a sequence of arrays
        return [_as_lists(each) if isinstance(each, np.ndarray) else each for each in array]
    if array.dtype.kind not in "fiubOUS":  # floats of 16 bits and less, which JSON has no other form for
        array = array.astype(np.float32)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadInputError("the model's output is not finite numbers", hint="are the inputs in the right range?")
    lists: list[Any] = array.tolist()
    return lists
