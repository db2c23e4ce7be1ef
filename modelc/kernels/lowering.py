"""From a kernel in Python to LLVM IR that no processor's features have touched yet, by Numba's front end.

Numba would optimise each function and its callees for one processor, and load the machine code. Here it only writes
down what the functions do; `machine_code` does the rest, for as many processors as are wanted. Nothing that a user
compiles with Numba in the same process is affected.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target


class _Lowered(JITCodeLibrary):
    """A function and its callees as Numba lowered them, in one module."""

    def _optimize_functions(self, module: Any) -> None:
        """Only what linking needs."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Left to `machine_code`."""

    def _finalize_final_module(self) -> None:
        """Not given to Numba's engine, which would load it."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No address is ever called."""
        self._ensure_finalized()
        return 0


def lowered(dispatcher: Any, signature: tuple[Any, ...]) -> tuple[str, str]:
    """Lower a kernel.

    Args:
        dispatcher: the function, as Numba's `njit` gave it, not yet compiled.
        signature: Numba types of its arguments.

    Returns:
        Its symbol, and the LLVM IR of a module that defines it and all that it calls.
    """
    context = cpu_target.target_context
    context.refresh()  # Numba's own runtime is compiled as ever
    with global_compiler_lock, _lowering(context.codegen()):
        dispatcher.compile(signature)
        compiled = dispatcher.overloads[signature]
        return compiled.fndesc.llvm_func_name, str(compiled.library._final_module)


@contextmanager
def _lowering(codegen: Any) -> Iterator[None]:
    """While the block runs, under Numba's lock, functions are lowered and no more."""
    codegen._library_class = _Lowered
    codegen.set_env = lambda name, env: None  # kernels use no Python objects
    try:
        yield
    finally:
        del codegen._library_class, codegen.set_env
