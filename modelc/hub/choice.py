"""Which files of a repository or archive are the model: a `.modelc`, else one GGUF, else Safetensors, ONNX, PyTorch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from modelc.errors import BadInputError, NotFoundError, did_you_mean

SHARD = re.compile(r"(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})(?P<suffix>\.\w+)", re.DOTALL)
QUANT = re.compile(
    r"(?:^|[-._/])((?:UD-)?(?:I?Q\d(?:_[0-9A-Z]+)*|MXFP4(?:_MOE)?|BF16|F16|F32))(?=[-._/]|$)", re.IGNORECASE
)
BESIDE = (  # files that a model in a folder may have beside its weights
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "modules.json",
    "1_Pooling/config.json",
)
KINDS = (".safetensors", ".onnx", ".bin", ".pt", ".pth")  # in this order, where there is neither .modelc nor GGUF
INDEX_SUFFIX = ".index.json"


def choose(sizes: Mapping[str, int | None], file: str | None, quant: str | None, where: str) -> list[str]:
    """The files of one model, the one to open first, with all its parts and what stands beside it.

    Args:
        sizes: every file's path in the source, with `/`, and its size.
        file: the one that the user wants: a path, a name or a pattern.
        quant: the quantization that the user wants, like `Q4_K_M`.
        where: the source, for messages.

    Raises:
        BadInputError: several models, and no telling which; names them.
        NotFoundError: no model, or not the one that is wanted.
    """
    models = _models(sizes)
    if file is not None:
        models = _named(models, file, where)
    elif quant is None:
        models = _preferred(models)
    if quant is not None:
        models = _quantized(models, quant, where)
    if not models:
        hint = "name another, or a file of it with --file"
        raise NotFoundError("no model is there", path=where, expected=".modelc, .gguf or .safetensors", hint=hint)
    if len(models) > 1:
        choices = ", ".join(f"{_label(first)} ({_size_text(sizes, parts)})" for first, parts in sorted(models.items()))
        option = "--quant" if all(_quant_of(first) for first in models) else "--file"
        raise BadInputError("several models are there", path=where, got=choices, hint=f"choose one with {option}")
    ((first, parts),) = models.items()
    return [*parts, *_beside(sizes, first)]


def _models(sizes: Mapping[str, int | None]) -> dict[str, list[str]]:
    """Every model by the file to open: itself, or all its parts."""
    found: dict[str, list[str]] = {}
    for path in sorted(sizes):
        name = PurePosixPath(path)
        shard = SHARD.fullmatch(path)
        if name.suffix.lower() not in (".modelc", ".gguf", *KINDS) or name.name.lower().startswith("mmproj"):
            continue
        if shard is None:
            found[path] = [path]
            continue
        index = f"{shard['stem']}{shard['suffix']}{INDEX_SUFFIX}"
        first = index if index in sizes else f"{shard['stem']}-00001-of-{shard['count']}{shard['suffix']}"
        found.setdefault(first, [index] if index in sizes else []).append(path)
    return found


def _preferred(models: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Those of the first kind that is there; of folders in a folder, only what stands at the top."""
    for suffix in (".modelc", ".gguf", *KINDS):
        found = {first: parts for first, parts in models.items() if parts[-1].lower().endswith(suffix)}
        if not found:
            continue
        if suffix in KINDS:
            depth = min(first.count("/") for first in found)
            found = {first: parts for first, parts in found.items() if first.count("/") == depth}
            usual = {first: parts for first, parts in found.items() if PurePosixPath(first).name.startswith("model.")}
            found = usual or found
        return found
    return {}


def _named(models: Mapping[str, list[str]], file: str, where: str) -> dict[str, list[str]]:
    for matches in (
        lambda path: path == file,
        lambda path: PurePosixPath(path).name == file,
        lambda path: fnmatchcase(path.lower(), file.lower()),
    ):
        found = {first: parts for first, parts in models.items() if any(map(matches, [first, *parts]))}
        if found:
            return found
    names = [path for parts in models.values() for path in parts]
    hint = did_you_mean(file, names) or f"there are {', '.join(names[:10])}"
    raise NotFoundError("no such file", path=where, got=file, hint=hint)


def _quantized(models: Mapping[str, list[str]], quant: str, where: str) -> dict[str, list[str]]:
    found = {first: parts for first, parts in models.items() if _quant_of(first).lower() == quant.lower()}
    if not found:
        there = sorted({label for first in models if (label := _quant_of(first))})
        hint = did_you_mean(quant, there) or (f"there are {', '.join(there)}" if there else "leave --quant out")
        raise NotFoundError("no file of this quantization", path=where, got=quant, hint=hint)
    return found


def _quant_of(path: str) -> str:
    """The quantization that a file's name tells: the last one in it."""
    found = QUANT.findall(SHARD.sub(r"\g<stem>\g<suffix>", path)) if path.lower().endswith(".gguf") else []
    return str(found[-1]) if found else ""


def _label(path: str) -> str:
    return _quant_of(path) or path


def _size_text(sizes: Mapping[str, int | None], parts: list[str]) -> str:
    known = [size for path in parts if (size := sizes[path]) is not None]
    return f"{sum(known) / 1e9:.2f} GB" if len(known) == len(parts) else "size unknown"


def _beside(sizes: Mapping[str, int | None], first: str) -> list[str]:
    if first.lower().endswith((".modelc", ".gguf")):
        return []
    folder = first.rpartition("/")[0]
    places = [f"{folder}/{name}" if folder else name for name in BESIDE]
    external = [f"{first}.data", f"{first}_data"]  # weights of ONNX graphs
    return [path for path in [*places, *external] if path in sizes]
