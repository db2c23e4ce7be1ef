"""`/infer`, and models that answer with their input."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from litestar import Litestar
from litestar.testing import TestClient

from modelc.ir import Model
from modelc.runtime.echo import EchoModel
from modelc.runtime.loaded import LoadedModel
from modelc.runtime.loading import loaded_model
from modelc.runtime.mlp import Mlp
from modelc.runtime.options import Options
from tests.api.conftest import ClientMaker
from tests.onnx.graphs import graph_model, node, opened, value
from tests.runtime.tiny_mlp import mlp_of
from tests.runtime.tiny_model import model_of

Client = TestClient[Litestar]


@pytest.fixture(scope="module")
def mlp() -> Iterator[Mlp]:
    with Mlp(mlp_of({"layer0.weight": (4, 3), "layer1.weight": (2, 4)}), Options(1)) as model:
        yield model


@pytest.fixture
def client(client_of: ClientMaker, mlp: Mlp) -> Client:
    return client_of(mlp)


@pytest.fixture
def echo(client_of: ClientMaker) -> Client:
    source = mlp_of({"a.b": (4, 4)})
    return client_of(EchoModel(Model("strange", "mamba", source.source_format, {}, source.tensors), 1))


def test_one_vector_gives_one(client: Client, mlp: Mlp) -> None:
    assert client.post("/infer", json={"input": [1, 2.5, -3]}).json() == {"output": mlp.infer([1, 2.5, -3]).tolist()}


def test_a_batch_gives_one_row_for_each(client: Client, mlp: Mlp) -> None:
    rows = [[1, 2, 3], [4, 5, 6]]
    assert client.post("/infer", json={"inputs": rows}).json() == {"outputs": mlp.infer(rows).tolist()}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "a field is missing: 'input'"),
        ({"input": [1, 2]}, "wrong length: 'input': got 2 numbers, expected 3 numbers"),
        ({"inputs": [[1, 2, 3, 4]]}, "wrong length: 'inputs': got 4 numbers, expected 3 numbers"),
        ({"inputs": [[1, 2, 3], [1]]}, "expected 3 numbers in each"),
        ({"input": []}, "got nothing"),
        ({"inputs": []}, "got nothing"),
        ({"input": ["a"]}, "not a vector: 'input': got text [1], expected"),
        ({"input": [None]}, "not a vector"),
        ({"input": {"a": 1}}, "wrong type: 'input': got object, expected array"),
        ({"inputs": {"x": [1]}}, "not a vector: 'inputs': got object, expected"),
        ({"inputs": [["a"]]}, "not a vector: 'inputs': got"),
        ({"input": 5}, "wrong type"),
        ({"input": [1e39, 1e39, -1e39]}, "not finite"),
        ({"input": [[[1]]]}, "not a vector"),
    ],
)
def test_what_does_not_fit_is_refused(client: Client, body: dict[str, Any], message: str) -> None:
    answer = client.post("/infer", json=body)
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["error"]["message"]


@pytest.fixture(scope="module")
def graph() -> Iterator[LoadedModel]:
    """Two inputs by name, one of them whole numbers; three outputs, one of them texts."""
    nodes = [node("Mul", ["x", "f"], ["y"]), node("Add", ["n", "n"], ["m"]), node("Cast", ["n"], ["t"], to=8)]
    inputs = [value("x", shape=["b", 2]), value("n", shape=["b"], dtype=np.int64)]
    with loaded_model(opened(graph_model(nodes, inputs, ["y", "m", "t"], {"f": np.float32(2)})), Options(1)) as model:
        yield model


def test_a_graph_takes_inputs_and_gives_outputs_by_name(client_of: ClientMaker, graph: LoadedModel) -> None:
    answer = client_of(graph).post("/infer", json={"inputs": {"x": [[1, 2.5]], "n": [7]}})
    assert answer.json() == {"outputs": {"y": [[2, 5]], "m": [14], "t": ["7"]}}


@pytest.mark.parametrize(
    ("inputs", "param", "message"),
    [
        ({"x": [[1, 2]]}, "n", "an input is missing: 'n': expected i64 [b]"),
        ({"x": [[1, 2]], "n": [1], "z": 1}, "z", "no such input: 'z': expected x, n"),
        ({"x": [[1, 2, 3]], "n": [1]}, "x", "a wrong shape: 'x': got f32 [1, 3], expected f32 [b, 2]"),
        ({"x": [[1, 2]], "n": [1.5]}, "n", "not whole numbers"),
        ({"x": [[1], [1, 2]], "n": [1]}, "x", "rows of different lengths"),
        ({"x": [[1, None]], "n": [1]}, "x", "not numbers"),
        ([[1, 2]], "inputs", "the model takes several inputs by name"),
    ],
)
def test_a_wrong_input_of_a_graph_is_a_bad_request_with_its_name(
    client_of: ClientMaker, graph: LoadedModel, inputs: Any, param: str, message: str
) -> None:
    answer = client_of(graph).post("/infer", json={"inputs": inputs})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert message in error["message"]


def test_an_mlp_asked_for_text_says_what_it_can_do(client: Client) -> None:
    answer = client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hi"}]})
    assert answer.status_code == 400
    assert "an MLP cannot generate text; it can turn numbers into numbers (infer)" in answer.json()["error"]["message"]
    assert client.post("/embeddings", json={"input": "a"}).status_code == 400


def test_what_needs_no_inference_works_for_every_kind(client: Client, mlp: Mlp) -> None:
    assert client.get("/health").json() == {"status": "ok", "model": "tiny", "architecture": "mlp"}
    assert client.get("/info").json()["tensors"] == ["layer0.weight", "layer1.weight"]
    assert client.get("/props").json()["chat_template"] is None
    assert "max_model_len" not in client.get("/v1/models").json()["data"][0]
    assert client.post("/tokenize", json={"input": "ab"}).json() == {"tokens": [97, 98], "count": 2}
    assert "modelc_steps_total 0.0" in client.get("/metrics").text.splitlines()


def test_a_transformer_takes_a_vector_of_any_length_and_gives_logits(client_of: ClientMaker) -> None:
    with model_of() as model:
        client = client_of(model)
        output = client.post("/infer", json={"input": [0.5]}).json()["output"]
        assert output == model.infer([0.5]).tolist()
        assert len(output) == model.vocab_size
        outputs = client.post("/infer", json={"inputs": [[0.5], [0.25] * 99]}).json()["outputs"]
        assert np.array(outputs).shape == (2, model.vocab_size)
        assert outputs[0] == output


# ---------------------------------------------------------------------------------------------------------- an echo


def test_an_unknown_model_gives_back_numbers_and_token_ids(echo: Client) -> None:
    for path, body, expected in (
        ("/infer", {"input": [0.1, 2]}, {"output": [0.1, 2]}),
        ("/infer", {"inputs": [[1], [2, 3]]}, {"outputs": [[1], [2, 3]]}),
        ("/embeddings", {"input": "ab"}, {"embedding": [97.0, 98.0], "model": "strange"}),
    ):
        answer = echo.post(path, json=body)
        assert (answer.json(), answer.headers["x-modelc-fallback"]) == (expected, "echo")


MESSAGES = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "x"},
    {"role": "user", "content": "two ☃"},
]


def test_an_unknown_model_gives_back_texts(echo: Client) -> None:
    for path, body in (
        ("/chat", {"messages": MESSAGES}),
        ("/complete", {"prompt": "two ☃"}),
        ("/v1/chat/completions", {"messages": MESSAGES}),
        ("/v1/completions", {"prompt": "two ☃"}),
    ):
        answer = echo.post(path, json=body)
        assert answer.headers["x-modelc-fallback"] == "echo"
        assert "two ☃" in answer.text
        assert "one" not in answer.text


def test_an_unknown_model_streams_the_text_as_one_chunk(echo: Client) -> None:
    answer = echo.post("/chat/stream", json={"messages": MESSAGES})
    assert answer.headers["x-modelc-fallback"] == "echo"
    assert answer.text == 'data: {"delta":"two ☃","done":false}\n\ndata: {"delta":"","done":true}\n\n'


def test_answers_of_a_model_that_runs_have_no_such_header(client: Client) -> None:
    assert "x-modelc-fallback" not in client.post("/infer", json={"input": [1, 2, 3]}).headers
