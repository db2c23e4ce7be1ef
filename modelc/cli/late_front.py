"""Packages whose `__init__` is run when something of it is used, if ever, so that their modules can be had alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any

# uvicorn's imports a command line and process supervisors, prometheus_client's an HTTP server of its own; yaml is there
# for descriptions that litestar could write. Together they are a twentieth of a server's start.
SERVING: Mapping[str, Mapping[str, str]] = {
    "prometheus_client": {},
    "uvicorn": {"Config": "uvicorn.config"},
    "yaml": {},
}


def run_late(name: str, homes: Mapping[str, str]) -> None:
    """Let modules of the package `name` be imported without what its `__init__` imports.

    Args:
        name: the package.
        homes: modules of names that others take from the package: that alone does not run its `__init__`.
    """
    if name in sys.modules or (spec := find_spec(name)) is None or spec.loader is None:
        return
    package, loader = module_from_spec(spec), spec.loader

    def find(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        if attribute in homes:
            return getattr(import_module(homes[attribute]), attribute)
        if find_spec(f"{name}.{attribute}") is not None:
            return import_module(f"{name}.{attribute}")
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = find
    sys.modules[name] = package
