"""From what a user calls a model (a name in the store, or a path) to a `.modelc` file."""

import re
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from modelc.errors import NotFoundError, WriteError, did_you_mean
from modelc.file_lock import file_lock
from modelc.settings import cache_folder
from modelc.store import SUFFIX, Store, name_from, remove_stale_parts
from modelc.version import __version__

HUB_NAME = re.compile(r"(?!.*\.(?:modelc|gguf|safetensors|onnx|pth?|bin)$)[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
SPLIT_NAME = re.compile(r"(?P<stem>.+)-\d{5}-of-\d{5}", re.DOTALL)


def find_model(reference: str, store: Store) -> Path:
    """Return the file that `reference` means: `name` or `name:version` in the store, else a path.

    Raises:
        NotFoundError: neither; names the nearest model or file.
    """
    path = Path(reference).expanduser()
    try:
        return store.find(reference)
    except NotFoundError as error:
        if reference and path.exists():
            return path
        if path.parent != Path() or path.suffix:  # meant as a path
            raise _no_such_file(path, store) from None
        raise error from None


def as_modelc(path: Path, progress: Callable[[int, int, str], None] | None = None) -> Path:
    """Return `path` if it is a `.modelc` or a compiled file, else the file that it is packed into, in the cache.

    A weights file is packed again when its size or time has changed; what was packed from it before is deleted.

    Args:
        path: a `.modelc` or weights file.
        progress: called with done bytes, total bytes and a label.

    Raises:
        BadFileError: the weights cannot be read.
        WriteError: the cache cannot be written.
    """
    if path.suffix == SUFFIX:
        return path
    from modelc.formats.modelc import is_compiled_file

    if is_compiled_file(path):
        return path
    from modelc.packing import pack

    folder = cache_folder() / "packed"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "choose another folder with MODELC_CACHE, or pack the model with `modelc pack`"
        raise WriteError("the cache cannot be written", path=folder, got=error.strerror, hint=hint) from error
    place = blake2b(str(path.resolve()).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    state = blake2b(repr((__version__, [_state(part) for part in parts_of(path)])).encode(), digest_size=8).hexdigest()
    packed = folder / f"{place}-{state}{SUFFIX}"
    with file_lock(folder / f"{place}.lock"):
        if not packed.exists():
            remove_stale_parts(folder)
            pack(path, packed, name=name_from(stem_of(path)), progress=progress)
            for older in folder.glob(f"{place}-*{SUFFIX}"):
                if older != packed:
                    older.unlink(missing_ok=True)
    return packed


def stem_of(path: Path) -> str:
    """Return a file's name without its suffix and without the numbers of a split file; of a folder, its name."""
    if path.is_dir():
        return path.resolve().name
    stem = Path(path.name.removesuffix(".index.json")).stem
    match = SPLIT_NAME.fullmatch(stem)
    return match["stem"] if match else stem


def parts_of(path: Path) -> list[Path]:
    """Return the file itself, or all files that make up the model: parts, shards, and what stands beside them."""
    from modelc.formats import files_of

    return files_of(path)


def _no_such_file(path: Path, store: Store) -> NotFoundError:
    names = [model.name for model in store.models()]
    try:
        names += [entry.name for entry in path.parent.iterdir()]
    except OSError:
        names = []
    known = "check the path, or see `modelc list`"
    if HUB_NAME.fullmatch(str(path)):
        known = f"check the path; from the hub it comes with `modelc pull {path}`"
    hint = did_you_mean(path.name, names) or known
    return NotFoundError("no such file or model", path=path, hint=hint)


def _state(path: Path) -> tuple[str, int, int]:
    found = path.stat()
    return path.name, found.st_size, found.st_mtime_ns
