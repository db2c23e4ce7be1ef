import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from modelc.dtypes import DTYPES, DType
from modelc.errors import BadFileError, BadInputError
from modelc.ir import Model, Tensor, verify


def tensor(name: str = "a", kind: str = "f32", shape: tuple[int, ...] = (2, 3), **fields: Any) -> Tensor:
    stored = np.arange(DTYPES[kind].nbytes(shape), dtype=np.uint8)
    return replace(Tensor(name, DTYPES[kind], shape, stored), **fields)


def model(*tensors: Tensor, **fields: Any) -> Model:
    named = {each.name: each for each in tensors}
    return replace(Model("m", "llama", "gguf", {"general.name": "M", "list": [1, [2.5, "x"]]}, named), **fields)


def cycle() -> list[Any]:
    knot: list[Any] = []
    knot += [knot, knot]
    return knot


def part_of_a_block() -> Tensor:
    return replace(tensor(kind="q4_0", shape=(1, 32)), shape=(1, 33))


def test_a_sound_model_passes() -> None:
    verify(model(tensor("a"), tensor("b", "q4_0", (2, 32)), tensor("c", "f64", ()), tensor("d", shape=(0, 3))))


def test_totals_count_elements_and_source_bytes() -> None:
    sound = model(tensor("a"), tensor("b", "q4_0", (2, 32)))
    assert sound.total_params == 6 + 64
    assert sound.total_bytes == 24 + 36


BROKEN: dict[str, tuple[str, Callable[[], Model]]] = {
    "empty name": ("the model has no proper name", lambda: model(name="")),
    "name that is no text": ("the model has no proper name: x.gguf.* got 3", lambda: model(name=3)),
    "empty architecture": ("the architecture has no proper name", lambda: model(architecture="")),
    "endless format": ("the source format has no proper name", lambda: model(source_format="x" * 70000)),
    "array in metadata": (
        "metadata is not JSON: x.gguf.* got a value of type ndarray",
        lambda: model(metadata={"x": np.ones(3)}),
    ),
    "scalar of numpy": ("metadata is not JSON: .*float32", lambda: model(metadata={"x": [np.float32(1)]})),
    "bytes in metadata": ("metadata is not JSON: .*bytes", lambda: model(metadata={"x": {"y": b"z"}})),
    "number as a key": ("metadata is not JSON: x.gguf.* got the key 1", lambda: model(metadata={"x": {1: 2}})),
    "cycle": ("metadata is not JSON: x.gguf.* got more than 32 levels", lambda: model(metadata={"x": cycle()})),
    "list for metadata": ("metadata is not JSON: x.gguf.* got a list", lambda: model(metadata=[])),
    "another key": ("stands under another name: x.gguf.* got 'b' for 'a'", lambda: model(tensors={"b": tensor("a")})),
    "no order": ("tensors are not sorted", lambda: model(tensor("b"), tensor("a"))),
    "nameless tensor": ("a tensor has no proper name", lambda: model(tensor(""))),
    "own dtype": ("dtype is unknown: .*tensor 'a'", lambda: model(tensor(dtype=DType("f32", 1, 5, 0, "<f4")))),
    "negative dimension": (
        r"wrong dimension: x.gguf, tensor 'a': got \[-1, 3\]",
        lambda: model(replace(tensor(), shape=(-1, 3))),
    ),
    "nine dimensions": ("wrong dimension: .*expected at most 8", lambda: model(tensor(shape=(1,) * 9))),
    "fractional dimension": (r"wrong dimension: .*2\.0", lambda: model(replace(tensor(), shape=(2.0, 3)))),
    "part of a block": (r"not whole blocks: .*q4_0 \[1, 33\]", lambda: model(part_of_a_block())),
    "blocks without rows": ("not whole blocks: ", lambda: model(replace(part_of_a_block(), shape=()))),
    "odd layout": ("layout is unknown: .*'rows'", lambda: model(tensor(layout="rows"))),
    "lanes of a vector": ("layout is unknown: .*'lanes'", lambda: model(tensor(shape=(4,), layout="lanes"))),
    "floats for bytes": ("not a flat array", lambda: model(tensor(stored=np.zeros(6, np.float32)))),
    "strided bytes": ("not a flat array", lambda: model(tensor(stored=np.zeros(48, np.uint8)[::2]))),
    "no array": ("not a flat array: .*got bytes", lambda: model(tensor(stored=bytes(24)))),
    "a byte too few": ("do not fit its shape: .*got 23 bytes", lambda: model(tensor(stored=np.zeros(23, np.uint8)))),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_broken_rule_is_one_clear_error(case: str) -> None:
    message, make = BROKEN[case]
    with pytest.raises(BadFileError, match=message) as caught:
        verify(make(), path="x.gguf")
    assert caught.value.path == "x.gguf"
    assert "expected" in str(caught.value)


def test_the_empty_string_is_a_key_inside_metadata_and_not_of_it() -> None:
    verify(model(metadata={"vocab": {"": 0}}))
    with pytest.raises(BadFileError, match=r"metadata is not JSON: .*the key ''"):
        verify(model(metadata={"": 0}))


def test_shared_containers_are_walked_once_a_level() -> None:
    shared: list[Any] = ["x"]
    for _ in range(25):
        shared = [shared, shared]  # 2^25 paths
    verify(model(metadata={"x": shared}))


def test_json_keeps_everything() -> None:
    metadata = {
        "text": "\udcff日本\n",
        "numbers": [1, -2.5, (1 << 64) - 1, True, None],
        "float": float("inf"),
        "map": {},
    }
    before = model(tensor("a"), tensor("b", "q4_0", (2, 32), layout="lanes"), tensor("c", "f64", ()), metadata=metadata)
    after = Model.from_json(before.to_json())
    assert (after.name, after.architecture, after.source_format) == ("m", "llama", "gguf")
    assert after.metadata == metadata
    assert [(t.name, t.dtype, t.shape, t.layout) for t in after.tensors.values()] == [
        ("a", DTYPES["f32"], (2, 3), "plain"),
        ("b", DTYPES["q4_0"], (2, 32), "lanes"),
        ("c", DTYPES["f64"], (), "plain"),
    ]
    assert all(np.array_equal(after.tensors[name].stored, t.stored) for name, t in before.tensors.items())
    assert after.to_json() == before.to_json()


def test_from_json_sorts_tensors() -> None:
    fields = json.loads(model(tensor("a"), tensor("b")).to_json())
    fields["tensors"].reverse()
    assert list(Model.from_json(json.dumps(fields)).tensors) == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: fields.pop("name"), "not a model in JSON: 'text': got KeyError 'name'"),
        (lambda fields: fields["tensors"][0].update(dtype="q9"), "not a model in JSON: .*'q9'"),
        (lambda fields: fields["tensors"][0].update(data="?"), "not a model in JSON: .*Error"),
        (lambda fields: fields.update(tensors=3), "not a model in JSON"),
        (lambda fields: fields.update(metadata=3), "not a model in JSON"),
        (lambda fields: fields["tensors"].append(fields["tensors"][0]), "two tensors have the same name"),
    ],
)
def test_from_json_refuses_other_json(change: Callable[[Any], object], message: str) -> None:
    fields = json.loads(model(tensor("a")).to_json())
    change(fields)
    with pytest.raises(BadInputError, match=message):
        Model.from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "[", "[]", "3", "[" * 100_000])
def test_from_json_refuses_other_text(text: str) -> None:
    with pytest.raises(BadInputError, match="not a model in JSON"):
        Model.from_json(text)


def test_from_json_checks_the_rules() -> None:
    fields = json.loads(model(tensor("a")).to_json())
    fields["tensors"][0]["shape"] = [2, 4]
    with pytest.raises(BadFileError, match="do not fit its shape"):
        Model.from_json(json.dumps(fields))
