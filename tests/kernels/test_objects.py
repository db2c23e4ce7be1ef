import os
import subprocess
import sys
from pathlib import Path

import pytest

from modelc.kernels import objects
from modelc.kernels.objects import ObjectCache, cache_key, default_folder, source_key

NAME = "swiglu"


@pytest.fixture(scope="module")
def compiled() -> tuple[str, bytes]:
    return objects.compile_object(NAME)


@pytest.fixture
def compilations(compiled: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names that were compiled; whatever the name, the code is that of one opcode."""
    names: list[str] = []

    def compile_object(name: str) -> tuple[str, bytes]:
        names.append(name)
        return compiled

    monkeypatch.setattr(objects, "compile_object", compile_object)
    return names


def test_a_function_is_compiled_once_and_then_found_in_memory_and_in_the_folder(
    tmp_path: Path, compilations: list[str]
) -> None:
    cache = ObjectCache(tmp_path)
    address = cache.addresses([NAME])[NAME]
    assert address > 0
    assert cache.addresses([NAME]) == {NAME: address}
    assert ObjectCache(tmp_path).addresses([NAME])[NAME] > 0
    assert compilations == [NAME]
    assert [file.suffix for file in tmp_path.iterdir()] == [".o"], "no temporary file is left"


def test_progress_is_told_about_what_is_compiled_only(tmp_path: Path, compilations: list[str]) -> None:
    told: list[tuple[int, int, str]] = []
    ObjectCache(tmp_path).addresses(["rms_norm"])
    ObjectCache(tmp_path).addresses(["rms_norm"], lambda *what: told.append(what))
    assert told == []
    ObjectCache(tmp_path).addresses(["rms_norm", "bias", "embed.f32"], lambda *what: told.append(what))
    assert [(done, total) for done, total, _ in told] == [(0, 2), (1, 2), (2, 2)]
    assert [name for _, _, name in told[:2]] == ["bias", "embed.f32"] == compilations[1:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:2000] + bytes([data[2000] ^ 1]) + data[2001:],
        lambda data: bytes([data[0] ^ 1]) + data[1:],
    ],
)
def test_a_damaged_file_is_compiled_again(tmp_path: Path, compilations: list[str], damage: object) -> None:
    ObjectCache(tmp_path).addresses([NAME])
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert ObjectCache(tmp_path).addresses([NAME])[NAME] > 0
    assert compilations == [NAME, NAME]
    assert file.read_bytes() == whole


def test_without_a_writable_folder_the_code_serves_this_process(tmp_path: Path, compilations: list[str]) -> None:
    (tmp_path / "file").write_text("")
    cache = ObjectCache(tmp_path / "file" / "folder")
    assert cache.addresses([NAME])[NAME] == cache.addresses([NAME])[NAME] > 0
    assert compilations == [NAME]


def test_a_full_disk_leaves_no_file_behind(
    tmp_path: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(path: Path, target: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(objects.Path, "replace", no_space)
    assert ObjectCache(tmp_path).addresses([NAME])[NAME] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_folder_depends_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELC_CACHE", str(tmp_path))
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    monkeypatch.delenv("NUMBA_CPU_FEATURES", raising=False)
    here = cache_key()
    assert default_folder() == tmp_path / "kernels" / here
    assert cache_key() == here
    keys = {here}
    for variable, value in (("NUMBA_CPU_NAME", "x86-64-v2"), ("NUMBA_CPU_FEATURES", "+sse2")):
        monkeypatch.setenv(variable, value)
        keys.add(cache_key())
    assert len(keys) == 3


def test_the_file_depends_on_the_sources_of_the_function_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for source in Path(objects.__file__).parent.glob("*.py"):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(objects, "__file__", str(tmp_path / "objects.py"))
    places = ("gated:make_gate", "rope:make_rope")

    def keys() -> tuple[str, str]:
        source_key.cache_clear()
        gate, rope = map(source_key, places)
        return gate, rope

    before = keys()
    assert keys() == before
    assert source_key(places[0], "silu") != source_key(places[0], "gelu") != before[0]
    for file, changes in {"rope.py": (False, True), "activations.py": (True, False), "simd.py": (True, True)}.items():
        old = keys()
        (tmp_path / file).write_bytes((tmp_path / file).read_bytes() + b"# edited")
        assert tuple(new != was for new, was in zip(keys(), old, strict=True)) == changes, file
    source_key.cache_clear()


def test_with_a_full_cache_numba_is_not_imported(tmp_path: Path, compilations: list[str]) -> None:
    ObjectCache(tmp_path).addresses([NAME])
    program = (
        "import sys; from pathlib import Path; from modelc.kernels.objects import ObjectCache;"
        f"print(ObjectCache(Path(sys.argv[1])).addresses(['{NAME}'])['{NAME}'] > 0, 'numba' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
    )
    assert result.stdout.split() == ["True", "False"]
