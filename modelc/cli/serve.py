"""What a compiled file does when it is started: `modelc run` with its own model, kernels and options."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from modelc.bundle.isas import choose_isa
from modelc.cli import garbage
from modelc.cli.app import main as main_of
from modelc.cli.progress import ProgressBar
from modelc.cli.run import run
from modelc.cli.text import bytes_text, printable
from modelc.errors import BadInputError, UnsupportedError
from modelc.kernels.library import KernelLibrary
from modelc.version import version_line

KERNELS = "kernels/"  # where the manifest has the libraries, named by instruction set
NOT_HERE = ("model", "store", "aot", "kernels")  # parameters of `run` that a compiled file has decided

Info = Annotated[bool, Parameter(name="--info", negative="", show_default=False, help="Show what is inside, and end.")]
Verify = Annotated[
    bool, Parameter(name="--verify", negative="", show_default=False, help="Check every byte, weights too, and end.")
]


def main(tokens: Sequence[str], path: str, manifest: Mapping[str, Any], files: Mapping[str, str]) -> int:
    """Start the compiled file at `path` with the arguments `tokens`; returns the exit code.

    Args:
        tokens: the arguments.
        path: the compiled file.
        manifest: what it says about itself.
        files: where each file is that it carries.
    """
    garbage.begin()
    name = Path(path).name
    app = App(
        name=name,
        help=f"Serve {manifest['name']}, compiled into this file.",
        help_epilogue=f"Examples:\n  ./{name} --listen 127.0.0.1:8000\n  ./{name} --info\n  ./{name} --verify",
        help_format="plaintext",
        version=version_line,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        verbose=False,
        suppress_keyboard_interrupt=False,
    )
    app.default(_command(path, manifest, files))
    return main_of(with_defaults(manifest["options"], tokens), app)


def with_defaults(defaults: Sequence[Sequence[str]], tokens: Sequence[str]) -> list[str]:
    """The arguments with those options in front that were compiled in and are not among them.

    Args:
        defaults: options with their values, each as the arguments that give it.
        tokens: the arguments.
    """
    given = {token.partition("=")[0] for token in tokens}
    return [word for option in defaults if option[0] not in given for word in option] + list(tokens)


def _command(path: str, manifest: Mapping[str, Any], files: Mapping[str, str]) -> Callable[..., int]:
    libraries = {
        name[len(KERNELS) :].partition(".")[0]: place for name, place in files.items() if name.startswith(KERNELS)
    }

    def kernels(isa: str | None) -> KernelLibrary | None:
        return KernelLibrary(libraries[choose_isa(libraries, isa).name]) if libraries else None

    def serve(*, info: bool = False, verify: bool = False, **options: Any) -> int:
        if info and verify:
            raise BadInputError("--info and --verify at once", hint="give one of them")
        if info:
            print(json.dumps(_about(manifest, libraries), indent=2, ensure_ascii=False))
            return 0
        if verify:
            return _verify(path)
        print(version_line(), file=sys.stderr, flush=True)
        return run(path, kernels=kernels, **options)

    signature = inspect.signature(run, eval_str=True)
    own = {"info": Info, "verify": Verify}
    parameters = [parameter for name, parameter in signature.parameters.items() if name not in NOT_HERE]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in own.items()
    ]
    serve.__doc__ = run.__doc__
    serve.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": int}
    serve.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return serve


def _about(manifest: Mapping[str, Any], libraries: Mapping[str, str]) -> dict[str, Any]:
    payloads = {
        python: {"files": len(payload["files"]), "bytes": sum(row[2] for row in payload["files"])}
        for python, payload in manifest["payloads"].items()
    }
    return {**manifest, "payloads": payloads, "isas": sorted(libraries), "isa": _chosen(libraries)}


def _chosen(libraries: Mapping[str, str]) -> str | None:
    """The instruction set that a start would take; None where it takes none."""
    try:
        return choose_isa(libraries).name if libraries else None
    except UnsupportedError:
        return None


def _verify(path: str) -> int:
    """The weights; what stands around them was checked before anything of it was run."""
    from modelc.formats import modelc

    with ProgressBar() as bar:
        header = modelc.verify(path, bar)
    size = bytes_text(Path(path).stat().st_size)
    print(f"{printable(path)}: {len(header.entries)} tensors, {size}, every byte as it was written")
    return 0
