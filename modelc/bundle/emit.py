"""A program: compiles kernels to object files for the processor that the environment names, on any machine.

    NUMBA_CPU_NAME=… NUMBA_CPU_FEATURES=… python -m modelc.bundle.emit < job

The job is JSON: the target's LLVM triple, the optimisation level, and for each function its name, its symbol and the
file to write. A line is printed for each that is done. Numba reads the processor from the environment, so each
instruction set is compiled by a process of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from modelc.kernels.catalogue import function


class _NoEngine:
    """Stands where Numba would load what it compiled: the code is for another processor, and is only written down."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine  # owns Numba's global module

    def add_module(self, module: Any) -> None:
        """Nothing is run."""

    def finalize_object(self) -> None:
        """Nothing is run."""

    def is_symbol_defined(self, name: str) -> bool:
        """Whatever it is, the linker will find it, or say so."""
        return True

    def get_function_address(self, name: str) -> int:
        """No address is ever called."""
        return 0


def compile_for(triple: str) -> None:
    """Make Numba, which must not have been loaded yet, compile for `triple` and run nothing."""
    assert "numba" not in sys.modules, "the triple is read when Numba is loaded"
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.get_process_triple = lambda: triple
    from numba.core.registry import cpu_target

    codegen = cpu_target.target_context.codegen()
    codegen._engine = _NoEngine(codegen._engine)
    codegen.set_env = lambda name, env: None


def emit(name: str, symbol: str, triple: str, optimisation: int) -> bytes:
    """The function `name` as an object file that defines `symbol`, and nothing else that others see."""
    from numba.core.registry import cpu_target

    dispatcher, signature = function(name)
    dispatcher.compile(signature)
    compiled = dispatcher.overloads[signature]
    module = llvm.parse_assembly(str(compiled.library._final_module))
    module.get_function(compiled.fndesc.llvm_func_name).name = symbol
    for defined in (*module.functions, *module.global_variables):
        if not defined.is_declaration and defined.name != symbol:
            defined.linkage = "internal"
    codegen = cpu_target.target_context.codegen()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=codegen._get_host_cpu_name(),
        features=codegen._tm_features,
        opt=optimisation,
        reloc="pic",
        codemodel="default",
    )
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(optimisation))
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    machine.set_asm_verbosity(False)
    code: bytes = machine.emit_object(module)
    return code


def main() -> None:
    """Do the job on the standard input."""
    job = json.load(sys.stdin)
    compile_for(job["triple"])
    for name, symbol, file in job["functions"]:
        Path(file).write_bytes(emit(name, symbol, job["triple"], job["optimisation"]))
        print(name, flush=True)


if __name__ == "__main__":
    main()
