"""`modelc verify`."""

import json
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.options import JsonFlag, ModelOption, QuietFlag, StoreOption, open_store
from modelc.cli.progress import ProgressBar
from modelc.cli.text import bytes_text, printable
from modelc.errors import BadFileError
from modelc.resolve import find_model

EXAMPLES = """Examples:
  modelc verify smollm2
  modelc verify ./smollm2.modelc --json"""


def verify(
    path: Annotated[ModelOption, Parameter(help="A .modelc file, or a name in the store.")],
    /,
    *,
    json_: JsonFlag = False,
    quiet: QuietFlag = False,
    store: StoreOption = None,
) -> int:
    """Check every byte of a .modelc file: header, bounds, checksums."""
    found = find_model(path, open_store(store))
    from modelc.formats import modelc

    try:
        with ProgressBar(quiet=quiet) as bar:
            header = modelc.verify(found, bar)
    except BadFileError as error:
        if not json_:
            raise
        print(json.dumps({"path": str(found), "ok": False, "error": str(error), "tensor": error.tensor}))
        return 1
    if json_:
        print(json.dumps({"path": str(found), "ok": True, "tensors": len(header.entries)}))
    elif not quiet:
        size = bytes_text(found.stat().st_size)
        print(f"{printable(str(found))}: {len(header.entries)} tensors, {size}, every byte as it was written")
    return 0
