"""`modelc containerize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.options import ModelOption, StoreOption, open_store
from modelc.cli.progress import ProgressBar
from modelc.cli.text import printable
from modelc.resolve import as_modelc, find_model, stem_of

EXAMPLES = """Examples:
  modelc containerize smollm2 -o image && docker build -t smollm2 image
  modelc containerize smollm2 -o image --kubernetes
  modelc containerize model-serve.pyz -o image     from a compiled file"""


def containerize(
    model: Annotated[
        ModelOption, Parameter(help="A name in the store (NAME or NAME:VERSION), a model file, or a compiled file.")
    ],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="The folder to make.")] = Path("image"),
    base_image: Annotated[
        str | None, Parameter(help="The image to build on, with Python. [default: python:3.x-slim, of this Python]")
    ] = None,
    kubernetes: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Write Kubernetes manifests too: deployment, service, autoscaler."
        ),
    ] = False,
    store: StoreOption = None,
) -> None:
    """Write a folder from which Docker builds an image that serves the model, as a user without rights."""
    path = find_model(model, open_store(store))
    with ProgressBar() as bar:
        packed = as_modelc(path, bar)
    from modelc.container import write_context
    from modelc.formats import modelc

    modelc.read_header(packed)

    name = stem_of(path) if path.exists() and Path(model) == path else model.partition(":")[0]
    context = write_context(packed, output, name=name, base_image=base_image, kubernetes=kubernetes)
    folder = printable(str(context.folder))
    print("\n".join(f"wrote {folder}/{file}" for file in context.files))
    print(f"\nbuild and run it:\n  docker build -t {context.image} {folder}\n  docker run -p 8080:8080 {context.image}")
    if kubernetes:
        print(f"  kubectl apply -f {folder}/kubernetes")
