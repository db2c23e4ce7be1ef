"""A program: compiles kernels to object files for any processors, on any machine.

    python -m modelc.bundle.emit < job

The job is JSON: the level of optimisation, and for each function its name (of the catalogue, or `module:function`), its
symbol, and for each processor the three fields of `Processor` and the file to write. A function is lowered once for all
processors. A line is printed for each file that is written.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from modelc.kernels.catalogue import function
from modelc.kernels.lowering import lowered
from modelc.kernels.machine_code import Processor, object_file


def _function(name: str) -> tuple[Any, tuple[Any, ...]]:
    """The Numba function, not yet compiled, and the types of its arguments; another module's are its `SIGNATURE`."""
    module, colon, attribute = name.partition(":")
    if not colon:
        return function(name)
    found = import_module(module)
    return getattr(found, attribute), found.SIGNATURE


def main() -> None:
    """Do the job on the standard input."""
    job = json.load(sys.stdin)
    for name, new_symbol, outputs in job["functions"]:
        symbol, text = lowered(*_function(name))
        for processor, file in outputs:
            Path(file).write_bytes(object_file(text, symbol, Processor(*processor), new_symbol, job["level"]))
            print(name, flush=True)


if __name__ == "__main__":
    main()
