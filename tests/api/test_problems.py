"""Every failure has the right status and the one body."""

import logging
from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.testing import TestClient

from modelc.api.problems import KINDS, error_answer, kind_of
from modelc.errors import BadFileError, BadInputError, BusyError, NotFoundError, UnsupportedError

HELLO = {"messages": [{"role": "user", "content": "hi"}]}


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["message", "type", "param", "code"]
    error: dict[str, Any] = body["error"]
    return error


def test_an_unknown_path_is_404_with_the_nearest(client: TestClient[Litestar]) -> None:
    assert problem(client.get("/v1/chat/completion"), 404) == {
        "message": "no endpoint '/v1/chat/completion'; did you mean '/v1/chat/completions'?",
        "type": "invalid_request_error",
        "param": None,
        "code": "not_found",
    }


def test_a_wrong_method_is_405_with_the_right_one(client: TestClient[Litestar]) -> None:
    response = client.get("/v1/chat/completions")
    assert "POST" in problem(response, 405)["message"]
    assert "POST" in response.headers["allow"]
    problem(client.post("/health"), 405)


def test_a_body_over_the_limit_is_413(client_of: Any, model: Any) -> None:
    client = client_of(model, max_body_bytes=1000)
    assert problem(client.post("/chat", content=b" " * 1001), 413)["code"] == "body_too_large"
    assert "1000 bytes" in client.post("/chat", content=b" " * 1001).json()["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": "\xff"}', b'{"messages": NaN}'])
@pytest.mark.parametrize(
    "path", ["/chat", "/chat/stream", "/complete", "/tokenize", "/v1/detokenize", "/v1/completions"]
)
def test_a_body_that_is_not_a_json_object_is_400(client: TestClient[Litestar], path: str, body: Any) -> None:
    assert problem(client.post(path, content=body), 400)["type"] == "invalid_request_error"


def test_a_wrong_field_is_400_with_its_name(client: TestClient[Litestar]) -> None:
    answer = problem(client.post("/v1/chat/completions", json={**HELLO, "temperature": "hot"}), 400)
    assert (answer["param"], "number" in answer["message"]) == ("temperature", True)
    answer = problem(client.post("/chat", json={}), 400)
    assert answer["param"] == "messages"


def test_a_fault_of_the_program_is_500_without_its_inside_and_is_logged(
    client: TestClient[Litestar], caplog: pytest.LogCaptureFixture
) -> None:
    explode = {"messages": [{"role": "user", "content": "explode"}]}
    with caplog.at_level(logging.ERROR):
        answer = problem(client.post("/v1/chat/completions", json=explode), 500)
    assert answer["type"] == "server_error"
    assert "fault" not in answer["message"]
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadInputError("x"), 400),
        (UnsupportedError("x"), 400),
        (NotFoundError("x"), 404),
        (BusyError("x"), 503),
        (BadFileError("x"), 500),
        (RuntimeError("x"), 500),
    ],
)
def test_an_error_has_the_status_of_its_nearest_class(error: Exception, status: int) -> None:
    assert kind_of(error).status == status
    assert error_answer(error).error.type == kind_of(error).type


def test_the_table_ends_with_the_class_of_all() -> None:
    assert list(KINDS)[-1] is Exception
