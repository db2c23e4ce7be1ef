"""`modelc export`."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from modelc.cli.options import ModelOption, StoreOption, open_store
from modelc.cli.progress import ProgressBar
from modelc.cli.text import bytes_text, printable
from modelc.resolve import find_model

EXAMPLES = """Examples:
  modelc export smollm2 -o smollm2.gguf
  modelc export smollm2:2 -o smollm2.safetensors --floats f16
  modelc export ./model.modelc -o weights.bin --format gguf"""


def export(
    model: Annotated[ModelOption, Parameter(help="A name in the store, a .modelc or any weights file.")],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="The file to write.")],
    format: Annotated[
        Literal["gguf", "safetensors"] | None,
        Parameter(
            name=["--format", "-f"],
            help="gguf keeps quantized tensors, safetensors makes floats of them. [default: told by the file's suffix]",
        ),
    ] = None,
    floats: Annotated[
        Literal["f32", "f16", "bf16"], Parameter(help="What quantized tensors become in Safetensors.")
    ] = "f32",
    store: StoreOption = None,
) -> None:
    """Write a model as a GGUF or Safetensors file for other programs."""
    source = find_model(model, open_store(store))
    from modelc import exporting

    with ProgressBar() as bar:
        exporting.export(source, output, format=format, floats=floats, progress=bar)
    print(f"exported {printable(str(output))} ({bytes_text(output.stat().st_size)})")
