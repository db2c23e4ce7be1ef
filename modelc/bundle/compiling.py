"""From a model to a compiled file: kernels, dependencies and weights brought together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from modelc.bundle.blas_stub import without_openblas
from modelc.bundle.compiled_file import Payload, write_compiled
from modelc.bundle.distributions import files_for, own_files
from modelc.bundle.fallback import cpp_libraries
from modelc.bundle.isas import Isa, isas_of
from modelc.bundle.kernels import build_libraries
from modelc.bundle.modules import HERE, interpreter_of, module_archive
from modelc.bundle.target import Target
from modelc.formats import open_model
from modelc.runtime.kernel_names import kernel_names
from modelc.version import __version__, git_sha

LIBRARIES = "libraries/"  # where the manifest has the shared objects of packages
KERNELS = "kernels/"  # and the kernels
Progress = Callable[[int, int, str], None]


def compile_model(
    weights: Path,
    output: Path,
    target: Target,
    pythons: Sequence[str] = (HERE,),
    options: Sequence[Sequence[str]] = (),
    debug: bool = False,
    isas: Sequence[Isa] | None = None,
    progress: Progress | None = None,
) -> None:
    """Write a compiled file.

    Args:
        weights: a plain `.modelc`.
        output: the file to create or replace.
        target: where it will run.
        pythons: versions of CPython that it will run on, like `3.11`.
        options: what it does unless its user says otherwise: options of `modelc run`, each with its values.
        debug: kernels as they are written, with symbols.
        isas: instruction sets to build kernels for; None for all of the target's.
        progress: called with done, total and a label.

    Raises:
        ModelcError: the model cannot be run, there is no linker, a dependency is missing, `output` cannot be written.
    """
    model = open_model(weights)
    names = kernel_names(model)
    libraries = (
        build_libraries(names, isas or isas_of(target.machine), target, debug, _labelled(progress, "compiling kernels"))
        if names
        else {}
    )
    kernels = {f"{KERNELS}{isa}{target.library_suffix}": library for isa, library in libraries.items()}
    payloads: list[Payload] = []
    for python in pythons:
        if progress is not None:
            progress(len(payloads), len(pythons), "gathering packages")
        payloads.append(_payload(python, target, kernels))
    manifest = {
        "version": __version__,
        "git_sha": git_sha(),
        "name": model.name,
        "architecture": model.architecture,
        "parameters": model.total_params,
        "weights_bytes": weights.stat().st_size,
        "target": {"name": target.name, "system": target.system, "machine": target.machine},
        "isas": sorted(libraries),
        "options": [list(option) for option in options],
        "debug": debug,
    }
    write_compiled(output, weights, manifest, payloads)


def _payload(python: str, target: Target, kernels: Mapping[str, bytes]) -> Payload:
    packages = without_openblas(files_for(python, target), target)
    if target.is_host and python == HERE:
        packages |= cpp_libraries()
    objects = {name: content for name, content in packages.items() if _is_shared_object(name)}
    modules = {name: content for name, content in packages.items() if name not in objects}
    modules |= own_files() | {"modelc/git_sha.txt": f"{git_sha()}\n".encode()}
    archive = module_archive(modules, python)
    files = {f"{LIBRARIES}{name}": content for name, content in objects.items()}
    return Payload(python, archive, interpreter_of(python) is None, {**files, **kernels})


def _is_shared_object(name: str) -> bool:
    file = name.rpartition("/")[2]
    return ".so" in file or file.endswith((".pyd", ".dll", ".dylib"))


def _labelled(progress: Progress | None, label: str) -> Progress | None:
    return None if progress is None else lambda done, total, _: progress(done, total, label)
