"""From a model to a compiled file: kernels, dependencies and weights brought together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from modelc.bundle.blas_stub import without_openblas
from modelc.bundle.boot.libraries import LIBRARIES
from modelc.bundle.compiled_file import Beginning, Payload, by_shell, write_compiled
from modelc.bundle.distributions import files_for, own_files
from modelc.bundle.elf import glibc_minor, without_sections
from modelc.bundle.executable import executable
from modelc.bundle.fallback import cpp_libraries
from modelc.bundle.interpreter import Interpreter, interpreter
from modelc.bundle.isas import Isa, isas_of
from modelc.bundle.kernels import build_libraries
from modelc.bundle.launcher import launcher
from modelc.bundle.modules import HERE, interpreter_of, module_archive
from modelc.bundle.target import Target
from modelc.errors import UnsupportedError
from modelc.formats import open_model
from modelc.formats.onnx_plan import KEY as PLAN
from modelc.runtime.kernel_names import kernel_names
from modelc.version import __version__, git_sha

KERNELS = "kernels/"  # where the manifest has the kernels
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
    is_executable: bool = False,
) -> str:
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
        is_executable: whether it brings this Python along, and is a program that needs none.

    Returns:
        What the computer must have where it runs.

    Raises:
        ModelcError: the model cannot be run, there is no linker, a dependency is missing, `output` cannot be written,
            or this Python cannot be taken along.
    """
    carried = _carried_python(target, pythons) if is_executable else None
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
        payloads.append(_payload(python, target, kernels, PLAN in model.metadata))
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
    beginning, needs = by_shell(pythons), f"Python {' or '.join(pythons)}"
    if carried is not None:
        beginning, glibc = _executable(carried, payloads[0], target)
        manifest |= {"python": carried.version, "glibc": glibc}
        needs = f"glibc {glibc} or newer"
    write_compiled(output, weights, manifest, payloads, beginning)
    return needs


def _carried_python(target: Target, pythons: Sequence[str]) -> Interpreter:
    if not (target.is_host and target.system == "linux"):
        hint = "compile it there, or without --format elf"
        raise UnsupportedError("target of an executable", got=target.name, expected="this computer, Linux", hint=hint)
    if list(pythons) != [HERE]:
        hint = "run modelc with that Python, or compile without --format elf"
        raise UnsupportedError("Python of an executable", got=", ".join(pythons), expected=HERE, hint=hint)
    return interpreter()


def _executable(python: Interpreter, payload: Payload, target: Target) -> tuple[Beginning, str]:
    """How an executable begins, and the version of glibc that it needs."""
    program = launcher(target)
    minors = [glibc_minor(content) for content in (program, *payload.files.values())]
    least = max(python.glibc_minor, *minors)
    return executable(program, python, least), f"2.{least}"


def _payload(python: str, target: Target, kernels: Mapping[str, bytes], is_graph: bool) -> Payload:
    packages = without_openblas(files_for(python, target, is_graph), target)
    if target.is_host:
        packages |= cpp_libraries()
    objects = {name: content for name, content in packages.items() if _is_shared_object(name)}
    modules = {name: content for name, content in packages.items() if name not in objects}
    modules |= own_files() | {"modelc/git_sha.txt": f"{git_sha()}\n".encode()}
    archive = module_archive(modules, python)
    if target.system == "linux":
        objects = {name: without_sections(content) for name, content in objects.items()}
    files = {f"{LIBRARIES}{name}": content for name, content in objects.items()}
    return Payload(python, archive, interpreter_of(python) is None, {**files, **kernels})


def _is_shared_object(name: str) -> bool:
    file = name.rpartition("/")[2]
    return ".so" in file or file.endswith((".pyd", ".dll", ".dylib"))


def _labelled(progress: Progress | None, label: str) -> Progress | None:
    return None if progress is None else lambda done, total, _: progress(done, total, label)
