"""The folder that `docker build` takes: the model, modelc itself, and what they need."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import modelc
from modelc.container.image import COMPILED_FILE, EXECUTABLE_FILE, IGNORED, MODEL_FILE, dockerfile, entrypoint
from modelc.container.kubernetes import manifests
from modelc.errors import BadInputError, NotFoundError, StoreError, WriteError
from modelc.formats.modelc import is_compiled_file
from modelc.version import __version__, git_sha

REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Context:
    """What was written.

    Attributes:
        folder: where.
        image: what the image is to be called.
        files: paths below the folder, without those of modelc itself.
    """

    folder: Path
    image: str
    files: tuple[str, ...]


def write_context(
    model: Path, folder: Path, *, name: str, base_image: str | None = None, kubernetes: bool = False
) -> Context:
    """Write the folder.

    Args:
        model: a `.modelc`, or a compiled file.
        folder: the folder to make; it must be new or empty.
        name: what the image and the resources are called after.
        base_image: what the image is built on; None for the slim image of this Python's version.
        kubernetes: whether manifests are wanted.

    Raises:
        BadInputError: the base image is no name of one.
        StoreError: the folder has something in it.
        NotFoundError: modelc is not installed as a package, so what it needs is not known.
        WriteError: the folder cannot be written.
    """
    base = base_image or f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
    if not re.fullmatch(r"[a-z0-9][\w./:@-]*", base, re.ASCII):
        raise BadInputError("not the name of an image", param="--base-image", got=repr(base))
    compiled = is_compiled_file(model)
    model_file = _compiled_name(model) if compiled else MODEL_FILE
    label = dns_label(name)
    image = f"{label}:{__version__}"
    texts = {
        "Dockerfile": dockerfile(base, image, name, __version__, model_file),
        "entrypoint.sh": entrypoint(model_file),
        ".dockerignore": IGNORED,
    }
    if not compiled:
        texts["requirements.txt"] = _requirements()
    if kubernetes:
        for file, text in manifests(label, image, model.stat().st_size).items():
            texts[f"kubernetes/{file}"] = text
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError("this folder has something in it", path=folder, hint="name a new one with -o")
    try:
        for file, text in texts.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, "utf-8", newline="\n")
        (folder / "entrypoint.sh").chmod(0o755)
        if not compiled:
            _copy_package(folder / "modelc")
        _copy_model(model, folder / model_file)
    except OSError as error:
        hint = "make room, or choose another folder with -o"
        raise WriteError("the folder cannot be written", path=folder, got=error.strerror, hint=hint) from error
    return Context(folder, image, (*sorted(texts), model_file))


def _compiled_name(model: Path) -> str:
    with model.open("rb") as file:
        return EXECUTABLE_FILE if file.read(4) == b"\x7fELF" else COMPILED_FILE


def _requirements() -> str:
    """What modelc depends on, in the versions that are installed here."""
    try:
        required = metadata.requires("modelc") or []
    except metadata.PackageNotFoundError:
        hint = "install it: pip install ."
        raise NotFoundError("modelc is not installed as a package", hint=hint) from None
    lines = []
    for line in required:
        found = REQUIREMENT.match(line)
        if found is not None and "extra ==" not in line:
            lines.append(f"{found[0]}=={metadata.version(found[0])}")
    return "\n".join(sorted(lines)) + "\n"


def _copy_package(target: Path) -> None:
    """Copy modelc as it runs here, with the commit it was built from."""
    shutil.copytree(Path(modelc.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    (target / "git_sha.txt").write_text(f"{git_sha()}\n", "ascii")


def _copy_model(model: Path, target: Path) -> None:
    """A second name of the same bytes where that is possible, else a copy."""
    try:
        os.link(model.resolve(), target)
    except OSError:
        shutil.copyfile(model, target)


def dns_label(name: str) -> str:
    """A name that Docker and Kubernetes take."""
    label = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].rstrip("-")
    return label if label[:1].isalpha() else f"model-{label}".rstrip("-")
