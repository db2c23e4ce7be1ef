"""A server of a real model for as long as a block runs; `MODELC_TEST_SERVER` names one that runs already."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import modelc
from modelc.api.address import bind_listener, url_of
from modelc.api.http_loop import run_until
from modelc.api.options import ServeOptions
from modelc.api.state import ServerState


@contextmanager
def serving(path: Path, **options: Any) -> Iterator[str]:
    """Serve a model on a free port.

    Args:
        path: its file.
        **options: of `modelc.load`.

    Yields:
        The server's URL, without `/v1`.
    """
    if running := os.environ.get("MODELC_TEST_SERVER"):
        yield running.rstrip("/")
        return
    stop = threading.Event()
    listener = bind_listener("127.0.0.1", 0)
    url = url_of(listener)
    with modelc.load(path, **options) as model:
        thread = threading.Thread(target=run_until, args=(stop, ServerState(ServeOptions(), model), listener))
        thread.start()
        try:
            yield url
        finally:
            stop.set()
            thread.join()
