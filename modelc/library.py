"""The library's functions on files and stored models: `load`, `pack`, `extract_tokenizer_metadata`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from modelc.errors import located
from modelc.resolve import as_modelc, find_model, stem_of
from modelc.settings import Settings, load_settings, store_folder
from modelc.store import Store, name_from

if TYPE_CHECKING:
    from modelc.ir import JSON
    from modelc.runtime import LoadedModel

Progress = Callable[[int, int, str], None]


def load(
    path_or_name: str | Path,
    threads: int | None = None,
    activations: Literal["int8", "int16"] = "int8",
    kv: Literal["f16", "f32", "int8", "mixed"] | None = None,
    max_context: int | None = None,
    *,
    kv_hot_window: int = 64,
    anchor_tokens: int = 0,
    kv_memory: int | None = None,
    gamma: int = 0,
    progress: Progress | None = None,
) -> LoadedModel:
    """Load a model of any kind for inference.

    Args:
        path_or_name: a `.modelc`, any weights file (packed into the cache on the way), or `name` or `name:version`
            in the store.
        threads: compute threads; None for the configured number, else the physical cores this process may use.
        activations: precision of the activations beside quantized weights.
        kv: type of the K/V cache: f16 (None), f32, int8, or mixed: the newest tokens in f32, older ones in int8.
        max_context: most tokens of context. With it, a full context loses its oldest tokens and the answer goes on;
            None ends answers at the context that the model was trained for.
        kv_hot_window: with `mixed`: so many newest tokens are read in f32, the one that reads among them.
        anchor_tokens: with `max_context`: so many tokens at the front are never dropped.
        kv_memory: bytes for the K/V cache; None for a quarter of the machine's memory at most.
        gamma: tokens that speculation proposes for one pass, 0 to 32; the answers are the same.
        progress: called with done, total and a label while weights are packed and kernels compiled.

    Raises:
        NotFoundError: no such file or name.
        BadFileError: the file is damaged.
        UnsupportedError: the model cannot be run.
        BadInputError: an argument is out of range, or the context does not fit into `kv_memory`.
    """
    from modelc import runtime

    settings = load_settings()
    source = find_model(str(path_or_name), Store(store_folder(settings)))
    path = as_modelc(source, progress)
    with located(source, path):
        return runtime.load(
            path,
            threads=settings.threads if threads is None else threads,
            activations=activations,
            kv=kv,
            kv_hot_window=kv_hot_window,
            max_context=max_context,
            anchor_tokens=anchor_tokens,
            kv_memory=kv_memory,
            gamma=gamma,
            progress=progress,
        )


def pack(
    source: str | Path,
    output: str | Path | None = None,
    *,
    name: str | None = None,
    arch: str | None = None,
    format: str | None = None,
    compress: bool | None = None,
    quantize: str | None = None,
    keep: Sequence[str] = (),
    prune: float = 0.0,
    progress: Progress | None = None,
    store: Store | None = None,
) -> Path:
    """Pack a weights file into one `.modelc` file.

    Args:
        source: the weights file; of a split one, any part.
        output: the file to write; None for the store's next version of `name`, which becomes the active one.
        name: the model's name; None for one made from the source's file name.
        arch: the architecture, where the source's own is missing or wrong.
        format: the source's format, where its name and content do not tell.
        compress: True for zstd; None as configured.
        quantize: type of all matrices, like `q4_0`, `q4_k`, `int8`, `fp16`; None to leave them.
        keep: exceptions, `PATTERN=TYPE` or `PATTERN` alone for the source's type; the first that matches counts.
        prune: weights with a smaller absolute value become 0, before they are quantized.
        progress: called with done bytes, total bytes and a label.
        store: the store; None for the configured one.

    Returns:
        The path of the file written.

    Raises:
        BadInputError: the output, the name, a type or a rule is not possible.
        BadFileError: the source cannot be read, or has a value that its new type cannot hold.
        WriteError: the output cannot be written.
    """
    from modelc import packing
    from modelc.quantizing import Quantization

    quantization = Quantization.parse(quantize, keep, prune)
    settings = load_settings()
    source = Path(source)
    name = name_from(stem_of(source)) if name is None else name
    zstd = settings.compression == "zstd" if compress is None else compress

    def write(path: Path) -> Path:
        return packing.pack(
            source,
            path,
            name=name,
            arch=arch,
            compress=zstd,
            format=format,
            quantization=quantization,
            progress=progress,
        )

    if output is not None:
        return write(Path(output))
    return _store_of(store, settings).add(name, write)


def extract_tokenizer_metadata(path: str | Path) -> dict[str, JSON]:
    """Return the `tokenizer.*` keys of a model file, ready for `BpeTokenizer.from_gguf`.

    The key `tokenizer.ggml.vocab` of early files comes under its present name, `tokenizer.ggml.tokens`.

    Raises:
        NotFoundError: no such file.
        BadFileError: the file is damaged.
    """
    from modelc import formats, text

    return text.tokenizer_metadata(formats.open_model(path).metadata)


def _store_of(store: Store | None, settings: Settings) -> Store:
    return Store(store_folder(settings)) if store is None else store
