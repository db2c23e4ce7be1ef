"""The draft model as NumPy arrays: an MLP from the last token's embedding to the next token, fitted with Adam."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int64]

BATCH = 512
RATE = 3e-3  # falls linearly to 0
MOMENTUM, SQUARES, EPSILON = 0.9, 0.99, 1e-8
NEVER = -60.0  # bias of tokens that followed nothing


@dataclass(frozen=True, slots=True)
class Mlp:
    """fc2(relu(fc1(embedding))), as `draft.*` tensors hold it.

    Attributes:
        fc1: float32 (hidden, dim).
        bias1: float32 (hidden,).
        fc2: float32 (vocab_size, hidden).
        bias2: float32 (vocab_size,).
    """

    fc1: F32
    bias1: F32
    fc2: F32
    bias2: F32


def fit(pairs: Tokens, embedding: F32, hidden_dim: int, epochs: int, seed: int) -> Iterator[tuple[float, Mlp]]:
    """Fit by cross-entropy over the tokens that occur.

    Args:
        pairs: int64 (n, 2): a token and the one that followed.
        embedding: float32 (vocab_size, dim), not changed.
        hidden_dim: columns between fc1 and fc2.
        epochs: passes over the pairs.
        seed: of the first weights and of the order of pairs.

    Yields:
        After each epoch its mean loss (nats) and the MLP so far.
    """
    rng = np.random.default_rng(seed)
    inputs, (following, targets) = pairs[:, 0], np.unique(pairs[:, 1], return_inverse=True)
    dim, scale = embedding.shape[1], np.float32(1 / embedding.std())
    parameters = [
        (rng.standard_normal((hidden_dim, dim)) * dim**-0.5).astype(np.float32),
        np.zeros(hidden_dim, np.float32),
        (rng.standard_normal((len(following), hidden_dim)) * hidden_dim**-0.5).astype(np.float32),
        np.log(np.bincount(targets) / len(pairs)).astype(np.float32),
    ]
    n_steps = epochs * -(-len(pairs) // BATCH)
    updates = [Adam(parameter, n_steps) for parameter in parameters]
    for _ in range(epochs):
        losses = []
        order = rng.permutation(len(pairs))
        for i in range(0, len(pairs), BATCH):
            chosen = order[i : i + BATCH]
            loss, gradients = loss_and_gradients(parameters, embedding[inputs[chosen]] * scale, targets[chosen])
            losses.append(loss)
            for adam, gradient in zip(updates, gradients, strict=True):
                adam.step(gradient)
        yield float(np.mean(losses)), _over_vocabulary(parameters, following, len(embedding), scale)


def loss_and_gradients(parameters: list[F32], x: F32, targets: Tokens) -> tuple[float, list[F32]]:
    """Mean cross-entropy of a batch, x float32 (n, dim), and its gradient for each parameter."""
    fc1, bias1, fc2, bias2 = parameters
    z = x @ fc1.T + bias1
    h = np.maximum(z, 0)
    logits = h @ fc2.T + bias2
    logits -= logits.max(1, keepdims=True)
    p = np.exp(logits)
    total = p.sum(1, keepdims=True)
    rows = np.arange(len(targets))
    loss = float((np.log(total[:, 0]) - logits[rows, targets]).mean())
    p /= total
    p[rows, targets] -= 1
    p /= len(targets)
    back = (p @ fc2) * (z > 0)
    return loss, [back.T @ x, back.sum(0), p.T @ h, p.sum(0)]


class Adam:
    """Updates `parameter` in place, with a rate that falls to 0 in `n_steps`; source: arXiv 1412.6980."""

    def __init__(self, parameter: F32, n_steps: int) -> None:
        self._parameter = parameter
        self._mean = np.zeros_like(parameter)
        self._square = np.zeros_like(parameter)
        self._n_steps = n_steps
        self._step = 0

    def step(self, gradient: F32) -> None:
        """One update."""
        rate = np.float32(RATE * (1 - self._step / self._n_steps))
        self._step += 1
        self._mean += (1 - MOMENTUM) * (gradient - self._mean)
        self._square += (1 - SQUARES) * (gradient * gradient - self._square)
        mean = self._mean / np.float32(1 - MOMENTUM**self._step)
        square = self._square / np.float32(1 - SQUARES**self._step)
        self._parameter -= rate * mean / (np.sqrt(square) + np.float32(EPSILON))


def _over_vocabulary(parameters: list[F32], following: Tokens, vocab_size: int, scale: np.float32) -> Mlp:
    """The MLP with a row of fc2 for every token, and the embedding's scale in fc1."""
    fc2 = np.zeros((vocab_size, parameters[2].shape[1]), np.float32)
    bias2 = np.full(vocab_size, NEVER, np.float32)
    fc2[following], bias2[following] = parameters[2], parameters[3]
    return Mlp(parameters[0] * scale, parameters[1].copy(), fc2, bias2)
