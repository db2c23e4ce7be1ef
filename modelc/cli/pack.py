"""`modelc pack`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.options import StoreOption, open_store
from modelc.cli.progress import ProgressBar
from modelc.cli.text import bytes_text, printable

EXAMPLES = """Examples:
  modelc pack model.gguf                    into the store, named after the file
  modelc pack model.gguf --name smollm2     into the store, as its next version
  modelc pack model.gguf -o smollm2.modelc  into a file"""


def pack(
    path: Annotated[Path, Parameter(help="The weights file; of a split one, any part.")],
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
    store: StoreOption = None,
) -> None:
    """Pack a weights file into one .modelc file, ready to run."""
    from modelc import library

    with ProgressBar() as bar:
        packed = library.pack(
            path,
            output,
            name=name,
            arch=arch,
            format=format,
            compress=compress,
            progress=bar,
            store=None if store is None else open_store(store),
        )
    print(f"packed {printable(str(packed))} ({bytes_text(packed.stat().st_size)})")
