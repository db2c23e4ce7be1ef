import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from modelc import library
from modelc.container import write_context
from modelc.container.context import dns_label
from modelc.errors import BadInputError, StoreError, WriteError
from tests.container.stand_in import compiled_file
from tests.formats.gguf_builder import small_gguf


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "a.gguf").write_bytes(small_gguf().build())
    return library.pack(tmp_path / "a.gguf", tmp_path / "a.modelc")


@pytest.fixture
def compiled(tmp_path: Path, model: Path) -> Path:
    return compiled_file(tmp_path / "model-serve.pyz", model.read_bytes())


def instructions(dockerfile: str) -> list[str]:
    lines = dockerfile.replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_image_has_two_stages_a_user_without_rights_and_a_health_check(model: Path, tmp_path: Path) -> None:
    context = write_context(model, tmp_path / "image", name="Tiny Model")
    lines = instructions((context.folder / "Dockerfile").read_text())
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert [line for line in lines if line.startswith("FROM")] == [
        f"FROM python:{version}-slim AS build",
        f"FROM python:{version}-slim",
    ]
    assert lines[-4:-2] == ["USER 10001:10001", "EXPOSE 8080"]
    assert lines[-2].startswith("HEALTHCHECK ")
    assert lines[-1] == 'ENTRYPOINT ["/app/entrypoint.sh"]'
    for line in lines:
        assert not re.search(r"\bsudo\b|:latest|\bADD\b|curl .*\|", line)
        assert "pip install" not in line or "--no-cache-dir" in line
        assert not line.startswith(("CMD", "ENTRYPOINT", "SHELL")) or "[" in line


def test_everything_that_is_copied_is_there(model: Path, tmp_path: Path) -> None:
    context = write_context(model, tmp_path / "image", name="tiny")
    dockerfile = (context.folder / "Dockerfile").read_text()
    for source in re.findall(r"^COPY (?:--chmod=\S+ )?(?!--from)(\S+)", dockerfile, re.MULTILINE):
        assert (context.folder / source).exists(), source
    assert (context.folder / "modelc" / "__main__.py").exists()
    assert not list((context.folder / "modelc").rglob("__pycache__"))
    assert (context.folder / "model.modelc").read_bytes() == model.read_bytes()


def test_what_modelc_needs_is_pinned(model: Path, tmp_path: Path) -> None:
    context = write_context(model, tmp_path / "image", name="tiny")
    lines = (context.folder / "requirements.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+", line) for line in lines)
    names = {line.partition("==")[0] for line in lines}
    assert {"numba", "numpy", "litestar", "uvicorn"} <= names
    assert not {"pytest", "ruff"} & names


def test_a_compiled_file_needs_python_alone(compiled: Path, tmp_path: Path) -> None:
    context = write_context(compiled, tmp_path / "image", name="tiny", base_image="registry.local:5000/python:3.13")
    text = (context.folder / "Dockerfile").read_text()
    assert text.count("FROM ") == 1
    assert "FROM registry.local:5000/python:3.13\n" in text
    assert "pip" not in text
    assert "exec python3 ./model-serve.pyz --bind" in (context.folder / "entrypoint.sh").read_text()
    assert sorted(path.name for path in context.folder.iterdir()) == [
        *(".dockerignore", "Dockerfile", "entrypoint.sh", "model-serve.pyz")
    ]


def test_nothing_is_overwritten_and_nothing_is_smuggled_in(model: Path, tmp_path: Path) -> None:
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "mine").write_text("")
    with pytest.raises(StoreError, match="this folder has something in it"):
        write_context(model, tmp_path / "image", name="tiny")
    for base in ("python\nRUN rm", "", "a b", "$(x)"):
        if base:
            with pytest.raises(BadInputError, match="not the name of an image"):
                write_context(model, tmp_path / "new", name="tiny", base_image=base)
    assert not (tmp_path / "new").exists()
    with pytest.raises(WriteError, match="the folder cannot be written"):
        write_context(model, model / "below", name="tiny")


def test_an_executable_is_started_as_such(compiled: Path, tmp_path: Path) -> None:
    executable = tmp_path / "server"
    executable.write_bytes(b"\x7fELF" + compiled.read_bytes()[4:])
    context = write_context(executable, tmp_path / "image", name="tiny")
    assert "exec ./model-serve --bind" in (context.folder / "entrypoint.sh").read_text()
    assert "COPY --chmod=0755 entrypoint.sh model-serve ./" in (context.folder / "Dockerfile").read_text()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_hadolint_has_nothing_to_say(model: Path, compiled: Path, tmp_path: Path, is_compiled: bool) -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    context = write_context(compiled if is_compiled else model, tmp_path / "image", name='ti"ny\\')
    done = subprocess.run([hadolint, str(context.folder / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", ["tiny", "Tiny_Model.v1", "7b", "x" * 200, "---", "Ünïcode"])
def test_names_become_labels_that_docker_and_kubernetes_take(name: str) -> None:
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", dns_label(name))


@pytest.mark.skipif(sys.platform == "win32", reason="images run on Linux")
def test_the_entrypoint_serves_and_tells_its_health(tmp_path: Path, model: Path) -> None:
    """Run as the image does, with a stand-in for the compiled file that answers /health."""
    program = (
        "import http.server, sys\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200 if self.path == '/health' else 404)\n"
        "        self.end_headers()\n"
        "    def log_message(self, *a): pass\n"
        "s = http.server.HTTPServer((sys.argv[2], int(sys.argv[4])), H)\n"
        "open('arguments', 'w').write(f'{sys.argv[1:]} {s.server_port}')\n"
        "s.serve_forever()\n"
    )
    pyz = compiled_file(tmp_path / "model-serve.pyz", model.read_bytes(), program)
    context = write_context(pyz, tmp_path / "image", name="tiny")
    script = str(context.folder / "entrypoint.sh")
    environment = {**os.environ, "MODELC_BIND": "127.0.0.1", "MODELC_PORT": "0"}
    server = subprocess.Popen([script, "--max-concurrent", "8"], env=environment, cwd="/")
    try:
        arguments = context.folder / "arguments"
        end_s = time.monotonic() + 20
        while not (arguments.exists() and arguments.read_text()):
            assert time.monotonic() < end_s and server.poll() is None
            time.sleep(0.02)
        text, _, port = arguments.read_text().rpartition(" ")
        assert text == "['--bind', '127.0.0.1', '--port', '0', '--max-concurrent', '8']"
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200
        healthy = subprocess.run([script, "health"], env={**environment, "MODELC_PORT": port}, check=False)
        assert healthy.returncode == 0
    finally:
        server.kill()
        server.wait()
    sick = subprocess.run(
        [script, "health"], env={**environment, "MODELC_PORT": port}, capture_output=True, check=False
    )
    assert sick.returncode != 0
