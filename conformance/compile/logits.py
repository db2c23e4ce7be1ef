"""Hashes of a decoder's raw logits for a given text; also a program where there is nothing but a compiled file.

    python3 -I -S logits.py FILE ISA THREADS TOKENS

It computes with the kernels in the compiled file and prints JSON: a hash for each format of activations and of keys and
values.
"""

from __future__ import annotations

import hashlib
import json
import sys
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the program has modelc only after the compiled file was opened
    from pathlib import Path

    from modelc.kernels.source import KernelSource

ACTIVATIONS = ("int8", "int16")
KV_TYPES = ("f16", "int8")


def logit_hashes(path: str | Path, threads: int, kernels: KernelSource, n_tokens: int) -> dict[str, str]:
    """Hashes of float32 logits behind each of `n_tokens` given tokens, by formats: `int8 activations, f16 keys`.

    Half of the tokens are computed in one step, as a prompt is; then three; the others one by one.
    """
    import numpy as np

    from modelc.formats import open_model
    from modelc.kernels.env import PAGE
    from modelc.models import lower
    from modelc.program import Builder
    from modelc.runtime import options
    from modelc.runtime.engine import Engine, Rows

    n_pages = n_tokens // PAGE + 1
    first = n_tokens // 2
    steps = [first, 3, *[1] * (n_tokens - first - 3)]
    hashes = {}
    for activations, kv in product(ACTIVATIONS, KV_TYPES):
        lowered = lower(open_model(path))
        builder = Builder(first, first, threads, n_pages * PAGE, options.ACTIVATIONS[activations], kv)
        program = lowered.program(builder)
        engine = Engine(program, lowered.weights.base, 1, n_pages, kernels)
        engine.pages[:] = np.arange(n_pages)
        tokens = [7919 * i % program.vocab_size for i in range(n_tokens)]
        digest, at = hashlib.blake2b(digest_size=16), 0
        for count in steps:
            logits = engine.run([Rows(0, at, tokens[at : at + count], count)])
            assert logits.dtype == np.float32 and np.isfinite(logits).all() and logits.any()
            digest.update(logits.tobytes())
            at += count
        engine.close()
        hashes[f"{activations} activations, {kv} keys"] = digest.hexdigest()
    return hashes


def main(path: str, isa: str, threads: str, n_tokens: str) -> None:
    """Print the hashes of a compiled file."""
    sys.path.insert(0, path)
    from modelc_boot.start import prepare  # type: ignore[import-not-found]

    _, files = prepare(path)
    from modelc.kernels.library import KernelLibrary

    library = KernelLibrary(files[f"kernels/{isa}.so"])
    print(json.dumps(logit_hashes(path, int(threads), library, int(n_tokens))))


if __name__ == "__main__":
    main(*sys.argv[1:])
