"""Drafts beside a tiny model: with random weights, or with a table of what follows each token."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DTYPES
from modelc.ir import Model, Tensor, verify
from tests.kernels.stored_blocks import random_weights

F32 = npt.NDArray[np.float32]


def float_tensor(name: str, values: F32) -> Tensor:
    """A float32 tensor."""
    values = np.ascontiguousarray(values, np.float32)
    return Tensor(name, DTYPES["f32"], values.shape, values.reshape(-1).view(np.uint8))


def zeros(name: str, *shape: int) -> Tensor:
    """A float32 tensor of zeros."""
    return float_tensor(name, np.zeros(shape, np.float32))


def with_tensors(model: Model, *tensors: Tensor) -> Model:
    """The model with more tensors, or others of the same names."""
    merged = model.tensors | {tensor.name: tensor for tensor in tensors}
    model = replace(model, tensors={name: merged[name] for name in sorted(merged)})
    verify(model)
    return model


def with_random_draft(
    model: Model, hidden_dim: int = 32, dtype: str = "f32", dim: int | None = None, seed: int = 1
) -> Model:
    """The model with a draft of random weights; `dim`: columns of an embedding of its own, None borrows the model's."""
    rng = np.random.default_rng(seed)
    vocab_size, width = model.tensors["token_embd.weight"].shape
    shapes = {"draft.fc1.weight": (hidden_dim, dim or width), "draft.fc2.weight": (vocab_size, hidden_dim)}
    if dim is not None:
        shapes["draft.embed.weight"] = (vocab_size, dim)
    tensors = [
        Tensor(name, DTYPES[dtype], shape, random_weights(dtype, *shape, rng, spread=4 * shape[1] ** -0.5))
        for name, shape in shapes.items()
    ]
    for name, n in (("draft.fc1.bias", hidden_dim), ("draft.fc2.bias", vocab_size)):
        tensors.append(float_tensor(name, rng.standard_normal(n).astype(np.float32)))
    return with_tensors(model, *tensors)


def with_table_draft(model: Model, follows: Mapping[int, int]) -> Model:
    """The model with a draft that proposes follows[t] behind each token t, and token 0 behind the others."""
    vocab_size = model.tensors["token_embd.weight"].shape[0]
    identity = np.eye(vocab_size, dtype=np.float32)
    table = np.zeros((vocab_size, vocab_size), np.float32)
    for token, following in follows.items():
        table[following, token] = 1
    return with_tensors(
        model,
        float_tensor("draft.embed.weight", identity),
        float_tensor("draft.fc1.weight", identity),
        zeros("draft.fc1.bias", vocab_size),
        float_tensor("draft.fc2.weight", table),
        zeros("draft.fc2.bias", vocab_size),
    )
