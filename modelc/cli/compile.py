"""`modelc compile`."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from modelc.cli.options import ModelOption, StoreOption, open_store, parse_size
from modelc.cli.progress import ProgressBar
from modelc.cli.run import run
from modelc.cli.server_options import NO_LIMITS, ServerOptions
from modelc.cli.text import bytes_text, printable
from modelc.errors import BadInputError, UnsupportedError
from modelc.resolve import as_modelc, find_model, stem_of
from modelc.store import SUFFIX
from modelc.version import version_line

EXAMPLES = """Examples:
  modelc compile smollm2                              writes model-serve.pyz
  modelc compile model.gguf -o chat.pyz --port 9000 --max-context 2048
  modelc compile smollm2 --python 3.11,3.12 --target aarch64-linux
  modelc compile smollm2 --format elf -o chat         needs no Python where it runs

Options of `modelc run` that are given are what the file does unless it is told otherwise:
  ./chat.pyz                                          listens on port 9000
  ./chat.pyz --listen 0.0.0.0:80 --threads 4
  ./chat.pyz --info"""
DEFAULT_OUTPUTS = {"pyz": Path("model-serve.pyz"), "elf": Path("model-serve")}
NOT_KEPT = ("--store", "--aot", "--no-aot")  # options of `run` that mean nothing in a compiled file


def compile_(
    path: Annotated[ModelOption, Parameter(help="A name in the store, a .modelc, a weights file or a model's folder.")],
    /,
    *run_options: Annotated[str, Parameter(help="Options of `modelc run` to build in.", allow_leading_hyphen=True)],
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="File to write. [default: model-serve.pyz or model-serve]")
    ] = None,
    format: Annotated[
        Literal["pyz", "elf"],
        Parameter(help="pyz: for computers that have Python; elf: a Linux executable that brings its own."),
    ] = "pyz",
    input_format: Annotated[
        str | None, Parameter(name=["-f", "--input-format"], help="The file's format, where nothing else tells it.")
    ] = None,
    arch: Annotated[str | None, Parameter(help="The architecture, where the file says none or a wrong one.")] = None,
    quantize: Annotated[str | None, Parameter(help="Type for the matrices, as for `modelc pack`.")] = None,
    target: Annotated[
        str | None,
        Parameter(
            help="Where it will run: x86_64-linux, aarch64-linux, x86_64-windows (untested), aarch64-macos "
            "(untested), or an LLVM triple. [default: a computer like this one]"
        ),
    ] = None,
    python: Annotated[
        str | None, Parameter(help="Versions of Python it will run on, like 3.11,3.12. [default: this one]")
    ] = None,
    debug: Annotated[bool, Parameter(negative="", help="Kernels as they are written, slow, with symbols.")] = False,
    store: StoreOption = None,
) -> None:
    """Compile a model into one executable file that serves it: weights, kernels, dependencies and the HTTP API."""
    print(version_line(), file=sys.stderr)
    options = built_in_options(run_options)
    source = find_model(path, open_store(store))
    from modelc.bundle.compiling import compile_model
    from modelc.bundle.modules import HERE
    from modelc.bundle.target import host_target, target_of
    from modelc.formats.atomic import refuse_overwriting

    chosen = host_target() if target is None else target_of(target)
    if chosen is None:
        raise UnsupportedError("nothing can be compiled for this system", hint="name another one with --target")
    _check_isa(options, chosen.machine)
    pythons = [HERE] if python is None else python_versions(python)
    is_executable = format == "elf"
    output = output or DEFAULT_OUTPUTS[format]
    refuse_overwriting(source, output)
    with tempfile.TemporaryDirectory(prefix="modelc-", dir=_folder_of(output)) as scratch:
        weights = _plain_weights(source, Path(scratch), input_format, arch, quantize)
        with ProgressBar(str) as bar:
            needs = compile_model(
                weights, output, chosen, pythons, options, debug, progress=bar, is_executable=is_executable
            )
            own_bytes = output.stat().st_size - weights.stat().st_size
    size = bytes_text(output.stat().st_size)
    print(f"compiled {printable(str(output))} ({size}, {bytes_text(own_bytes)} without the weights); it needs {needs}")
    if not chosen.is_tried:
        print(f"untested: nobody has run a compiled file on {chosen.name} yet")


def built_in_options(tokens: Sequence[str]) -> list[list[str]]:
    """Options of `run`, each with its values, as a compiled file keeps them; `--listen` as the two that it stands for.

    Args:
        tokens: the options as they were given.

    Raises:
        CycloptsError: not options of `run`.
        BadInputError: options that a compiled file has no use for, or values that it would refuse at every start.
    """
    app = App(name="modelc compile", result_action="return_value", exit_on_error=False, print_error=False)
    app.default(run)
    try:
        _, bound, _ = app.parse_args(["model", *tokens], exit_on_error=False, print_error=False)
    except CycloptsError as error:
        error.command_chain = ("compile",)
        raise
    _check_values(**bound.arguments)
    options: dict[str, list[str]] = {}
    name = ""
    for token in tokens:
        if token.startswith("--"):
            name, equals, value = token.partition("=")
            options.setdefault(name, []).extend([name, value] if equals else [name])
        else:
            options[name].append(token)
    if unfit := next((name for name in NOT_KEPT if name in options), None):
        raise BadInputError("a compiled file has no such option", param=unfit)
    if "--listen" in options:
        from modelc.api.address import parse_listen

        host, port = parse_listen(options.pop("--listen")[-1])
        options |= {"--bind": ["--bind", host], "--port": ["--port", str(port)]}
    return list(options.values())


def _check_values(kv_memory: str | None = None, limits: ServerOptions = NO_LIMITS, **others: object) -> None:
    """Refuse now what the compiled file would refuse; files are looked for where it runs."""
    if kv_memory is not None:
        parse_size(kv_memory, "--kv-memory")
    replace(limits, api_key=None, adapters=None).serve_options("", 0, None, {})


def _check_isa(options: Sequence[Sequence[str]], machine: str) -> None:
    from modelc.bundle.isas import isa_named, isas_of

    for name in [option[-1] for option in options if option[0] == "--isa"]:
        isa_named(name, isas_of(machine))


def python_versions(text: str) -> list[str]:
    """Versions of Python from a list like `3.11,3.12`.

    Raises:
        BadInputError: not such a list, or a version that modelc does not run on.
    """
    versions = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"3\.\d{1,2}", version) and int(version[2:]) >= 11 for version in versions):
        raise BadInputError("not a list of Python versions", param="--python", got=text, expected="like 3.11,3.12")
    return sorted(set(versions), key=lambda version: int(version[2:]))


def _plain_weights(source: Path, scratch: Path, format: str | None, arch: str | None, quantize: str | None) -> Path:
    """The model as a `.modelc` that can be mapped: itself, one in the cache, or one in the folder `scratch`."""
    from modelc.formats import modelc
    from modelc.packing import pack
    from modelc.quantizing import Quantization
    from modelc.store import name_from

    with ProgressBar() as bar:
        if format is None and arch is None and quantize is None:
            packed = as_modelc(source, bar)
            if packed.suffix == SUFFIX and modelc.read_header(packed).compression == "none":
                return packed
            name = None
        else:
            name = None if source.suffix == SUFFIX else name_from(stem_of(source))
        weights = scratch / f"model{SUFFIX}"
        rules = Quantization.parse(quantize, (), 0.0)
        return pack(source, weights, name=name, arch=arch, format=format, quantization=rules, progress=bar)


def _folder_of(output: Path) -> Path:
    if not output.parent.is_dir():
        hint = f"create {output.parent} first"
        raise BadInputError("the output's folder does not exist", param="--output", got=output, hint=hint)
    return output.parent
