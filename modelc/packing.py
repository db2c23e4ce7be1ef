"""Packing: a model file of any format becomes one `.modelc` file."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

from modelc.errors import BadFileError, BadInputError
from modelc.formats import Progress, modelc, open_model
from modelc.formats.atomic import refuse_overwriting
from modelc.formats.onnx_plan import KEY as PLAN
from modelc.quantizing import Quantization


def pack(
    source: str | PathLike[str],
    output: str | PathLike[str],
    *,
    name: str | None = None,
    arch: str | None = None,
    compress: bool = False,
    format: str | None = None,
    quantization: Quantization | None = None,
    progress: Progress | None = None,
) -> Path:
    """Packs a model into a `.modelc` file.

    Args:
        source: A weights file of any format that modelc reads.
        output: The file to create or replace. It is complete or does not change.
        name: The model's name; None for the source's.
        arch: The architecture; None for the source's.
        compress: Whether tensors are compressed with zstd. Such a file is smaller, and not used in place.
        format: The source's format; None to tell it from the file.
        quantization: Which types the matrices get; None to leave them.
        progress: Called as `progress(done_bytes, total_bytes, label)` after each tensor.

    Returns:
        `output`.

    Raises:
        NotFoundError: No such source.
        BadFileError: The source is damaged, has no tensors, or a value that its new type cannot hold.
        BadInputError: `output`, `name`, `arch`, `format` or a rule cannot be used.
        UnsupportedError: A format, version or type that modelc does not read.
        WriteError: The output cannot be written.
    """
    for param, text in (("name", name), ("arch", arch)):
        if text == "":
            raise BadInputError("an empty name", param=param, expected="at least one character")
    refuse_overwriting(Path(source), Path(output))
    model = open_model(source, format)
    if not model.tensors and PLAN not in model.metadata:
        raise BadFileError("the file has no tensors", path=source, hint="name a file with the model's weights")
    model = replace(model, name=name or model.name, architecture=arch or model.architecture)
    if quantization is not None and quantization.changes_anything:
        quantization.check(model.tensors)
        model = replace(model, metadata=quantization.metadata_of(model))
        modelc.write(model, Path(output), compress, progress, quantization)
    else:
        modelc.write(model, Path(output), compress, progress)
    return Path(output)
