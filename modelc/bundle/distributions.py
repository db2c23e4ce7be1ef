"""The packages that a compiled file carries: what serving needs of modelc's dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath

import modelc
from modelc.bundle.modules import HERE
from modelc.bundle.package import Package, is_needed
from modelc.bundle.target import Target
from modelc.bundle.wheels import wheel_files
from modelc.errors import NotFoundError

# Dependencies, and dependencies of dependencies, that nothing imports while a compiled file serves.
LEFT_OUT = {
    "certifi": "needed by httpx",
    "faker": "random data for examples in API descriptions",
    "httpcore": "needed by httpx",
    "httpx": "downloads models",
    "llvmlite": "compiles kernels",
    "markdown-it-py": "shows Markdown in a terminal",
    "mdurl": "needed by markdown-it-py",
    "modelc": "added from its own folder",
    "numba": "compiles kernels",
    "onnx": "reads ONNX files; a compiled file holds a .modelc",
    "polyfactory": "examples in API descriptions",
    "protobuf": "needed by onnx",
    "pygments": "colours program text",
    "rich-click": "litestar's command line",
    "rich-rst": "shows reStructuredText in a terminal",
    "safetensors": "writes Safetensors files",
    "ziglang": "links kernels",
    "zstandard": "unpacks compressed models; the weights inside are plain",
}
FOR_GRAPHS = {"ml-dtypes"}  # needed for ONNX graphs only: element types that NumPy lacks


def needed_packages(root: str = "modelc", is_graph: bool = False) -> list[Package]:
    """The distributions that `root` needs to serve, in ascending order of their names.

    Args:
        root: the distribution.
        is_graph: whether the model is an ONNX graph.

    Raises:
        NotFoundError: one of them is not installed.
    """
    found: dict[str, Package] = {}
    wanted = list(_requirements(root))
    while wanted:
        name = wanted.pop()
        if name in found or name in LEFT_OUT or (name in FOR_GRAPHS and not is_graph):
            continue
        try:
            found[name] = Package(name, metadata.version(name))
            wanted += _requirements(name)
        except metadata.PackageNotFoundError:
            raise NotFoundError("a dependency is not installed", param="package", got=name) from None
    return sorted(found.values(), key=lambda package: package.name)


def installed_files(package: Package) -> dict[str, bytes]:
    """What a compiled file needs of an installed package, by path below the folder of packages."""
    distribution = metadata.distribution(package.name)
    files = distribution.files or []
    paths = {str(PurePosixPath(file)): Path(str(distribution.locate_file(file))) for file in files}
    return {name: path.read_bytes() for name, path in sorted(paths.items()) if is_needed(name)}


def files_for(python: str, target: Target, is_graph: bool = False) -> dict[str, bytes]:
    """What a compiled file needs of all packages, for a version of CPython and a target.

    What is installed here serves for this computer; for others, wheels of the same versions are downloaded.

    Raises:
        NotFoundError: a dependency is not installed, or has no wheel for the target.
    """
    is_here = target.is_host and python == HERE
    files: dict[str, bytes] = {}
    for package in needed_packages(is_graph=is_graph):
        files |= installed_files(package) if is_here else wheel_files(package, python, target)
    return files


def own_files() -> dict[str, bytes]:
    """The same of modelc itself, which may run from a working tree."""
    folder = Path(modelc.__file__).parent
    names = {f"modelc/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(names.items()) if is_needed(name) and not _builds(name)}


def _builds(name: str) -> bool:
    """Whether a module of modelc's is there to make compiled files."""
    return name.startswith("modelc/bundle/") and name not in ("modelc/bundle/__init__.py", "modelc/bundle/isas.py")


def _requirements(name: str) -> Iterator[str]:
    """Names that a distribution requires here: those for extras or another system or Python are not among them."""
    for line in metadata.requires(name) or []:
        requirement, _, marker = line.partition(";")
        required = re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()
        if "extra" not in marker and (not marker or _is_installed(required)):
            yield required


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
