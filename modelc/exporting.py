"""Exporting: a model of any format becomes a file that other programs read."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from modelc.dtypes import DTYPES
from modelc.errors import BadInputError, located
from modelc.formats import Progress, open_model
from modelc.formats.atomic import refuse_overwriting
from modelc.formats.gguf_writer import write as write_gguf
from modelc.formats.safetensors_writer import write as write_safetensors
from modelc.models.to_gguf import as_gguf
from modelc.models.to_hugging_face import as_hugging_face

FORMATS = {".gguf": "gguf", ".safetensors": "safetensors"}  # by suffix
FLOATS = ("f32", "f16", "bf16")


def export(
    source: str | PathLike[str],
    output: str | PathLike[str],
    *,
    format: str | None = None,
    floats: str = "f32",
    progress: Progress | None = None,
) -> Path:
    """Writes a model as GGUF or Safetensors.

    Args:
        source: A `.modelc` or any weights file that modelc reads.
        output: The file to create or replace. It is complete or does not change.
        format: `gguf` keeps quantized tensors as they are, and gives a Hugging Face model GGUF's names, keys and
            tokenizer; `safetensors` makes floats of quantized tensors, and gives a GGUF model Hugging Face's names and
            configuration (under `config` in its metadata); None for what the output's suffix says.
        floats: What quantized tensors become in Safetensors: f32, f16 or bf16.
        progress: Called as `progress(done_bytes, total_bytes, label)` after each tensor.

    Returns:
        `output`.

    Raises:
        NotFoundError: No such source.
        BadFileError: The source is damaged.
        BadInputError: `output`, `format` or `floats` cannot be used.
        UnsupportedError: The format cannot hold the model.
        WriteError: The output cannot be written.
    """
    output = Path(output)
    format = format or FORMATS.get(output.suffix.lower())
    if format not in FORMATS.values():
        expected = " or ".join(FORMATS.values())
        raise BadInputError("not a format to export to", param="format", got=format or output.name, expected=expected)
    if floats not in FLOATS:
        raise BadInputError("not a type of floats", param="floats", got=floats, expected=", ".join(FLOATS))
    refuse_overwriting(Path(source), output)
    model = open_model(source)
    if format == "safetensors":
        write_safetensors(as_hugging_face(model), output, DTYPES[floats], progress)
        return output
    with located(source):
        model = as_gguf(model)
    write_gguf(model, output, progress)
    return output
