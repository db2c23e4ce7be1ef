"""What happens when another program shortens the model's file while it is served.

Weights are read where the file is mapped; pages that a file no longer has cannot be read, and the system answers with
SIGBUS. Nothing can be computed from then on, so the process ends, with one line instead of silence. (A file that is
replaced by renaming another one over it does no harm: the old one stays as long as it is mapped.)
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from functools import cache
from typing import Any

MESSAGE = (
    b"modelc: error: the model's file was shortened by another program while it was in use; "
    b"put it back, and replace it by renaming next time\n"
)


@cache
def end_with_message_on_bus_error() -> Any:
    """End the process with MESSAGE and exit code 1 when a mapped file has lost its pages; nothing on Windows.

    The fault comes in the middle of whatever reads weights: compiled kernels, or NumPy's copies. Neither holds a lock
    that Python needs to run these few instructions.

    Returns:
        The handler, which must stay alive.
    """
    if not hasattr(signal, "SIGBUS") or sys.platform == "win32":
        return None

    def end(_number: int) -> None:
        os.write(2, MESSAGE)
        os._exit(1)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end)
    ctypes.CDLL(None).signal(int(signal.SIGBUS), handler)
    return handler
