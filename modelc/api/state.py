"""What all requests of one server share."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from modelc.api.access_log import AccessLog
from modelc.api.clients import Clients
from modelc.api.metrics import Metrics
from modelc.errors import BusyError

if TYPE_CHECKING:
    from modelc.api.options import ServeOptions
    from modelc.runtime import LoadedModel

TOKENIZING_THREADS = 2  # of each kind
COMPUTING_THREADS = 8  # requests for numbers that wait for the model or hand it work; the others wait for one of these
LONG_BODY_BYTES = 1 << 16


class ServerState:
    """Options, figures and the model, which comes when it is loaded.

    Args:
        options: What the server was started with.
        model: The model, or None while it loads.
    """

    def __init__(self, options: ServeOptions, model: LoadedModel | None = None) -> None:
        self.options = options
        self.loaded_model = model
        self.started_s = int(time.time())
        self._short_work = ThreadPoolExecutor(TOKENIZING_THREADS, thread_name_prefix="modelc-tokenize")
        self._long_work = ThreadPoolExecutor(TOKENIZING_THREADS, thread_name_prefix="modelc-tokenize-long")
        self.computing = ThreadPoolExecutor(COMPUTING_THREADS, thread_name_prefix="modelc-compute")
        self.adapter_work = ThreadPoolExecutor(1, thread_name_prefix="modelc-adapters")  # one at a time
        self.clients = Clients(options.trusted_proxies)
        self.access_log = None if options.access_log is None else AccessLog(options.access_log)
        self.metrics = Metrics(lambda: None if self.loaded_model is None else self.loaded_model.counters)

    def tokenizing(self, n_body_bytes: int) -> ThreadPoolExecutor:
        """The threads that tokenize for a body of this size: long ones wait for each other, short ones not for them."""
        return self._long_work if n_body_bytes > LONG_BODY_BYTES else self._short_work

    def close(self) -> None:
        """End what runs for the model, and write the rest of the access log."""
        self.model.close()
        if self.access_log is not None:
            self.access_log.close()

    @property
    def model(self) -> LoadedModel:
        """The loaded model, of whatever kind.

        Raises:
            BusyError: It is still loading.
        """
        if self.loaded_model is None:
            raise BusyError("the model is loading", hint="try again in a moment")
        return self.loaded_model
