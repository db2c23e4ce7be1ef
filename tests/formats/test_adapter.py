import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelc.errors import BadFileError, ModelcError, NotFoundError, UnsupportedError
from modelc.formats.adapter import read_adapter
from tests.formats.gguf_builder import F32, GGML_F32, Gguf, scalar
from tests.models.adapters import write_adapter

A, B = np.ones((4, 6), np.float32), np.ones((5, 4), np.float32)
PAIR = {"m.q_proj": (A, B)}


@pytest.mark.parametrize(
    "spelled",
    [
        "{}.lora_{}.weight",
        "{}.lora_{}.default.weight",
        "{}.lora_{}",
        "{}.weight.lora_{}",
        "base_model.{}.lora_{}.weight",
    ],
)
def test_names_of_every_spelling_are_understood(spelled: str, tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a.safetensors", PAIR, spelled))
    (pair,) = adapter.pairs
    assert pair.module.removeprefix("base_model.") == "m.q_proj"
    assert (pair.a.shape, pair.b.shape, pair.scale) == ((4, 6), (5, 4), 1.0)


@pytest.mark.parametrize(
    ("config", "scale"),
    [
        ({}, 1.0),
        ({"peft_type": "LORA", "r": 4, "lora_alpha": 16, "target_modules": ["q_proj"], "bias": "none"}, 4.0),
        ({"lora_alpha": 3, "use_rslora": True}, 3 / math.sqrt(4)),
        ({"lora_alpha": 16, "alpha_pattern": {"q_proj": 2.0}}, 0.5),
        ({"lora_alpha": 16, "alpha_pattern": {"m.q_proj": 2}, "rank_pattern": {"q_proj": 4}, "r": 8}, 0.5),
        ({"lora_alpha": 16, "alpha_pattern": {"proj": 2}}, 4.0),
        ({"lora_alpha": 0}, 0.0),
    ],
)
def test_the_scale_is_that_of_the_configuration(config: dict[str, Any], scale: float, tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "adapter_model.safetensors", PAIR, config=config))
    assert adapter.pairs[0].scale == scale
    assert read_adapter(tmp_path).pairs[0].scale == scale, "the folder stands for the file"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"peft_type": "IA3"}, "another kind"),
        ({"use_dora": True}, "use_dora"),
        ({"lora_alpha": "16"}, "wrong alpha"),
        ({"lora_alpha": None}, "wrong alpha"),
        ({"lora_alpha": float("nan")}, "wrong alpha"),
        ({"lora_alpha": 1e30}, "wrong alpha"),
        ({"alpha_pattern": {"q_proj": True}}, "wrong alpha"),
        ({"alpha_pattern": []}, None),
        ({"alpha_pattern": ["q_proj"]}, "alpha_pattern"),
        ({"alpha_pattern": {"(a+)+$": 1}}, "expression"),
        ({"use_rslora": "yes"}, "use_rslora"),
        ({"r": 8}, "wrong rank"),
        ({"r": "8"}, "wrong r"),
        ({"r": [8]}, "wrong r"),
    ],
)
def test_a_configuration_that_means_something_else_is_refused(
    config: dict[str, Any], message: str | None, tmp_path: Path
) -> None:
    path = write_adapter(tmp_path / "a.safetensors", PAIR, config=config)
    if message is None:
        read_adapter(path)
        return
    with pytest.raises(ModelcError, match=message):
        read_adapter(path)


@pytest.mark.parametrize("text", ["[]", "{", "\xff", "", '{"r": 1, "r": 2}'])
def test_a_damaged_configuration_is_refused(text: str, tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "a.safetensors", PAIR)
    (tmp_path / "adapter_config.json").write_text(text, "latin-1")
    with pytest.raises(BadFileError):
        read_adapter(path)


@pytest.mark.parametrize(
    "name",
    ["m.q_proj.lora_magnitude_vector", "m.q_proj.lora_B.bias", "m.q_proj.alpha", "m.lora_magnitude_vector.weight"],
)
def test_parts_of_other_methods_are_refused(name: str, tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "a.safetensors", PAIR, extra=((name, "F32", (1,), b"\0" * 4),))
    with pytest.raises(UnsupportedError, match="more than LoRA") as caught:
        read_adapter(path)
    assert caught.value.tensor == name


def test_other_tensors_are_named(tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "a.safetensors", PAIR, extra=(("m.bias", "F32", (1,), b"\0" * 4),))
    assert read_adapter(path).others == ["m.bias"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (A, np.ones((5, 3))),
        (A[0], B),
        (A, B[..., None]),
        (A[:0], B[:, :0]),
        (A[:, :0], B),
    ],
)
def test_shapes_that_make_no_pair_are_refused(a: Any, b: Any, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="wrong shapes"):
        read_adapter(write_adapter(tmp_path / "a.safetensors", {"m": (a, b)}))


def test_half_a_pair_none_and_two_of_one_kind_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    one = ("m.lora_A.weight", "F32", (1, 1), b"\0" * 4)
    write_adapter(path, {}, extra=(one,))
    with pytest.raises(BadFileError, match="half of a pair"):
        read_adapter(path)
    write_adapter(path, {}, extra=(("m.weight", "F32", (1, 1), b"\0" * 4),))
    with pytest.raises(BadFileError, match="no LoRA adapter"):
        read_adapter(path)
    write_adapter(path, {"m": (A[:1, :1], B[:1, :1])}, extra=(("m.lora_A.other.weight", "F32", (1, 1), b"\0" * 4),))
    with pytest.raises(BadFileError, match="two adapters"):
        read_adapter(path)


def test_a_gguf_adapter_is_read_with_its_alpha(tmp_path: Path) -> None:
    file = Gguf().text("general.architecture", "llama").text("general.type", "adapter")
    file.key("adapter.lora.alpha", F32, scalar(F32, 8.0))
    file.tensor("blk.0.attn_q.weight.lora_a", [6, 4], GGML_F32, A.tobytes())  # dimensions innermost first
    file.tensor("blk.0.attn_q.weight.lora_b", [4, 5], GGML_F32, B.tobytes())
    path = tmp_path / "a.gguf"
    path.write_bytes(file.build())
    (pair,) = read_adapter(path).pairs
    assert (pair.module, pair.a.shape, pair.b.shape, pair.scale) == ("blk.0.attn_q", (4, 6), (5, 4), 2.0)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"hello, world, this is no adapter at all")
    for name, error in (("pipe", BadFileError), ("empty", BadFileError), ("text", BadFileError), ("no", NotFoundError)):
        with pytest.raises(error):
            read_adapter(tmp_path / name)
    for device in ("/dev/zero", "/dev/null"):
        with pytest.raises(BadFileError, match="device"):
            read_adapter(Path(device))


def test_a_configuration_outside_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "adapters"
    folder.mkdir()
    (tmp_path / "secret.json").write_text('{"lora_alpha": 1}')
    path = write_adapter(folder / "a.safetensors", PAIR)
    (folder / "adapter_config.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(BadFileError, match="outside"):
        read_adapter(path)


def test_a_damaged_file_ends_in_a_plain_error(tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "a.safetensors", PAIR)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(200):
        damaged = bytearray(whole)
        for at in rng.integers(0, 160, 3):
            damaged[at] = rng.integers(0, 256)
        path.write_bytes(damaged[: rng.integers(0, len(whole))] if rng.random() < 0.3 else damaged)
        try:
            read_adapter(path)
        except ModelcError:
            continue


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b"import modelc\nmodelc.load", "text, expected"),
        (b"<html>404", "an HTML page"),
        (b"\0" * 64, "zero bytes"),
        (bytes(range(128, 192)), "the bytes 80 81 82 83 84 85 86 87"),
    ],
)
def test_a_file_of_another_format_is_told_with_what_it_looks_like(content: bytes, got: str, tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    with pytest.raises(BadFileError, match=f"not a Safetensors or GGUF file: .*a.bin: got {got}"):
        read_adapter(path)
