"""The raw logits of kernels built ahead of time are those of the compiler in the process, by their hashes."""

from pathlib import Path

import pytest

from conformance.compile.logits import logit_hashes
from modelc.bundle.ahead import AheadOfTime
from modelc.formats import open_model
from modelc.kernels.objects import ObjectCache
from modelc.runtime.kernel_names import kernel_names

pytestmark = pytest.mark.slow

N_TOKENS = 100


@pytest.fixture(scope="module")
def expected(smollm2_gguf: Path) -> dict[str, str]:
    return logit_hashes(smollm2_gguf, 2, ObjectCache(), N_TOKENS)


def test_logits_are_the_same_ahead_of_time(smollm2_gguf: Path, expected: dict[str, str], isa: str) -> None:
    kernels = AheadOfTime(isa)
    kernels.addresses(kernel_names(open_model(smollm2_gguf)))  # in one library
    for threads in (1, 2, 3):
        assert logit_hashes(smollm2_gguf, threads, kernels, N_TOKENS) == expected


def test_every_format_gives_logits_of_its_own(expected: dict[str, str]) -> None:
    assert len(set(expected.values())) == 4
