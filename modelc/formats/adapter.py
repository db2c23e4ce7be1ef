"""Reads LoRA adapters: pairs of low-rank matrices for the weights of a model, and how strong they are.

Source: the layout of Hugging Face's PEFT (`adapter_model.safetensors` with `adapter_config.json` beside it), plain
    Safetensors files with `lora_A` and `lora_B` in their tensors' names, and llama.cpp's GGUF adapters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats import gguf
from modelc.formats.contained import contained
from modelc.formats.json_text import read_json
from modelc.formats.mapping import exists, is_folder, map_file
from modelc.formats.safetensors import read_mapped
from modelc.formats.safetensors_header import LENGTH_BYTES
from modelc.formats.signature import GGUF_MAGIC, HEAD_BYTES, looks_like
from modelc.ir import Tensor

WEIGHTS_NAME = "adapter_model.safetensors"
CONFIG_NAME = "adapter_config.json"
MAX_SCALE = 1e6

# MODULE.lora_A.weight, MODULE.lora_A.ADAPTER.weight, MODULE.lora_A, MODULE.weight.lora_a
_FACTOR = re.compile(r"(?P<module>.+?)(\.weight)?\.lora_(?P<part>[AaBb])(\.\w+?)??(\.weight)?", re.DOTALL)
# Parts of other methods, without which the pairs beside them mean something else.
_OTHER_METHODS = re.compile(r".*(lora_magnitude_vector|lora_[AB](\.\w+)?\.bias|\.alpha|\.dora_scale)(\..*)?", re.DOTALL)
_NEUTRAL = {"use_dora": False, "lora_bias": False, "use_qalora": False}  # keys that ask for such methods


@dataclass(frozen=True, slots=True)
class Pair:
    """What an adapter adds to one weight: scale * B (A x).

    Attributes:
        module: the weight's name in the file, without `.weight`.
        a: (rank, cols).
        b: (rows, rank).
        scale: what the adapter was trained with.
    """

    module: str
    a: Tensor
    b: Tensor
    scale: float


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter.

    Attributes:
        path: The file it came from.
        pairs: In ascending order of their modules.
        others: Names of the file's other tensors.
    """

    path: Path
    pairs: list[Pair]
    others: list[str]


def read_adapter(path: Path) -> Adapter:
    """Read an adapter; its tensors are views of the mapped file.

    Args:
        path: A Safetensors or GGUF file, or the folder of a PEFT adapter.

    Raises:
        NotFoundError: No such file.
        BadFileError: Damaged or hostile content, or no adapter.
        UnsupportedError: An adapter of another kind than LoRA.
    """
    if is_folder(path):
        path = path / WEIGHTS_NAME
    data = memoryview(map_file(path))
    config: dict[str, Any]
    if data[: len(GGUF_MAGIC)] == GGUF_MAGIC:
        model = gguf.read(path)
        tensors, config_path = list(model.tensors.values()), path
        config = (
            {"lora_alpha": model.metadata["adapter.lora.alpha"]} if model.metadata.get("adapter.lora.alpha") else {}
        )
    else:
        if bytes(data[LENGTH_BYTES : LENGTH_BYTES + 1]) != b"{":
            got = looks_like(bytes(data[:HEAD_BYTES]))
            raise BadFileError("not a Safetensors or GGUF file", path=path, got=got, expected="a LoRA adapter")
        tensors, config_path = read_mapped(data, path)[1], contained(CONFIG_NAME, path, folders=False)
        config = read_json(config_path) if exists(config_path) else {}
    _check_config(config, config_path)
    factors: dict[str, dict[str, Tensor]] = {}
    others = []
    for tensor in tensors:
        if _OTHER_METHODS.fullmatch(tensor.name):
            raise UnsupportedError("an adapter that is more than LoRA", path=path, tensor=tensor.name)
        match = _FACTOR.fullmatch(tensor.name)
        if match is not None:
            parts = factors.setdefault(match["module"], {})
            if parts.setdefault(match["part"].lower(), tensor) is not tensor:
                raise BadFileError("two adapters for one weight", path=path, tensor=match["module"])
        else:
            others.append(tensor.name)
    if not factors:
        expected = "tensors named lora_A and lora_B"
        raise BadFileError("no LoRA adapter is in this file", path=path, expected=expected)
    pairs = [_pair(module, factors[module], config, path) for module in sorted(factors)]
    return Adapter(path, pairs, others)


def _pair(module: str, parts: Mapping[str, Tensor], config: Mapping[str, Any], path: Path) -> Pair:
    for part in "ab":
        if part not in parts:
            raise BadFileError("half of a pair is missing", path=path, tensor=module, expected=f"lora_{part.upper()}")
    a, b = parts["a"], parts["b"]
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[1] or 0 in (*a.shape, *b.shape):
        got = f"{list(a.shape)} and {list(b.shape)}"
        raise BadFileError("wrong shapes", path=path, tensor=module, got=got, expected="(rank, cols) and (rows, rank)")
    rank = a.shape[0]
    if config.get("r") and not config.get("rank_pattern") and config["r"] != rank:
        raise BadFileError("wrong rank", path=path, tensor=a.name, got=rank, expected=f"r = {config['r']}")
    return Pair(module, a, b, _scale(module, rank, config))


def _scale(module: str, rank: int, config: Mapping[str, Any]) -> float:
    """alpha / rank, or / sqrt(rank); 1 for files that do not say."""
    alpha = config.get("lora_alpha")
    for name, of_name in (config.get("alpha_pattern") or {}).items():
        if f".{module}".endswith(f".{name}"):
            alpha = of_name
    if alpha is None:
        return 1.0
    return float(alpha) / (math.sqrt(rank) if config.get("use_rslora") else rank)


def _check_config(config: Mapping[str, Any], path: Path) -> None:
    if config.get("peft_type", "LORA") != "LORA":
        raise UnsupportedError("an adapter of another kind", path=path, got=config["peft_type"], expected="LORA")
    for key, neutral in _NEUTRAL.items():
        if config.get(key, neutral) not in (neutral, None):
            raise UnsupportedError(f"an adapter with {key}", path=path, got=config[key], expected=neutral)
    patterns = {key: config.get(key) or {} for key in ("alpha_pattern", "rank_pattern")}
    for key, pattern in patterns.items():
        if type(pattern) is not dict:
            raise BadFileError(f"wrong {key}", path=path, got=pattern, expected="an object")
        for name in pattern:
            if not re.fullmatch(r"[\w.]+", name):
                raise UnsupportedError(f"an expression in {key}", path=path, got=name, expected="a module's name")
    if type(config.get("use_rslora")) not in (bool, type(None)):
        raise BadFileError("wrong use_rslora", path=path, got=config["use_rslora"], expected="true or false")
    for alpha in (config.get("lora_alpha", 1), *patterns["alpha_pattern"].values()):
        if type(alpha) not in (int, float) or not abs(alpha) <= MAX_SCALE:
            raise BadFileError("wrong alpha", path=path, got=alpha, expected=f"a number up to {MAX_SCALE:g}")
    if type(config.get("r")) not in (int, type(None)):
        raise BadFileError("wrong r", path=path, got=config["r"], expected="a whole number")
