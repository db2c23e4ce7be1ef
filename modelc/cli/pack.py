"""`modelc pack`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli.options import QuietFlag, StoreOption, open_store
from modelc.cli.progress import ProgressBar
from modelc.cli.text import bytes_text, printable

EXAMPLES = """Examples:
  modelc pack model.gguf                    into the store, named after the file
  modelc pack model.gguf --name smollm2     into the store, as its next version
  modelc pack model.gguf -o smollm2.modelc  into a file
  modelc pack model.gguf --quantize q4_k --keep 'output*=q8_0'"""


def pack(
    path: Annotated[Path, Parameter(help="The weights file or the model's folder; of a split one, any part.")],
    /,
    *,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="File to write, instead of a version in the store.")
    ] = None,
    name: Annotated[str | None, Parameter(help="The model's name. [default: made from the file's]")] = None,
    arch: Annotated[str | None, Parameter(help="The architecture, where the file says none or a wrong one.")] = None,
    format: Annotated[
        str | None,
        Parameter(name=["--format", "-f"], help="The file's format, where nothing else tells it."),
    ] = None,
    compress: Annotated[bool | None, Parameter(help="Compress with zstd: smaller, but not used in place.")] = None,
    quantize: Annotated[
        str | None,
        Parameter(
            help="Type for the matrices: fp16, bf16, int8 (= q8_0), int4 (= q4_0), q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, "
            "q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs. Norms, biases and small tensors stay as they are; columns that do "
            "not fill blocks of 256 get a type with blocks of 32 and no more error, else fp16."
        ),
    ] = None,
    keep: Annotated[
        tuple[str, ...],
        Parameter(
            help="PATTERN=TYPE: another type for tensors whose names match; PATTERN alone: the file's own. May be "
            "given several times; the first that matches counts.",
            negative=(),
            show_default=False,
        ),
    ] = (),
    prune: Annotated[
        float,
        Parameter(
            help="Weights with a smaller absolute value become 0, before all else.",
            validator=Number(gte=0),
            show_default=False,
        ),
    ] = 0.0,
    quiet: QuietFlag = False,
    store: StoreOption = None,
) -> None:
    """Pack a weights file into one .modelc file, ready to run."""
    from modelc import library

    with ProgressBar(quiet=quiet) as bar:
        packed = library.pack(
            path,
            output,
            name=name,
            arch=arch,
            format=format,
            compress=compress,
            quantize=quantize,
            keep=keep,
            prune=prune,
            progress=bar,
            store=None if store is None else open_store(store),
        )
    name_text = printable(str(packed))
    print(name_text if quiet else f"packed {name_text} ({bytes_text(packed.stat().st_size)})")
