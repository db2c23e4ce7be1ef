"""2,000 requests of every operation, and all edges of all fields: no 5xx, and no answer that is not described."""

from pathlib import Path

import pytest

from modelc.runtime import LanguageModel
from modelc.runtime.options import Options
from tests.api.conftest import serving
from tests.api.schema_examples import try_schema
from tests.models.tiny_llama import tiny_llama

pytest.importorskip("schemathesis")
pytestmark = pytest.mark.slow


def test_answers_are_as_the_document_says(tmp_path: Path) -> None:
    (tmp_path / "adapters").mkdir()
    with LanguageModel(tiny_llama(vocab_size=256, n_layers=1, n_ctx=64), Options(1)) as model:
        options = {"adapters": tmp_path / "adapters", "defaults": {"max_tokens": 4}}
        with serving(model, **options) as url:
            try_schema(url, tmp_path, n_examples=2000, phases="coverage,fuzzing")
