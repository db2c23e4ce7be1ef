"""Hashes of kernels' results on the CPU that NUMBA_CPU_NAME and NUMBA_CPU_FEATURES name; a program for `test_isa`.

    python -m tests.kernels.isa_hashes conversions dots model:q8_0.a8.f16

It prints JSON: the features that code was generated for, and a hash for each part. NaNs are left out of the hashes:
IEEE 754 does not fix their bits.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numba.core.registry import cpu_target

from modelc.formats import open_model
from modelc.ir import Model
from modelc.kernels.special_functions import PLAIN
from modelc.runtime.encoder import Encoder
from modelc.runtime.engine import Rows
from modelc.runtime.options import Options
from tests.kernels import test_codebook, test_dot, test_elementary, test_sample, test_simd
from tests.kernels.float_math import tricky_floats
from tests.kernels.opcode_runner import run, unwritten
from tests.kernels.test_array_maps import mapped
from tests.models.tiny_llama import tiny_llama, tiny_llama_of
from tests.onnx.graphs import computed
from tests.onnx.test_runner import everything
from tests.runtime.tiny_engine import engine_of

f32 = np.float32

BERT = Path(__file__).parents[1] / "data" / "hf" / "bert-tiny"

# One small model with an attention of its own kind; two block types, one of them through the codebook.
MIXED = {"": "q8_0", "ffn_gate": "iq4_nl", "ffn_up": "iq4_nl"}


def conversions() -> Iterator[np.ndarray]:
    """Every finite half and bfloat to float; floats of all magnitudes to half."""
    words = np.arange(65536, dtype=np.uint16)
    floats = tricky_floats(20_000, 1)
    floats = np.resize(floats[~np.isnan(floats)], 100_000)
    halves, bfloats, back = unwritten(65536), unwritten(65536), np.zeros(floats.size, np.uint16)
    run(test_simd.convert, [65536, words, halves, bfloats, floats.size, floats, back])
    yield from (halves[~np.isnan(halves)], bfloats[~np.isnan(bfloats)], back)


def dots() -> Iterator[np.ndarray]:
    """Integer dot products with extreme bytes, and codes of the codebook."""
    rng = np.random.default_rng(2)
    w = rng.choice(np.array([0, 1, 127, 128, 254, 255], np.uint8), 4096)
    x = rng.choice(np.array([-128, -127, -1, 0, 1, 127], np.int8), 4096)
    codes = rng.integers(0, 16, 4096, np.uint8)
    values = np.zeros_like(codes)
    run(test_codebook.look_ups, [64, codes, values])
    yield from (*test_dot.all_dots(np.full(1024, 7, np.int32), w, x), values)


def elementary() -> Iterator[np.ndarray]:
    """Exponentials, silu, sines and cosines."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-90, 90, 20_000).astype(f32)
    e, s = unwritten(x.size), unwritten(x.size)
    run(test_elementary.exp_and_silu, [x.size, x, e, s])
    angles = rng.uniform(-1e5, 1e5, 20_000)
    sines, cosines = np.zeros_like(angles), np.zeros_like(angles)
    run(test_elementary.sines, [angles.size, angles, sines, cosines])
    yield from (e, s, sines, cosines)


def model_logits(variant: str) -> Iterator[np.ndarray]:
    """Logits of a prompt, of single rows and of a mixed batch; `variant` is weights.activations.kv."""
    weights, activation, kv = variant.split(".")
    model: Model = tiny_llama(MIXED) if weights == "mixed" else tiny_llama_of(weights)
    tokens = [int(t) for t in np.random.default_rng(4).integers(0, 50, 80)]
    with engine_of(model, 1, activation, kv) as engine:
        yield engine.run([Rows(0, 0, tokens[:70], 70)])
        yield engine.run([Rows(0, 70, tokens[70:71], 1)])
        yield engine.run([Rows(0, 71, tokens[71:72], 1), Rows(1, 0, tokens[:11], 11), Rows(2, 0, tokens[3:4], 1)])


def graph() -> Iterator[np.ndarray]:
    """Every kind of array instruction, and functions of elements of all magnitudes."""
    proto, feeds = everything()
    yield from computed(proto, feeds)
    x = tricky_floats(2000, 5)
    x = x[np.isfinite(x)]
    for name in sorted(PLAIN):
        y = mapped(name, x)
        yield y[~np.isnan(y)]


def encoder() -> Iterator[np.ndarray]:
    """Embeddings of an encoder: attention over whole texts, GELU, layer norms, pooling."""
    with Encoder(open_model(BERT), Options(1)) as model:
        yield model.embed([[5], list(range(60)), [7, 8, 9]])


def draws() -> Iterator[np.ndarray]:
    """Tokens that every way of sampling draws, and what Mirostat learns."""
    logits = test_sample.random_logits(3000, 5)
    ways = [{"top_p": 0.9}, {"typical_p": 0.5}, {"top_n_sigma": 1.0}, {"xtc": (1.0, 0.01)}]
    ways += [{"mirostat": version, "mu": 5.0, "tau": 3.0, "eta": 0.1} for version in (1, 2)]
    asks = [test_sample.Ask(1.3, seed=seed, **way) for way in ways for seed in range(20)]
    yield np.array([test_sample.draw_and_learn(logits, ask) for ask in asks])


PARTS: dict[str, Callable[[], Iterator[np.ndarray]]] = {
    "encoder": encoder,
    "graph": graph,
    "conversions": conversions,
    "dots": dots,
    "draws": draws,
    "elementary": elementary,
}


def hash_of(part: str) -> str:
    """Hash of a part: a name in PARTS, or `model:` and a variant."""
    kind, _, variant = part.partition(":")
    digest = hashlib.blake2b(digest_size=16)
    for array in model_logits(variant) if kind == "model" else PARTS[kind]():
        assert not np.issubdtype(array.dtype, np.floating) or not np.isnan(array).any()
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


if __name__ == "__main__":
    used = cpu_target.target_context.codegen()._tm_features
    print(json.dumps({"features": used, "hashes": {part: hash_of(part) for part in sys.argv[1:]}}))
