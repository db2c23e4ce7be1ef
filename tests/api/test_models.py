"""`/v1/models`."""

from litestar import Litestar
from litestar.testing import TestClient


def test_the_loaded_model_is_the_list(client: TestClient[Litestar]) -> None:
    answer = client.get("/v1/models").json()
    assert answer["object"] == "list"
    (card,) = answer["data"]
    assert (card["id"], card["object"], card["owned_by"]) == ("fake/model", "model", "modelc")
    assert isinstance(card["created"], int)


def test_a_model_is_shown_by_its_name_slashes_included(client: TestClient[Litestar]) -> None:
    assert client.get("/v1/models/fake/model").json() == client.get("/v1/models").json()["data"][0]
    assert client.get("/v1/models/fake%2Fmodel").json()["id"] == "fake/model"


def test_another_name_is_404(client: TestClient[Litestar]) -> None:
    response = client.get("/v1/models/fake/modle")
    assert response.status_code == 404
    error = response.json()["error"]
    assert (error["code"], error["param"], error["type"]) == ("model_not_found", "model", "invalid_request_error")
    assert "did you mean 'fake/model'?" in error["message"]
