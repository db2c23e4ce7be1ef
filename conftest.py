"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest

from tools.fetch_smollm2 import FetchError, fetch, models_folder


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """SmolLM2-135M-Instruct in Q4_1, fetched once; without network the test is skipped, on a CI machine it fails."""
    try:
        return fetch(models_folder())
    except FetchError as error:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(f"CI must have the model: {error}")
        pytest.skip(f"no model to test with: {error}")
