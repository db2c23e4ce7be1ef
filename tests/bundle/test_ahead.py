"""Kernels built ahead of time compute what those of the compiler do, and bring no compiler along."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from modelc.bundle.ahead import AheadOfTime
from modelc.bundle.isas import ISAS
from modelc.bundle.objects import object_files
from modelc.errors import BadFileError, BadInputError, WriteError
from modelc.formats import modelc
from modelc.ir import Model
from modelc.kernels.library import KernelLibrary
from modelc.kernels.objects import ObjectCache
from modelc.kernels.source import Progress
from modelc.runtime.kernel_names import kernel_names
from modelc.runtime.loading import loaded_model
from modelc.runtime.options import Options
from tests.bundle.conftest import LEAST, SHAPES
from tests.models.tiny_draft import with_random_draft
from tests.models.tiny_llama import tiny_llama
from tests.runtime.tiny_mlp import mlp_of

X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 16)


class Recorder:
    """Notes what is asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._objects = ObjectCache()

    def addresses(self, names: list[str], progress: Progress | None = None) -> dict[str, int]:
        self.names.update(names)
        return self._objects.addresses(names, progress)


def test_the_least_instruction_set_ahead_of_time_gives_the_compilers_bits() -> None:
    model = mlp_of(SHAPES)
    with (
        loaded_model(model, Options(2)) as jit,
        loaded_model(model, Options(2, kernels=AheadOfTime(LEAST.name))) as aot,
    ):
        assert aot.infer(X).tobytes() == jit.infer(X).tobytes()


def test_a_second_process_computes_without_a_compiler(tmp_path: Path) -> None:
    modelc.write(mlp_of(SHAPES), tmp_path / "tiny.modelc")
    loaded_model(mlp_of(SHAPES), Options(1, kernels=AheadOfTime(LEAST.name))).close()
    program = (
        "import sys; from modelc import runtime; from modelc.bundle.ahead import AheadOfTime;"
        f"m = runtime.load(sys.argv[1], kernels=AheadOfTime('{LEAST.name}')); print(len(m.infer([0.5] * 16)));"
        "print([name for name in ('numba', 'llvmlite') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "tiny.modelc")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split("\n")[:2] == ["5", "[]"]


def test_a_damaged_library_is_built_again(tmp_path: Path) -> None:
    made = AheadOfTime(LEAST.name, tmp_path)
    made.addresses(["spin"])
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.unlink()
    file.write_bytes(data)
    assert AheadOfTime(LEAST.name, tmp_path).addresses(["spin"])["spin"] > 0
    assert file.read_bytes() != data


def test_where_libraries_cannot_be_kept_one_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WriteError, match="MODELC_CACHE"):
        AheadOfTime(LEAST.name, tmp_path / "file").addresses(["spin"])


def test_an_instruction_set_that_is_none_is_refused() -> None:
    with pytest.raises(BadInputError, match="--isa"):
        AheadOfTime("avx1024")


def test_objects_are_the_same_every_time_and_damaged_ones_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELC_CACHE", str(tmp_path))
    triple = "aarch64-unknown-linux-gnu"
    neon = next(isa for isa in ISAS if isa.name == "neon")
    first = object_files(["spin"], [neon], triple)
    (file,) = tmp_path.rglob("*.o")
    file.write_bytes(file.read_bytes()[:100])
    told: list[tuple[int, int, str]] = []
    assert object_files(["spin"], [neon], triple, progress=lambda *what: told.append(what)) == first
    assert told == [(1, 1, "spin")]
    assert object_files(["spin"], [neon], triple, progress=lambda *what: told.append(what)) == first
    assert len(told) == 1
    assert first["neon", "spin"][18:20] == b"\xb7\0", "an object for AArch64"


@pytest.mark.parametrize(
    ("weights", "options"),
    [("f32", {}), ("q4_0", {"kv": "mixed", "activations": "int16", "gamma": 3, "max_context": 64})],
)
def test_a_model_asks_for_nothing_that_is_not_built(weights: str, options: dict[str, object]) -> None:
    model: Model = with_random_draft(tiny_llama(weights))
    recorder = Recorder()
    with loaded_model(model, Options(2, kernels=recorder, **options)) as loaded:  # type: ignore[arg-type]
        loaded.generate([1, 2, 3], max_tokens=100 if "max_context" in options else 4, logprobs=True)
        loaded.infer([0.1] * 64)
        loaded.embed([1, 2])
    assert recorder.names <= set(kernel_names(model))


def test_a_library_that_lacks_a_function_says_so(tmp_path: Path) -> None:
    AheadOfTime(LEAST.name, tmp_path).addresses(["spin"])
    (file,) = tmp_path.iterdir()
    with pytest.raises(BadFileError, match=r"lack a function.*expected worker.*compile the model again"):
        KernelLibrary(file).addresses(["worker"])
    (tmp_path / "none.so").write_bytes(b"no library")
    with pytest.raises(BadFileError, match="cannot be loaded"):
        KernelLibrary(tmp_path / "none.so")
