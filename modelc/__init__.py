"""modelc packs neural-network weights into one file and runs them locally, with the same bits every time.

Everything here is imported when it is first used, so that `import modelc` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelc.constraints import Constraint
    from modelc.errors import ModelcError
    from modelc.ir import Model
    from modelc.library import extract_tokenizer_metadata, load, pack
    from modelc.summary import inspect
    from modelc.text import BpeTokenizer, apply_chat_template
    from modelc.version import __version__

_HOMES = {
    "load": "modelc.library",
    "pack": "modelc.library",
    "inspect": "modelc.summary",
    "Model": "modelc.ir",
    "ModelcError": "modelc.errors",
    "BpeTokenizer": "modelc.text",
    "Constraint": "modelc.constraints",
    "apply_chat_template": "modelc.text",
    "extract_tokenizer_metadata": "modelc.library",
    "__version__": "modelc.version",
}

__all__ = [
    "BpeTokenizer",
    "Constraint",
    "Model",
    "ModelcError",
    "__version__",
    "apply_chat_template",
    "extract_tokenizer_metadata",
    "inspect",
    "load",
    "pack",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'modelc' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
