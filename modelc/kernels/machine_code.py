"""From LLVM IR to an object file, for any processor."""

from __future__ import annotations

import os
from dataclasses import dataclass

import llvmlite.binding as llvm

from modelc.kernels.target_features import with_features


@dataclass(frozen=True, slots=True)
class Processor:
    """What machine code is made for.

    Attributes:
        triple: LLVM's name of the machine and system.
        cpu: LLVM's name of the processor.
        features: LLVM's list of features, like `+avx2,-prefer-256-bit`.
    """

    triple: str
    cpu: str
    features: str

    def has(self) -> set[str]:
        """Names of the features that are there."""
        return {feature[1:] for feature in self.features.split(",") if feature.startswith("+")}


def host_processor() -> Processor:
    """This computer's; `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` make it a lesser one."""
    cpu = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES") or llvm.get_host_cpu_features().flatten()
    triple = llvm.get_process_triple()
    if triple.startswith(("aarch64", "arm64")):
        features = f"+neon,{features}".rstrip(",")  # always there, but not every system tells LLVM
    return Processor(triple, cpu, features)


def object_file(text: str, symbol: str, processor: Processor, new_symbol: str = "", level: int = 3) -> bytes:
    """Optimise a module and make machine code of it.

    Args:
        text: LLVM IR, from `lowering`.
        symbol: the function that others will call; all else is hidden.
        processor: what the code is for.
        new_symbol: what to call the function in the object file; empty for `symbol`.
        level: of optimisation; 0 leaves the code as it is written.

    Returns:
        A relocatable ELF, Mach-O or COFF file with position-independent code.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(processor.triple).create_target_machine(
        cpu=processor.cpu, features=processor.features, opt=level, reloc="pic", codemodel="default"
    )
    machine.set_asm_verbosity(False)
    module = llvm.parse_assembly(with_features(text, processor.has()))
    module.triple, module.data_layout = processor.triple, str(machine.target_data)
    function = module.get_function(symbol)
    function.name = new_symbol or symbol
    for defined in (*module.functions, *module.global_variables):
        if not defined.is_declaration and defined.name != function.name:
            defined.linkage = "internal"
    tuning = llvm.create_pipeline_tuning_options(level)
    tuning.loop_vectorization, tuning.slp_vectorization = level > 0, False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    # At level 0 the ways that this processor does not have are still there.
    rest = llvm.create_new_module_pass_manager()
    rest.add_sccp_pass()
    rest.add_simplify_cfg_pass()
    rest.add_global_dead_code_eliminate_pass()
    rest.run(module, builder)
    code: bytes = machine.emit_object(module)
    return code
