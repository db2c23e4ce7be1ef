"""The store: a folder where every version of a model is `<name>.v<N>.modelc`, and `<name>.modelc` is the active one.

The active one is a hard link to its version, or a copy (with the version's time) where links do not exist.
A file appears under its name only when it is whole; commands that change the folder take its lock.
"""

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from modelc.errors import BadInputError, NotFoundError, StoreError, WriteError, did_you_mean
from modelc.file_lock import file_lock

SUFFIX = ".modelc"
MAX_NAME_CHARS = 128
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
VERSION_FILE = re.compile(r"(?P<name>.+)\.v(?P<version>[1-9][0-9]{0,8})", re.ASCII)
REFERENCE = re.compile(r"(?P<name>[^:]+):v?(?P<version>[1-9][0-9]{0,8})", re.ASCII)
WINDOWS_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.ASCII | re.IGNORECASE)
PART_SUFFIXES = (".part", ".tmp")  # with a leading dot: a file being written, by this module or by a writer
COPY_BYTES = 1 << 24
STALE_PART_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One name in the store."""

    name: str
    versions: dict[int, Path]  # ascending
    main: Path | None  # `<name>.modelc`, None when it is missing
    active: int | None  # the version that `main` is; None when `main` is missing or is no version


def check_name(name: str) -> str:
    """Return `name` when a model may have it.

    Raises:
        BadInputError: empty, too long, other characters than letters, digits, `.`, `_`, `-`, or a form that files
            of the store have (`.modelc`, `.v2`) or that an operating system keeps for itself.
    """
    expected = f"1 to {MAX_NAME_CHARS} letters, digits, '.', '_' or '-', a letter or digit first"
    if not NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS or name.endswith("."):
        raise BadInputError("not a name for a model", param="name", got=repr(name), expected=expected)
    if name.endswith(SUFFIX) or VERSION_FILE.fullmatch(name) or WINDOWS_DEVICES.fullmatch(name):
        raise BadInputError("reserved name", param="name", got=repr(name), hint="choose another name")
    return name


def name_from(text: str) -> str:
    """Return a valid name near `text` (a file's stem, a model's title): what is not allowed becomes `-`."""
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower(), flags=re.ASCII).strip("-._")[:MAX_NAME_CHARS].rstrip("-._")
    try:
        return check_name(name)
    except BadInputError:
        return "model"


class Store:
    """The models in one folder. Reading takes no lock: what is listed is whole."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, which is created by the first model that comes in."""
        self.folder = folder

    def models(self) -> list[StoredModel]:
        """Return every name with its versions, sorted by name."""
        stems = [path.name.removesuffix(SUFFIX) for path in self.folder.glob(f"[!.]*{SUFFIX}") if path.is_file()]
        names: dict[str, dict[int, Path]] = {}
        for stem in stems:
            match = VERSION_FILE.fullmatch(stem)
            versions = names.setdefault(match["name"] if match else stem, {})
            if match:
                versions[int(match["version"])] = self._path(stem)
        return [self._stored(name, dict(sorted(names[name].items()))) for name in sorted(names)]

    def get(self, name: str) -> StoredModel:
        """Return the model called `name`.

        Raises:
            NotFoundError: there is none; names the nearest.
        """
        models = {model.name: model for model in self.models()}
        if name not in models:
            hint = did_you_mean(name, models) or "see `modelc list`; `modelc pull` and `modelc pack` add models"
            raise NotFoundError(f"no model {name!r} in the store", path=self.folder, hint=hint)
        return models[name]

    def find(self, reference: str) -> Path:
        """Return the file of `name` (the active version) or `name:version`.

        Raises:
            NotFoundError: no such name or version, or no version is active.
        """
        match = REFERENCE.fullmatch(reference)
        model = self.get(match["name"] if match else reference)
        if match is None:
            if model.main is None:
                raise NotFoundError(f"no version of {model.name!r} is active", hint=f"name one, {_having(model)}")
            return model.main
        version = int(match["version"])
        if version not in model.versions:
            raise NotFoundError(f"{model.name!r} has no version {version}", hint=_having(model))
        return model.versions[version]

    def add(self, name: str, write: Callable[[Path], object], *, new: bool = False) -> Path:
        """Store a new version of `name` and make it the active one.

        Args:
            name: the model's name.
            write: writes the model to the path it is given, outside the lock.
            new: refuse when there is a model of this name already.

        Returns:
            The path of the new version.

        Raises:
            BadInputError: `name` is not allowed.
            StoreError: `name` differs from another one in upper and lower case alone, or must be new and is not.
            WriteError: the folder cannot be written.
        """
        self.check_free(name, new=new)
        self._make_folder()
        part = self._part(name)
        try:
            write(part)
            with self._lock():
                self.check_free(name, new=new)
                remove_stale_parts(self.folder)
                version = self._next_version(name)
                part.replace(version)
                self._activate(name, version)
        finally:
            part.unlink(missing_ok=True)
        return version

    def check_free(self, name: str, *, new: bool = False) -> None:
        """Check that `add` would take `name`.

        Raises:
            BadInputError: `name` is not allowed.
            StoreError: it differs from another one in upper and lower case alone, or must be new and is not.
        """
        check_name(name)
        for model in self.models():
            if model.name.casefold() != name.casefold():
                continue
            if new:
                raise StoreError(
                    f"there is a model {model.name!r} already", path=self.folder, hint="choose another name"
                )
            if model.name != name:  # one file on systems that tell no upper from lower case
                hint = "write it the same way, or choose another name"
                raise StoreError(f"there is a model {model.name!r}", path=self.folder, got=repr(name), hint=hint)

    def switch(self, name: str, version: int) -> int | None:
        """Make a version the active one, and return the version that was it before.

        Raises:
            NotFoundError: no such name or version.
        """
        with self._lock():
            path = self.find(f"{name}:{version}")
            before = self.get(name)
            if before.active != version:
                self._keep_unversioned(before)
                self._activate(name, path)
        return before.active

    def remove_version(self, name: str, version: int) -> list[Path]:
        """Delete one version and return its file.

        Raises:
            NotFoundError: no such name or version.
            StoreError: the version is the active one.
        """
        with self._lock():
            path = self.find(f"{name}:{version}")
            model = self.get(name)
            if model.active == version:
                others = [number for number in model.versions if number != version]
                hint = f"`modelc switch {name} {others[-1]}` first" if others else "--all deletes the model"
                raise StoreError(f"version {version} of {name!r} is the active one", hint=hint)
            path.unlink()
        return [path]

    def remove(self, name: str, *, every_version: bool = False, keep_versions: bool = False) -> list[Path]:
        """Delete `name` and return the files that are gone.

        Args:
            name: the model's name.
            every_version: delete the versions too.
            keep_versions: delete only `<name>.modelc`, although versions exist.

        Raises:
            NotFoundError: no such name.
            StoreError: versions exist and neither flag says what to do with them.
        """
        with self._lock():
            model = self.get(name)
            if model.versions and not (every_version or keep_versions):
                hint = "--all deletes them too, --force deletes only the active file"
                raise StoreError(f"{name!r} has {_versions_text(model)}", hint=hint)
            doomed = [model.main] if model.main else []
            if every_version:
                doomed += model.versions.values()
            if not doomed:
                raise StoreError(f"no version of {name!r} is active", hint="--all deletes its versions")
            for path in doomed:
                path.unlink(missing_ok=True)
        return doomed

    def _path(self, stem: str) -> Path:
        return self.folder / f"{stem}{SUFFIX}"

    def _part(self, name: str) -> Path:
        return self.folder / f".{name}.{secrets.token_hex(6)}{PART_SUFFIXES[0]}"

    def _stored(self, name: str, versions: dict[int, Path]) -> StoredModel:
        main = self._path(name)
        if not main.is_file():
            return StoredModel(name, versions, None, None)
        active = next((version for version, path in versions.items() if _is_active(main, path)), None)
        return StoredModel(name, versions, main, active)

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            hint = "choose another folder with --store or MODELC_STORE"
            raise WriteError("the store's folder cannot be made", path=self.folder, got=error, hint=hint) from error

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        self._make_folder()
        with file_lock(self.folder / ".lock"):
            yield

    def _next_version(self, name: str) -> Path:
        model = next((model for model in self.models() if model.name == name), None)
        newest = (max(model.versions, default=0) + self._keep_unversioned(model)) if model else 0
        return self._path(f"{name}.v{newest + 1}")

    def _keep_unversioned(self, model: StoredModel) -> bool:
        """Make a version of what was put there by hand, instead of overwriting it; return whether there was one."""
        if model.main is None or model.active is not None:
            return False
        model.main.replace(self._path(f"{model.name}.v{max(model.versions, default=0) + 1}"))
        return True

    def _activate(self, name: str, version: Path) -> None:
        main, part = self._path(name), self._part(name)
        try:
            os.link(version, part)
            part.replace(main)
        except OSError:  # no hard links here
            from modelc.formats.atomic import atomic_write

            with version.open("rb") as source, atomic_write(main) as target:
                shutil.copyfileobj(source, target, COPY_BYTES)
            times = version.stat()
            os.utime(main, ns=(times.st_atime_ns, times.st_mtime_ns))
        finally:
            part.unlink(missing_ok=True)  # renaming one link to another of the same file does nothing


def remove_stale_parts(folder: Path) -> None:
    """Delete what commands that were killed more than a day ago have left half-written in `folder`."""
    for part in folder.glob(".*"):
        with contextlib.suppress(OSError):
            if part.suffix in PART_SUFFIXES and time.time() - part.stat().st_mtime > STALE_PART_S:
                part.unlink()


def _is_active(main: Path, version: Path) -> bool:
    try:
        a, b = main.stat(), version.stat()
    except FileNotFoundError:
        return False
    if os.path.samestat(a, b):
        return True
    return a.st_nlink == b.st_nlink == 1 and (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)


def _having(model: StoredModel) -> str:
    return f"it has {_versions_text(model)}"


def _versions_text(model: StoredModel) -> str:
    if not model.versions:
        return "no versions"
    return f"version{'s' * (len(model.versions) > 1)} {', '.join(map(str, model.versions))}"
