"""A few requests of every operation; many more are tried by the long checks."""

from pathlib import Path
from typing import Any

import pytest

from modelc.runtime import LanguageModel
from modelc.runtime.options import Options
from tests.api.schema_examples import try_schema
from tests.models.tiny_llama import tiny_llama

pytest.importorskip("schemathesis")


def test_answers_are_as_the_document_says(served: Any, tmp_path: Path) -> None:
    (tmp_path / "adapters").mkdir()
    with LanguageModel(tiny_llama(vocab_size=256, n_layers=1, n_ctx=64), Options(1)) as model:
        options = {"adapters": tmp_path / "adapters", "defaults": {"max_tokens": 4}}
        with served(model, **options) as url:
            try_schema(url, tmp_path, n_examples=100, phases="fuzzing")
