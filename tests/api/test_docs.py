"""The documentation names everything that there is."""

from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")


def test_every_endpoint_is_in_the_documentation(client: TestClient[Litestar]) -> None:
    for path in client.get("/schema").json()["paths"]:
        assert f"{path}`" in PAGE, path


def test_every_field_of_every_request_is_in_the_documentation(client: TestClient[Litestar]) -> None:
    document: dict[str, Any] = client.get("/schema").json()
    for path, methods in document["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body is not None:
            name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            for field in document["components"]["schemas"][name]["properties"]:
                assert f"`{field}`" in PAGE, f"{path}: {field}"
