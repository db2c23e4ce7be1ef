"""The OpenAPI document."""

from collections.abc import Iterator
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient


@pytest.fixture
def document(client: TestClient[Litestar]) -> dict[str, Any]:
    response = client.get("/schema")
    assert response.status_code == 200
    described: dict[str, Any] = response.json()
    return described


def test_every_endpoint_is_described(client: TestClient[Litestar], document: dict[str, Any]) -> None:
    described = {(path, method) for path, methods in document["paths"].items() for method in methods}
    served = {
        (route.path_format, method.lower())
        for route in client.app.routes
        for method in route.methods
        if method not in ("HEAD", "OPTIONS")
    }
    assert described == served
    assert ("/v1/chat/completions", "post") in described


def test_every_operation_has_a_summary_and_its_own_id(document: dict[str, Any]) -> None:
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert all(operation["summary"] and operation["responses"]["default"] for operation in operations)
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from ([node["$ref"]] if "$ref" in node else [])
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    found = set(references(document))
    assert "#/components/schemas/ChatCompletionFields" in found
    for reference in found:
        node = document
        for key in reference.removeprefix("#/").split("/"):
            node = node[key]


def test_ranges_of_fields_are_told(document: dict[str, Any]) -> None:
    fields = document["components"]["schemas"]["ChatCompletionFields"]
    assert fields["required"] == ["messages"]
    assert fields["properties"]["top_p"]["anyOf"][0]["maximum"] == 1


def test_what_needs_a_key_is_told(client_of: Any, model: Any, document: dict[str, Any]) -> None:
    assert document["paths"]["/chat"]["post"]["security"] == []
    keyed = client_of(model, api_keys=("secret",)).get("/schema", headers={"x-api-key": "secret"}).json()
    assert keyed["paths"]["/health"]["get"]["security"] == []
    assert keyed["paths"]["/chat"]["post"]["security"] == [{"bearer": []}, {"key": []}]
