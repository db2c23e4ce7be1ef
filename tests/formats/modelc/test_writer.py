import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.errors import BadFileError, BadInputError, UnsupportedError, WriteError
from modelc.formats import modelc
from modelc.ir import Model, Tensor
from modelc.layout import lanes_bytes, plain_bytes
from tests.formats.modelc.artifacts import tiny_model, vector


def matrices() -> Model:
    random = np.random.default_rng(3)
    tensors = {}
    for name, kind, shape in (
        ("f", "f32", (5, 3)),
        ("h", "bf16", (17, 8)),
        ("q", "q4_1", (33, 64)),
        ("s", "i8", (2, 2)),
    ):
        dtype = DTYPES[kind]
        tensors[name] = Tensor(name, dtype, shape, random.integers(0, 256, dtype.nbytes(shape), np.uint8))
    return Model("m", "llama", "gguf", {}, tensors)


@pytest.mark.parametrize("compress", [False, True])
def test_the_same_model_gives_the_same_bytes(tmp_path: Path, compress: bool) -> None:
    modelc.write(tiny_model(), tmp_path / "a.modelc", compress)
    modelc.write(tiny_model(), tmp_path / "b.modelc", compress)
    assert (tmp_path / "a.modelc").read_bytes() == (tmp_path / "b.modelc").read_bytes()


@pytest.mark.parametrize("compress", [False, True])
def test_matrices_are_stored_in_kernel_layout_and_come_back_exactly(tmp_path: Path, compress: bool) -> None:
    before = matrices()
    modelc.write(before, tmp_path / "a.modelc", compress)
    after = modelc.read(tmp_path / "a.modelc")
    assert {name: tensor.layout for name, tensor in after.tensors.items()} == {
        "f": "lanes",
        "h": "lanes",
        "q": "lanes",
        "s": "plain",
    }
    for name, tensor in after.tensors.items():
        assert np.array_equal(plain_bytes(tensor), before.tensors[name].stored)
    assert np.array_equal(after.tensors["q"].stored, lanes_bytes(before.tensors["q"]))
    modelc.verify(tmp_path / "a.modelc")


def test_a_model_that_was_read_is_written_with_the_same_bytes(tmp_path: Path) -> None:
    modelc.write(matrices(), tmp_path / "a.modelc")
    modelc.write(modelc.read(tmp_path / "a.modelc"), tmp_path / "b.modelc", compress=True)
    modelc.write(modelc.read(tmp_path / "b.modelc"), tmp_path / "c.modelc")
    assert (tmp_path / "a.modelc").read_bytes() == (tmp_path / "c.modelc").read_bytes()


def test_a_file_may_replace_the_one_it_was_read_from(tmp_path: Path) -> None:
    path = tmp_path / "a.modelc"
    modelc.write(tiny_model(), path)
    before = path.read_bytes()
    modelc.write(modelc.read(path), path)
    assert path.read_bytes() == before


def test_progress_counts_up_to_the_total(tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    modelc.write(tiny_model(), tmp_path / "a.modelc", progress=lambda *call: calls.append(call))
    assert calls == [(20, 134, "packing"), (56, 134, "packing"), (64, 134, "packing"), (134, 134, "packing")]


def test_a_model_that_breaks_a_rule_is_not_written(tmp_path: Path) -> None:
    model = tiny_model()
    broken = replace(model.tensors["b"], stored=np.zeros(35, np.uint8))
    with pytest.raises(BadFileError, match=r"do not fit its shape: .*'b'"):
        modelc.write(replace(model, tensors={"b": broken}), tmp_path / "a.modelc")
    assert list(tmp_path.iterdir()) == []


def test_kernel_layout_of_a_wrong_size_is_not_written(tmp_path: Path) -> None:
    tensor = replace(vector("w", "f32", 16), shape=(4, 4), layout="lanes")
    with pytest.raises(BadFileError, match="do not fit its shape and layout: tensor 'w': got 64 bytes, expected 256"):
        modelc.write(Model("m", "llama", "gguf", {}, {"w": tensor}), tmp_path / "a.modelc")
    assert list(tmp_path.iterdir()) == []


def test_more_metadata_than_a_header_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelc.formats.modelc.header_json.MAX_VALUES", 1000)
    with pytest.raises(UnsupportedError, match=r"too many metadata values for a \.modelc file"):
        modelc.write(tiny_model(list=[0] * 1000), tmp_path / "a.modelc")
    assert list(tmp_path.iterdir()) == []


def test_an_output_in_a_missing_folder_is_a_wrong_argument(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="the output's folder does not exist: 'output'"):
        modelc.write(tiny_model(), tmp_path / "no" / "a.modelc")


@contextmanager
def files_limited_to(n_bytes: int) -> Iterator[None]:
    """The nearest thing to a full disk that a test can make: the system refuses to write further."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("n_bytes", [0, 100, 5000])
def test_a_full_disk_is_one_clear_error_and_leaves_what_was_there(tmp_path: Path, n_bytes: int) -> None:
    path = tmp_path / "a.modelc"
    path.write_bytes(b"old")
    model = replace(tiny_model(), tensors={"w": vector("w", "u8", 100_000)})
    with files_limited_to(n_bytes), pytest.raises(WriteError, match=r"cannot write the file: .*a\.modelc.*; make room"):
        modelc.write(model, path)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.modelc", b"old")]


def test_an_interruption_leaves_what_was_there(tmp_path: Path) -> None:
    def interrupt(*call: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "a.modelc"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        modelc.write(tiny_model(), path, progress=interrupt)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.modelc", b"old")]


KILLED = """
import os, signal, sys
from pathlib import Path
from modelc.formats import modelc
from tests.formats.modelc.artifacts import tiny_model
modelc.write(tiny_model(), Path(sys.argv[1]), progress=lambda *call: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.parametrize("existed", [False, True])
def test_a_kill_in_the_middle_leaves_the_old_file_or_none(tmp_path: Path, existed: bool) -> None:
    path = tmp_path / "a.modelc"
    if existed:
        path.write_bytes(b"old")
    child = subprocess.run([sys.executable, "-c", KILLED, path], cwd=Path(__file__).parents[3], check=False)
    assert child.returncode == -9
    assert path.exists() == existed
    assert not existed or path.read_bytes() == b"old"
    modelc.write(tiny_model(), path)
    assert modelc.verify(path).name == "tiny"
