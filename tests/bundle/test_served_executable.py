"""A whole model in an executable."""

import json
import sys
from pathlib import Path

import pytest

from modelc.bundle.interpreter import Interpreter
from modelc.bundle.loaded import loaded_library
from modelc.formats import open_model
from modelc.runtime.loading import load
from tests.bundle.conftest import build, serving
from tests.bundle.test_compiled_file import VECTOR, post
from tests.bundle.test_executable import in_bare_root, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="executables are Linux's")


@pytest.fixture(scope="module")
def executable(weights: Path, python: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert python.files, "there is one to take along"
    path = tmp_path_factory.mktemp("executable") / "tiny"
    return build(weights, path, is_executable=True, options=[["--threads", "1"], ["--port", "0"]])


def test_it_answers_as_the_model_does_where_there_is_neither_python_nor_a_folder(
    executable: Path, weights: Path, tmp_path: Path
) -> None:
    bare = [*in_bare_root(tmp_path, executable), "/program"]
    with load(weights, threads=1) as model, serving(bare, {}) as url:
        assert post(f"{url}/infer", {"input": VECTOR})["output"] == model.infer(VECTOR).tolist()


def test_it_says_what_is_inside_and_is_read_like_a_model(
    executable: Path, weights: Path, python: Interpreter, tmp_path: Path
) -> None:
    about = json.loads(run([executable, "--info"], {"MODELC_CACHE": str(tmp_path)}).stdout)
    assert about["python"] == python.version
    assert int(about["glibc"].removeprefix("2.")) >= python.glibc_minor
    assert executable.stat().st_size < 36_000_000
    assert open_model(executable).tensors.keys() == open_model(weights).tensors.keys()


def test_every_byte_can_be_verified_whatever_libraries_the_user_has(executable: Path, tmp_path: Path) -> None:
    for name in ("libstdc++.so.6", "libgcc_s.so.1"):  # not those that NumPy needs
        (tmp_path / name).write_bytes(loaded_library("libm.so.6") or b"")
    env = {"MODELC_CACHE": str(tmp_path / "cache"), "LD_LIBRARY_PATH": str(tmp_path)}
    assert "every byte as it was written" in run([executable, "--verify"], env).stdout
    assert list((tmp_path / "cache").rglob("numpy/**/*.so"))
    data = bytearray(executable.read_bytes())
    data[-300] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    (tmp_path / "damaged").chmod(0o755)
    result = run([tmp_path / "damaged", "--verify"], env)
    assert result.returncode == 1
    assert "damaged" in result.stderr
