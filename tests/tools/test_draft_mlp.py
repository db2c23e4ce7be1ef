import numpy as np
import pytest

from tools.draft_mlp import NEVER, loss_and_gradients
from tools.draft_mlp import fit as fit_mlp

RNG = np.random.default_rng(1)
EMBEDDING = (RNG.standard_normal((40, 24)) * 0.1).astype(np.float32)
FOLLOWS = RNG.permutation(30)  # of tokens 0 to 29; tokens 30 to 39 do not occur


def pairs_of(n: int) -> np.ndarray:
    tokens = RNG.integers(0, 30, n)
    return np.stack([tokens, FOLLOWS[tokens]], 1)


def test_what_always_follows_is_learned() -> None:
    losses, mlps = zip(*fit_mlp(pairs_of(20_000), EMBEDDING, hidden_dim=32, epochs=8, seed=1), strict=True)
    mlp = mlps[-1]
    logits = np.maximum(EMBEDDING @ mlp.fc1.T + mlp.bias1, 0) @ mlp.fc2.T + mlp.bias2
    assert (logits[:30].argmax(1) == FOLLOWS).all()
    assert list(losses) == sorted(losses, reverse=True)
    assert losses[0] < np.log(30) + 1
    assert [a.shape for a in (mlp.fc1, mlp.bias1, mlp.fc2, mlp.bias2)] == [(32, 24), (32,), (40, 32), (40,)]
    assert {a.dtype for a in (mlp.fc1, mlp.bias1, mlp.fc2, mlp.bias2)} == {np.dtype(np.float32)}


def test_tokens_that_follow_nothing_are_never_guessed() -> None:
    (_, mlp), *_ = fit_mlp(pairs_of(600), EMBEDDING, hidden_dim=8, epochs=1, seed=1)
    assert (mlp.bias2[30:] == NEVER).all()
    assert (mlp.fc2[30:] == 0).all()
    assert (mlp.bias2[:30] > NEVER / 2).all()


def test_the_same_seed_gives_the_same_weights() -> None:
    pairs = pairs_of(700)
    first, again, other = (list(fit_mlp(pairs, EMBEDDING, 8, 2, seed))[-1][1] for seed in (1, 1, 2))
    assert np.array_equal(first.fc1, again.fc1)
    assert np.array_equal(first.fc2, again.fc2)
    assert not np.array_equal(first.fc1, other.fc1)


@pytest.mark.parametrize("parameter", range(4))
def test_gradients_are_those_of_the_loss(parameter: int) -> None:
    rng = np.random.default_rng(2)
    shapes = [(5, 3), (5,), (7, 5), (7,)]
    parameters = [rng.standard_normal(shape) for shape in shapes]  # float64, for differences to be exact enough
    x, targets = rng.standard_normal((6, 3)), rng.integers(0, 7, 6)
    gradient = loss_and_gradients(parameters, x, targets)[1][parameter]
    values = parameters[parameter]
    for at in np.ndindex(values.shape):
        kept = values[at]
        values[at] = kept + 1e-5
        above = loss_and_gradients(parameters, x, targets)[0]
        values[at] = kept - 1e-5
        below = loss_and_gradients(parameters, x, targets)[0]
        values[at] = kept
        assert gradient[at] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-8)
