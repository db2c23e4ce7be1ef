import numpy as np
import pytest

from modelc.kernels.objects import python_function
from modelc.runtime.sampler import Compiled, Sampler, Workspace
from modelc.runtime.sampling import Sampling
from modelc.text import BpeTokenizer
from tests.kernels.opcode_runner import objects

VOCAB = 50


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    def compiled(name: str) -> Compiled:
        return python_function(objects().addresses([name])[name], 1, 1)

    return Workspace(compiled, BpeTokenizer.byte_fallback(), VOCAB)


def logits(**values: float) -> np.ndarray:
    """Zeros but for t<token>=value."""
    out = np.zeros(VOCAB, np.float32)
    for name, value in values.items():
        out[int(name[1:])] = value
    return out


def test_greedy_by_default(workspace: Workspace) -> None:
    sampler = Sampler(workspace, Sampling(), [1, 2, 3])
    assert sampler.next(logits(t7=1, t30=2), 3) == 30
    assert sampler.next(logits(t7=1, t30=2), 4) == 30


def test_the_repetition_penalty_knows_prompt_and_answer(workspace: Workspace) -> None:
    sampler = Sampler(workspace, Sampling(repetition_penalty=2.0), [5, 5, 6])
    assert sampler.next(logits(t5=10, t6=9, t7=6), 3) == 7
    assert sampler.next(logits(t7=10, t8=6), 4) == 8
    assert sampler.next(logits(t5=10, t6=10, t7=10, t8=10, t9=4), 5) == 5


def test_presence_and_frequency_know_the_answer_alone(workspace: Workspace) -> None:
    sampler = Sampler(workspace, Sampling(presence_penalty=1.5), [7, 7, 7])
    values = logits(t7=3, t8=2)
    assert [sampler.next(values, p) for p in range(3, 7)] == [7, 8, 7, 7]
    sampler = Sampler(workspace, Sampling(frequency_penalty=0.6), [7, 7, 7])
    assert [sampler.next(values, p) for p in range(3, 8)] == [7, 7, 8, 7, 8]


def test_a_bias_holds_for_every_token(workspace: Workspace) -> None:
    sampler = Sampler(workspace, Sampling(logit_bias={3: 5.0, 4: -5.0}), [1])
    assert [sampler.next(logits(t4=9, t3=1), p) for p in range(3)] == [3, 3, 3]


def test_a_given_seed_gives_the_same_answer_and_another_seed_another(workspace: Workspace) -> None:
    rows = np.random.default_rng(1).standard_normal((20, VOCAB)).astype(np.float32)

    def answer(seed: int | None) -> list[int]:
        sampler = Sampler(workspace, Sampling(temperature=1.5, top_p=0.95, seed=seed), [1])
        return [sampler.next(row, 1 + i) for i, row in enumerate(rows)]

    assert answer(11) == answer(11)
    assert answer(11) != answer(12)
    assert answer((1 << 63) - 1) == answer((1 << 63) - 1)


def test_a_draw_belongs_to_its_position_whatever_was_drawn_before(workspace: Workspace) -> None:
    row = np.random.default_rng(2).standard_normal(VOCAB).astype(np.float32)
    sampling = Sampling(temperature=2.0, seed=3)
    whole = Sampler(workspace, sampling, [1])
    tokens = [whole.next(row, p) for p in range(1, 10)]
    assert Sampler(workspace, sampling, [1, *tokens[:5]]).next(row, 6) == tokens[5]


def test_without_a_seed_each_sampler_takes_one_of_its_own(workspace: Workspace) -> None:
    seeds = {Sampler(workspace, Sampling(), [1]).seed for _ in range(5)}
    assert len(seeds) == 5
    assert all(0 <= seed < 1 << 53 for seed in seeds)  # exact in JSON


def test_a_seed_is_reported_as_it_was_given(workspace: Workspace) -> None:
    assert Sampler(workspace, Sampling(seed=0), [1]).seed == 0


def test_samplers_share_a_workspace_without_seeing_one_another(workspace: Workspace) -> None:
    one = Sampler(workspace, Sampling(presence_penalty=100.0), [1])
    two = Sampler(workspace, Sampling(presence_penalty=100.0), [1])
    values = logits(t1=3, t2=2, t3=1)
    assert [one.next(values, 1), two.next(values, 1), one.next(values, 2), two.next(values, 2)] == [1, 1, 2, 2]
    assert values.tolist() == logits(t1=3, t2=2, t3=1).tolist()
