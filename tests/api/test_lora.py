import json
import os
from pathlib import Path
from typing import Any

import pytest

from modelc.errors import BadFileError

GOOD = {"applied": 3, "skipped": 1, "message": "LoRA loaded"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of adapters with a file, beside a file that is outside."""
    folder = tmp_path / "adapters"
    (folder / "below").mkdir(parents=True)
    for path in (folder / "a.safetensors", folder / "below" / "b.safetensors", tmp_path / "outside.safetensors"):
        path.write_bytes(b"x")
    (folder / "link").symlink_to(tmp_path / "outside.safetensors")
    (folder / "inner").symlink_to(folder / "below" / "b.safetensors")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    return folder


def failure(response: Any) -> str:
    body = response.json()
    assert response.status_code == 400
    assert (body["applied"], body["skipped"]) == (0, 0)
    assert body["message"] == body["error"]["message"]
    assert body["error"]["type"] == "invalid_request_error"
    return str(body["message"])


@pytest.mark.parametrize("name", ["a.safetensors", "below/b.safetensors", "below/../a.safetensors", "inner"])
def test_what_is_below_the_folder_is_loaded(client_of: Any, model: Any, folder: Path, name: str) -> None:
    client = client_of(model, adapters=folder)
    for path in (name, str(folder / name)):
        response = client.post("/lora/load", json={"path": path, "alpha": 0.5})
        assert (response.status_code, response.json()) == (200, GOOD)
    assert model.adapters[-1] == ((folder / name).resolve(), 0.5)


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize(
    "path",
    [
        "../outside.safetensors",
        "/etc/passwd",
        "link",
        "up/outside.safetensors",
        "up/adapters/../outside.safetensors",
        "loop",
        "a\0b",
        "below/../../outside.safetensors",
        "/dev/zero",
        "/proc/self/mem",
        "\ud800",
        "x" * 4000,
        "x/" * 2000,
        "~/x",
        "file:///etc/passwd",
        "C:\\\\windows",
    ],
)
def test_what_is_outside_is_refused(client_of: Any, model: Any, folder: Path, path: str, bind: str) -> None:
    client = client_of(model, adapters=folder, bind=bind)
    message = failure(client.post("/lora/load", content=json.dumps({"path": path})))
    assert model.adapters == []
    assert "outside.safetensors" not in message
    assert "root:" not in message


def test_without_a_folder_only_a_local_server_loads(client_of: Any, model: Any, folder: Path) -> None:
    path = str(folder / "a.safetensors")
    for bind in ("127.0.0.1", "::1", "[::1]", "localhost", "127.8.8.8"):
        assert client_of(model, bind=bind).post("/lora/load", json={"path": path}).status_code == 200
    assert model.adapters[-1] == (Path(path), 1.0)
    for bind in ("0.0.0.0", "::", "192.0.2.1", "host.example"):
        assert "--adapters" in failure(client_of(model, bind=bind).post("/lora/load", json={"path": path}))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "path"),
        ({"path": None}, "path"),
        ({"path": 3}, "path"),
        ({"path": ""}, "path"),
        ({"path": "x" * 5000}, "path"),
        ({"path": "a.safetensors", "alpha": "1"}, "alpha"),
        ({"path": "a.safetensors", "alpha": 1e9}, "alpha"),
        ({"path": "a.safetensors", "alpha": True}, "alpha"),
        ([], None),
    ],
)
def test_wrong_fields_are_named(client_of: Any, model: Any, folder: Path, body: Any, param: str | None) -> None:
    response = client_of(model, adapters=folder).post("/lora/load", json=body)
    failure(response)
    assert response.json()["error"]["param"] == param


def test_no_such_file_is_a_failure(client_of: Any, model: Any, folder: Path) -> None:
    assert "no such file" in failure(client_of(model, adapters=folder).post("/lora/load", json={"path": "c"}))


def test_a_file_that_is_no_adapter_is_the_fault_of_the_request(client_of: Any, model: Any, folder: Path) -> None:
    def refuse(path: Path, alpha: float) -> None:
        raise BadFileError("no LoRA adapter is in this file", path=path)

    model.load_lora = refuse
    assert "no LoRA" in failure(client_of(model, adapters=folder).post("/lora/load", json={"path": "a.safetensors"}))


def test_unloading_needs_nothing(client_of: Any, model: Any, folder: Path) -> None:
    client = client_of(model, adapters=folder)
    client.post("/lora/load", json={"path": "a.safetensors"})
    for _ in range(2):
        response = client.post("/lora/unload")
        assert (response.status_code, response.json()) == (200, {"message": "LoRA unloaded; base model restored"})
    assert model.adapters == []


def test_adapters_need_the_key_and_a_model(client_of: Any, model: Any) -> None:
    keyed, loading = client_of(model, api_keys=("secret",)), client_of(None)
    for path in ("/lora/load", "/lora/unload"):
        assert keyed.post(path, json={"path": "x"}).status_code == 401
        assert loading.post(path, json={"path": "x"}).status_code == 503
