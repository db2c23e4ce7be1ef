"""Serving: the socket first, then the model in a thread, then requests until a signal ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from modelc.api.address import bind_listener, url_of
from modelc.api.fields import check_defaults
from modelc.api.shortened_file import end_with_message_on_bus_error
from modelc.api.state import ServerState
from modelc.errors import ModelcError

if TYPE_CHECKING:
    from types import FrameType

    from modelc.api.options import ServeOptions
    from modelc.runtime import LoadedModel

SIGNALS = (signal.SIGINT, signal.SIGTERM)
MAX_FILES = 1 << 16  # that are asked for: each connection is one


def serve(load_model: Callable[[], LoadedModel], options: ServeOptions) -> int:
    """Serve a model over HTTP until SIGINT or SIGTERM; to be called in the main thread.

    The first signal ends the server when the requests in flight are answered, a second one ends the process at once.

    Args:
        load_model: Called in a thread while the server already listens; `/health` answers 503 until it returns.
        options: Address, limits and defaults.

    Returns:
        The exit code, 0.

    Raises:
        BadInputError: A sampling default is out of range, or the address is not one.
        ModelcError: The address cannot be listened on, or `load_model` failed with it.
    """
    check_defaults(options.defaults)
    end_with_message_on_bus_error()
    _allow_many_connections()
    stop = threading.Event()
    failures: list[BaseException] = []
    server = ServerState(options)
    with bind_listener(options.bind, options.port) as listener, _stopped_by_signals(stop):
        url = url_of(listener)

        def load() -> None:
            try:
                model = load_model()
            except BaseException as error:
                failures.append(error)
                stop.set()
                return
            server.loaded_model = model
            print(f"modelc: serving {model.name} on {url} (Ctrl-C stops)", file=sys.stderr, flush=True)
            with contextlib.suppress(ModelcError):
                model.tokenizer.encode("Hello", False, False)  # makes tables, for which no request then waits

        # Before the model is loaded: threads that import or load beside each other take turns at the interpreter, and a
        # start is 50 ms longer.
        from modelc.api.http_loop import run_until

        loader = threading.Thread(target=load, name="modelc-load", daemon=True)
        loader.start()
        run_until(stop, server, listener)
    if failures:
        raise failures[0]
    if loader.is_alive():
        _exit_now(0)  # code that compiles cannot be stopped, and must not see the interpreter taken down under it
    server.close()
    return 0


def _allow_many_connections() -> None:
    """Raise the limit of open files, which is often 1,024, as far as the system lets us."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            _exit_now(128 + number)
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit_now(code: int) -> None:
    with contextlib.suppress(OSError, RuntimeError):  # a signal may arrive in the middle of a flush
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
